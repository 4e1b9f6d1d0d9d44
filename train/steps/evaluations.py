"""The dev scores of a run: when they are due, how all ranks compute them, and whether one is the best so far."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from train.encoder.first_token import without_unread_tokens
from train.encoder.onednn import packed_linears
from train.evaluation.pair_scorer import PairScorer
from train.record.pointer import Progress
from train.steps.trainer import Trainer


@dataclass(frozen=True)
class Evaluation:
    """A dev score after `step` steps. best: it is the best so far.

    fallen_below: the score before training, if this score is below it and the one before was not; else None.
    """

    step: int
    score: float
    best: bool
    fallen_below: float | None


class Evaluations:
    """Scores a trainer's encoder on the dev pairs, if there are any, and keeps the scores in the run's progress."""

    def __init__(self, trainer: Trainer, progress: Progress, scorer: PairScorer | None, tokenizer: Any) -> None:
        self._trainer, self._progress, self._scorer, self._tokenizer = trainer, progress, scorer, tokenizer

    @property
    def wanted(self) -> bool:
        """True if the run has dev pairs."""
        return self._scorer is not None

    def due(self) -> bool:
        """True if the encoder is to be scored after the present step, or before the first one."""
        return self.wanted and self._progress.step % self._trainer.run.eval_every == 0

    def owed(self) -> bool:
        """True if the encoder was not scored after the latest step; the end of the run then does it."""
        return self.wanted and self._progress.evaluated_step != self._progress.step

    def take(self) -> Evaluation:
        """Score the encoder on the dev pairs, on all ranks together."""
        assert self._scorer is not None
        with self._trainer.watch.phase("evaluation"), self._evaluating():
            # ranks that gather rows must encode batches in the same order; a single rank may encode several at once
            threads = 1 if self._trainer.ranks.world > 1 else None
            (score,) = self._scorer(self._trainer.embed, threads).values()
        return self._judge(score)

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Inside the with block the encoder has no dropout and uses the fast paths of evaluation."""
        encoder = self._trainer.encoder
        unread = without_unread_tokens(encoder.backbone, encoder.pooling, self._tokenizer)
        with packed_linears(encoder), unread:
            encoder.eval()
            yield
            encoder.train()

    def _judge(self, score: float) -> Evaluation:
        progress, before = self._progress, self._progress.last_score
        progress.last_score, progress.evaluated_step = score, progress.step
        if progress.step == 0:
            progress.start_score = score
        best = math.isfinite(score) and (progress.best_score is None or score > progress.best_score)
        if best:
            progress.best_score, progress.best_step = score, progress.step
        start = progress.start_score
        fell = start is not None and score < start and (before is None or before >= start)
        return Evaluation(progress.step, score, best, start if fell else None)
