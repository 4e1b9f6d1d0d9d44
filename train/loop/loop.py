"""The training loop of one rank: takes steps, computes dev scores, and saves encoders and checkpoints."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from train.distributed import StopConsensus
from train.evaluation.model import DevScorer
from train.loop.data import BatchMaker, prefetched
from train.loop.telemetry import Telemetry
from train.loop.trainer import Trainer
from train.record.checkpoint import Progress, save_encoder, snapshot, write_checkpoint
from train.record.folder import BEST, LAST
from train.signals import Stopped

CHECKPOINT = "checkpoint"


@dataclass
class Loop:
    """Takes the remaining steps of a run. All ranks make the same calls in the same order."""

    trainer: Trainer
    maker: BatchMaker
    progress: Progress
    scorer: DevScorer | None  # None without --dev
    writer: CheckpointWriter
    telemetry: Telemetry
    stop: StopConsensus

    def run(self) -> bool:
        """Train and save, until all steps are taken or a signal stops the run. Return whether the run finished."""
        finished = False
        try:
            with contextlib.suppress(Stopped):
                self._train()
                finished = True
            self._save(finished)
            self.writer.wait()
            with contextlib.suppress(Stopped):
                self.stop.check()  # raises the error of the last write
            return finished
        finally:
            self.telemetry.close()
            self.writer.wait()

    def _train(self) -> None:
        """Take the steps. Evaluate before the first one, for a baseline, and after the last one."""
        run, plan = self.trainer.run, self.trainer.plan
        if self.progress.step % run.eval_every == 0:  # also repeats an evaluation that a stop signal interrupted
            self._evaluate()
        if self.progress.step == 0:
            self.writer.last(self.progress)  # so that a run killed early can be resumed
        with contextlib.closing(prefetched(plan.batches(self.progress.step), self.maker.make)) as batches:
            for batch in self.telemetry.timed(batches):
                if self._is_patience_over():
                    break
                step = self.trainer.step(batch.to(self.trainer.ranks.device))
                n_taken = batch.step + 1
                self.progress = replace(self.progress, step=n_taken)
                self.telemetry.step(batch, step)
                if n_taken % run.eval_every == 0:
                    self._evaluate()
                self.stop.check()
                if n_taken % run.save_every == 0 and n_taken != plan.n_steps:  # after the last step, `run` saves
                    self._save()
        self._evaluate()

    def _is_patience_over(self) -> bool:
        """Test whether none of the last --early-stopping-patience dev scores was a new best."""
        run, best_step = self.trainer.run, self.progress.best_step
        patience = run.early_stopping_patience * run.eval_every
        if not patience or best_step is None or self.progress.step - best_step < patience:
            return False
        self.telemetry.say(f"early stopping: no better dev score since step {best_step:,}")
        return True

    def _evaluate(self) -> None:
        """Score the encoder on the dev texts, unless it was scored at this step. Save a new best encoder in best/."""
        progress = self.progress
        if not self.scorer or progress.evaluated_step == progress.step:
            return
        self.telemetry.catch_up()
        # ranks gather rows, so they must encode batches in the same order; a single rank can use several threads
        ranks = self.trainer.ranks
        threads = 1 if ranks.world > 1 else None
        with self.trainer.evaluating(), self.trainer.blended():
            score = self.scorer(self._embed, threads, ranks.first)
            start = progress.start_score if progress.step else score
            progress = replace(progress, start_score=start, last_score=score, evaluated_step=progress.step)
            if math.isfinite(score) and (progress.best_score is None or score > progress.best_score):
                progress = replace(progress, best_score=score, best_step=progress.step)
                self.writer.encoder(BEST, {"step": progress.step, "dev_score": score})
        self.progress = progress
        self.telemetry.evaluation(progress, self.scorer.measure)

    def _embed(self, batch: dict[str, Tensor]) -> Tensor:
        self.stop.check()
        return self.trainer.embed(batch)

    def _save(self, finished: bool = False) -> None:
        """Save the checkpoint in last/. Without dev scores, also save the encoder in best/."""
        self.telemetry.catch_up()
        if self.progress.best_score is None:
            with self.trainer.blended():
                self.writer.encoder(BEST, {"step": self.progress.step})
        self.writer.last(self.progress, finished)
        if finished:
            self.writer.encoder(LAST, {"step": self.progress.step, "dev_score": self.progress.last_score})


class CheckpointWriter:
    """Writes best/ and last/ on rank 0 in the background, one write at a time.

    There are three kinds of writes: the encoder in best/, the encoder in last/, and the checkpoint in last/. A new
    write replaces a pending one of the same kind. A checkpoint waits for pending encoders, so it never refers to an
    encoder that is not yet in best/. If a write fails, all ranks stop.
    """

    def __init__(self, trainer: Trainer, tokenizer: Any, stop: StopConsensus) -> None:
        self._trainer, self._tokenizer, self._stop = trainer, tokenizer, stop
        self._output = Path(trainer.run.output)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="saves")
        self._pending: dict[str, Callable[[], None]] = {}  # writes that have not begun, by kind, in order
        self._lock = threading.Lock()  # for _pending
        self._newest: Future[None] | None = None

    def encoder(self, name: str, note: dict[str, Any]) -> None:
        """Write the encoder into the folder `name`, best or last. note: content of NAME.json."""
        encoder = self._trainer.encoder
        write = partial(save_encoder, self._output, name, encoder, self._tokenizer, note)
        self._begin(f"encoder in {name}", encoder.backbone.state_dict, write)

    def last(self, progress: Progress, finished: bool = False) -> None:
        """Write a checkpoint into last/, without the optimiser's state if the run is finished."""
        write = partial(write_checkpoint, self._output, progress)
        self._begin(CHECKPOINT, partial(self._trainer.state, with_optimizer=not finished), write)

    def _begin(self, kind: str, state: Callable[[], dict[str, Any]], write: Callable[[dict[str, Any]], None]) -> None:
        """Call `state`, copy the result at once, and pass the copy to `write` in the background."""
        if not self._trainer.ranks.first or self._stop.error:
            return
        job = partial(self._stop.guard()(write), snapshot(state()))
        with self._lock:
            if kind == CHECKPOINT:
                self._pending.pop(kind, None)  # the newer one must follow all pending encoders
            self._pending[kind] = job
        self._newest = self._pool.submit(self._write_next)

    def _write_next(self) -> None:
        with self._lock:
            job = self._pending.pop(next(iter(self._pending), ""), None)
        if job and not self._stop.error:
            job()

    def wait(self) -> None:
        """Wait until all writes are on the disk."""
        if self._newest:
            self._newest.result()
