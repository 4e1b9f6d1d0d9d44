"""The training loop of one rank: its steps, its dev scores, what it saves, and how it ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from train.evaluation.embed import PairScorer
from train.loop.data import BatchMaker, Prefetcher
from train.loop.distributed import FAILED, Abandoned, StopAgreement
from train.loop.telemetry import Telemetry
from train.loop.trainer import Trainer
from train.record.best import save_encoder
from train.record.checkpoint import Pointer, Progress, snapshot, write_checkpoint
from train.record.folder import BEST, LAST
from una_fast.errors import InputError


@dataclass(frozen=True)
class Outcome:
    """How the loop ended: "finished", "stopped" by signal `code`, or "failed" with a message."""

    status: str
    progress: Progress
    code: int = 0
    message: str = ""


@dataclass
class Loop:
    """Takes the steps of a run from `progress` on. All ranks make the same calls in the same order.

    score: gives the dev score of the trainer's encoder, by all ranks together; None if the run has no dev pairs.
    """

    trainer: Trainer
    maker: BatchMaker
    progress: Progress
    score: Callable[[], float] | None
    saves: Saves
    telemetry: Telemetry
    stop: StopAgreement

    def run(self) -> Outcome:
        """Train until the end of the run, a signal or an error."""
        self.telemetry.begin()
        try:
            return self._train()
        except InputError as error:  # a NaN loss: every rank sees it at the same step
            return Outcome("failed", self.progress, message=str(error))
        finally:
            self.telemetry.close()
            self.saves.wait()

    def _train(self) -> Outcome:
        """Take the steps, evaluate and save; all ranks stop by the same code, 0 at the end of the run."""
        try:
            code = self._steps()
            if not code and self.score:
                if self.progress.evaluated_step != self.progress.step:
                    self._evaluate()
                for weight in self.trainer.run.blend:
                    self._evaluate_blend(weight)
        except Abandoned as abandoned:
            code = abandoned.code
        if code != FAILED:
            self._save(finished=not code)
        self.saves.wait()
        if code == FAILED or self.stop.now() == FAILED:
            return Outcome("failed", self.progress, message=str(self.stop.error or ""))
        return Outcome("stopped" if code else "finished", self.progress, code)

    def _steps(self) -> int:
        """Take steps; returns 0 at the end of the run, or the code by which all ranks agreed to stop.

        An evaluation is due before the first step, as the baseline, and after a stop that cut one short. Batches are
        made meanwhile.
        """
        run, plan = self.trainer.run, self.trainer.plan
        assert run.save_every is not None
        batches = Prefetcher(plan, self.maker.make, self.progress.step)
        try:
            is_due = self.progress.step % run.eval_every == 0
            if self.score and is_due and self.progress.evaluated_step != self.progress.step:
                self._evaluate()
            if self.progress.step == 0:
                self.telemetry.flush()  # from the first step on there is a checkpoint to go on from
                self.saves.last(self.progress, self.telemetry.written)
            for batch in self.telemetry.timed(batches):
                step = self.trainer.step(batch.to(self.trainer.ranks.device))
                taken = batch.step + 1
                self.progress = replace(self.progress, step=taken)
                self.telemetry.step(batch, step)
                if self.score and taken % run.eval_every == 0:
                    self._evaluate()
                self.saves.notice_failure()
                if code := self.stop.after_step():
                    return code
                if taken % run.save_every == 0 and taken != plan.n_steps:  # after the last step, `_train` saves
                    self._save()
            return 0
        finally:
            batches.close()
            self.telemetry.batches_busy = batches.busy

    def _evaluate(self) -> None:
        """Score the encoder, and keep it if it is the best so far."""
        assert self.score is not None
        self.telemetry.catch_up()
        with self.trainer.watch.phase("evaluation"):
            score = self.score()
        before = self.progress
        start = score if before.step == 0 else before.start_score
        self.progress = replace(before, start_score=start, last_score=score, evaluated_step=before.step)
        self._keep_if_best(score)
        self.telemetry.evaluation(before, self.progress)

    def _evaluate_blend(self, weight: float) -> None:
        """Score weights between the start and the end, and keep them if they are the best so far."""
        assert self.score is not None
        with self.trainer.blended(weight):
            score = self.score()
            self._keep_if_best(score, blend=weight)
        self.telemetry.say(f"blend {weight:g}: dev score {score:.4f}")

    def _keep_if_best(self, score: float, **note: float) -> None:
        """Keep the encoder in best/ if it has the highest dev score so far."""
        best = self.progress.best_score
        if math.isfinite(score) and (best is None or score > best):
            self.progress = replace(self.progress, best_score=score, best_step=self.progress.step)
            self.saves.encoder(BEST, {"step": self.progress.step, "stsb_dev": score, **note})

    def _save(self, finished: bool = False) -> None:
        """Write last/; without dev pairs the newest encoder also counts as the best."""
        self.telemetry.catch_up()
        if not self.score:
            self.saves.encoder(BEST, {"step": self.progress.step})
        self.telemetry.flush()
        self.saves.last(self.progress, self.telemetry.written, finished)
        if finished:
            self.saves.encoder(LAST, {"step": self.progress.step, "stsb_dev": self.progress.last_score})


def dev_score(trainer: Trainer, scorer: PairScorer, stop: StopAgreement) -> float:
    """Spearman of the trainer's encoder on dev pairs, by all ranks together.

    The encoder has no dropout meanwhile. Raises Abandoned as `stop.check` does: the 1,500 pairs of STS-B take 15 s of a
    busy core.
    """

    def embed(batch: dict[str, Tensor]) -> Tensor:
        stop.check()
        return trainer.embed(batch)

    # ranks that gather rows must encode batches in the same order; a single rank may encode several at once
    threads = 1 if trainer.ranks.world > 1 else None
    trainer.encoder.eval()
    score = scorer(embed, threads)
    trainer.encoder.train()
    return score


class Saves:
    """What a run saves, written by rank 0 in the background: best/ to use, last/ to go on from.

    The writes follow each other, so last/ never refers to an unwritten best/. On other ranks nothing is written. A
    write that fails is an error of `stop`, after which all ranks stop.
    """

    def __init__(self, trainer: Trainer, tokenizer: Any, identity: dict[str, Any], stop: StopAgreement) -> None:
        self._trainer, self._tokenizer, self._identity, self._stop = trainer, tokenizer, identity, stop
        self._output = Path(trainer.run.output)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="saves")
        self._pending: Future[None] | None = None

    def encoder(self, name: str, note: dict[str, Any]) -> None:
        """Write the encoder into best/ or last/, by `name`, and beside it `note`, which says where it comes from."""
        encoder = self._trainer.encoder
        write = partial(save_encoder, self._output, name, encoder, self._tokenizer, note)
        self._begin(encoder.backbone.state_dict, write)

    def last(self, progress: Progress, metrics: dict[str, Any], finished: bool = False) -> None:
        """Write last/; for a finished run without the optimiser's state, two thirds of it, because no step follows."""
        pointer = Pointer(progress, vars(self._trainer.run), self._identity, metrics)
        write = partial(write_checkpoint, self._output, pointer)
        self._begin(partial(self._trainer.state, with_optimizer=not finished), write)

    def _begin(self, state: Callable[[], dict[str, Any]], write: Callable[[dict[str, Any]], None]) -> None:
        """Wait for the write before, copy the state, and write it while training goes on; after an error nothing."""
        if self._trainer.ranks.first and not self._stop.error:
            with self._trainer.watch.phase("saving"), self._stop.guard():
                self._finish()
                self._pending = self._pool.submit(write, snapshot(state()))

    def _finish(self) -> None:
        """Wait for the write that is under way. Raises its InputError."""
        pending, self._pending = self._pending, None
        if pending:
            pending.result()

    def notice_failure(self) -> None:
        """Stop all ranks if a write has failed meanwhile; does not wait for a write that is not finished."""
        if self._pending and self._pending.done():
            self.wait()

    def wait(self) -> None:
        """Wait until all writes are on the disk."""
        with self._stop.guard():
            self._finish()
