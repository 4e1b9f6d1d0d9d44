"""The training loop of one rank: steps, and what they leave behind: metrics, evaluations, checkpoints, an outcome."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from train.encoder.export import save_best
from train.encoder.first_token import without_unread_tokens
from train.encoder.onednn import packed_linears
from train.evaluation.pair_scorer import PairScorer
from train.record.checkpoint import CheckpointWriter
from train.record.metrics import LateLosses, Recorder
from train.record.pointer import Progress
from train.steps.batches import BatchMaker
from train.steps.prefetch import Prefetcher
from train.steps.ranks import FAILED, StopAgreement
from train.steps.trainer import Trainer, learning_rate
from una_fast.errors import InputError

WAIT_WARNING = 0.05  # share of the time waiting for data that a user should hear of
WAIT_STEPS = 20  # steps before that share means anything


@dataclass(frozen=True)
class Outcome:
    """How the loop ended: "finished", "stopped" by signal `code`, or "failed" with a message."""

    status: str
    progress: Progress
    code: int = 0
    message: str = ""


class Loop:
    """Drives a Trainer through its steps, and keeps what the steps leave behind."""

    def __init__(
        self,
        trainer: Trainer,
        make: BatchMaker,
        scorer: PairScorer | None,
        tokenizer: Any,
        identity: dict[str, Any],
    ) -> None:
        self.trainer, self.make, self.scorer, self.tokenizer = trainer, make, scorer, tokenizer
        self.run, self.progress = trainer.run, trainer.progress
        self.output = Path(self.run.output)
        first = trainer.ranks.first
        self.writer = CheckpointWriter(self.output, vars(self.run), identity) if first else None
        self.recorder = Recorder(
            self.output, first, self.progress.step, trainer.plan.n_steps, self.progress.start_score
        )
        self.losses = LateLosses(trainer.ranks.device)
        self.stop = StopAgreement(trainer.ranks)
        self.error: InputError | None = None
        self.seconds = 0.0  # of the loop, in this process
        self.steps_here = 0  # steps taken by this process
        self.batches_busy = 0.0  # seconds the background thread worked

    def __call__(self) -> Outcome:
        """Train to the end, a signal or an error."""
        begun = time.perf_counter()
        ranks = self.trainer.ranks
        self.recorder.say(
            f"training on {ranks.device.type}, {ranks.world} rank{'s' if ranks.world > 1 else ''}: "
            f"steps {self.progress.step:,} to {self.trainer.plan.n_steps:,}"
        )
        if (self.run.device, self.run.precision) == ("cpu", "fp16"):
            self.recorder.say("warning: fp16 takes some 30 times as long as bf16 on a CPU: use it for trials only")
        try:
            return self._train()
        except InputError as error:  # a NaN loss: every rank sees it at the same step
            return Outcome("failed", self.progress, message=str(error))
        finally:
            self.seconds = time.perf_counter() - begun
            if self.writer:
                self._guarded(self.writer.wait)
            self._guarded(self.recorder.close)
            self.stop.close()

    def _train(self) -> Outcome:
        batches = Prefetcher(self.trainer.plan, self.make, self.progress.step)
        try:
            if self.scorer and self.progress.step == 0:
                self._evaluate()  # the start: what a later score is better or worse than
            code = self._steps(batches)
        finally:
            batches.close()
            self.batches_busy = batches.busy
        if not code and self.scorer and self.progress.evaluated_step != self.progress.step:
            self._evaluate()
        if code != FAILED:
            self._save(finished=not code)
        if self.writer:
            self._guarded(self.writer.wait)
        if self.error or code == FAILED or self.stop.now() == FAILED:
            return Outcome("failed", self.progress, message=str(self.error or ""))
        return Outcome("stopped" if code else "finished", self.progress, code)

    def _steps(self, batches: Prefetcher) -> int:
        """Take steps until the end (0), or the code by which all ranks agreed to stop."""
        warned = False
        ended = time.perf_counter()
        for batch in self._timed(batches):
            loss = self.trainer.step(batch.to(self.trainer.ranks.device))
            self.progress.step = batch.step + 1
            self.steps_here += 1
            now = time.perf_counter()
            rate = learning_rate(self.run, batch.step, self.trainer.plan.n_steps)
            about = {"step": batch.step, "lr": rate, "negatives": batch.negatives}
            self.losses.push(
                loss, {**about, "sentences_per_second": sum(batch.sizes) / (now - ended)}, self.trainer.cosines
            )
            self._record_losses()
            if not warned and self.steps_here >= WAIT_STEPS:
                warned = self._warn_of_waiting()
            if self._evaluation_due():
                self._evaluate()
            if self._save_due():
                self._save()
            if self.writer and self.writer.failed():
                self._guarded(self.writer.wait)
            if code := self.stop.after_step():
                return code
            ended = time.perf_counter()
        return 0

    def _timed(self, batches: Prefetcher) -> Any:
        iterator = iter(batches)
        while True:
            with self.trainer.watch.phase("data"):
                batch = next(iterator, None)
            if batch is None:
                return
            yield batch

    def _record_losses(self, all_of_them: bool = False) -> None:
        for record in self.losses.due(all_of_them):
            self._guarded(partial(self.recorder.step, **record))

    def _warn_of_waiting(self) -> bool:
        seconds = self.trainer.watch.seconds
        waited, spent = seconds["data"], sum(seconds.values())
        if waited <= WAIT_WARNING * spent:
            return False
        self.recorder.say(
            f"warning: steps wait for data {100 * waited / spent:.0f} % of the time: the index may lie on a slow disk, "
            "or other programs use the processor"
        )
        return True

    def _evaluation_due(self) -> bool:
        return self.scorer is not None and self.progress.step % self.run.eval_every == 0

    def _save_due(self) -> bool:
        assert self.run.save_every is not None
        last = self.progress.step == self.trainer.plan.n_steps  # then the run ends with another save
        return self.progress.step % self.run.save_every == 0 and not last

    def _evaluate(self) -> None:
        """Score the dev pairs on all ranks, and keep the encoder if it is the best so far."""
        self._record_losses(all_of_them=True)
        assert self.scorer is not None
        encoder = self.trainer.encoder
        with (
            self.trainer.watch.phase("evaluation"),
            self.trainer.plain_kernels(),
            packed_linears(encoder),
            without_unread_tokens(encoder.backbone, encoder.pooling, self.tokenizer),
        ):
            self.trainer.encoder.eval()
            # ranks that gather rows must take the batches in one order; one rank alone may take several at once
            threads = 1 if self.trainer.ranks.world > 1 else None
            (score,) = self.scorer(self.trainer.embed, threads).values()
            self.trainer.encoder.train()
        progress, before = self.progress, self.progress.last_score
        progress.last_score, progress.evaluated_step = score, progress.step
        if progress.step == 0:
            progress.start_score = score
        best = math.isfinite(score) and (progress.best_score is None or score > progress.best_score)
        if best:
            progress.best_score, progress.best_step = score, progress.step
            self._keep_best({"step": progress.step, "stsb_dev": score})
        self._guarded(lambda: self.recorder.evaluation(progress.step, score, best))
        start = progress.start_score
        if start is not None and score < start and (before is None or before >= start):
            self.recorder.say(
                f"warning: the dev score has fallen below the start's {start:.4f}: if it does not recover, "
                f"try a --learning-rate below {self.run.learning_rate:g}"
            )

    def _keep_best(self, note: dict[str, Any]) -> None:
        if self.writer:
            with self.trainer.watch.phase("saving"):
                encoder = self.trainer.encoder
                write = partial(save_best, self.output, encoder, self.tokenizer, note)
                self._guarded(partial(self.writer.save_best, encoder.backbone, write))

    def _save(self, finished: bool = False) -> None:
        """Write last/; without dev pairs the newest encoder also counts as the best.

        A finished run keeps no state of its optimiser, two thirds of all: nothing can go on from it.
        """
        self._record_losses(all_of_them=True)
        if self.scorer is None:
            self._keep_best({"step": self.progress.step})
        if self.writer:
            with self.trainer.watch.phase("saving"):
                self._guarded(self.recorder.flush)
                state = self.trainer.state()
                kept = {name: part for name, part in state.items() if not (finished and name == "optimizer")}
                self._guarded(partial(self.writer.save, self.progress, kept, "weights" if finished else "state"))

    def _guarded(self, action: Callable[[], None]) -> None:
        """Do what only rank 0 does; if that fails, all ranks are asked to stop, so that none waits for it."""
        try:
            action()
        except (InputError, OSError) as error:
            self.error = self.error or InputError(str(error))
            self.stop.fail()
