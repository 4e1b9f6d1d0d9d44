"""What one rank reports about its steps: losses and scores in the metrics, lines on the screen, and its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from train.loop.data import Batch
from train.loop.distributed import StopConsensus
from train.loop.trainer import Step, Trainer, learning_rate
from train.record.checkpoint import Progress
from train.record.metrics import AsyncLossReader, Recorder
from train.record.trackers import start_trackers
from una_fast.errors import counted

LITTLE, LITTLE_STEPS = 0.01, 10  # a loss below which there is little to learn, and the steps that must be below it


class Telemetry:
    """Reports a trainer's steps from `start` on. An error of a file or of the screen is one of `stop`."""

    def __init__(self, trainer: Trainer, start: Progress, stop: StopConsensus) -> None:
        self._run, self._watch, self._n_steps, self._stop = trainer.run, trainer.watch, trainer.plan.n_steps, stop
        ranks, output = trainer.ranks, Path(trainer.run.output)
        self._recorder: Recorder | None = None
        if ranks.first:
            trackers = start_trackers(self._run.report_to, vars(self._run), start.step)
            self._recorder = Recorder(output, start, self._n_steps, trackers)
        self._losses = AsyncLossReader(ranks.device)
        self._steps = 0  # taken by this process
        self._easy: int | None = 0  # plain steps with a loss below LITTLE so far; None once one was above, or told
        self._begun = self._step_begun = time.perf_counter()
        on = torch.cuda.get_device_name(ranks.device) if ranks.device.type == "cuda" else ranks.device.type
        on += f", {counted(ranks.world, 'rank')}, {trainer.run.precision}"
        self.say(f"training on {on}: steps {start.step:,} to {self._n_steps:,}")

    def timed(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield the batches. The time of waiting for a batch is the phase "data", with which a step begins."""
        while True:
            self._step_begun = time.perf_counter()
            with self._watch.phase("data"):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def step(self, batch: Batch, step: Step) -> None:
        """Record one optimiser step. Raises InputError if a loss that is due is NaN or infinite."""
        self._steps += 1
        speed = len(batch.rows) / (time.perf_counter() - self._step_begun)
        rate = learning_rate(self._run, batch.step, self._n_steps)
        about = {"step": batch.step, "lr": rate, "negatives": batch.negatives, "sentences_per_second": speed}
        self._losses.push(step.loss, about, step.cosines)
        self.catch_up(all_of_them=False)

    def catch_up(self, all_of_them: bool = True) -> None:
        """Record the losses that are due, or of all steps so far, which waits for the device."""
        for record in self._losses.due(all_of_them):
            if self._recorder:
                with self._stop.guard():
                    self._recorder.step(**record)
            self._notice_little(record["loss"], record["negatives"])

    def evaluation(self, before: Progress, after: Progress) -> None:
        """Record the dev score by which two states of the run differ, and warn if it has fallen below the start."""
        score, earlier, start = after.last_score, before.last_score, after.start_score
        assert score is not None
        if self._recorder:
            with self._stop.guard():
                self._recorder.evaluation(after.step, score, best=after.best_step == after.step)
        if start is not None and score < start and (earlier is None or earlier >= start):
            self.say(
                f"warning: the dev score has fallen below the start's {start:.4f}: if it does not "
                f"recover, try a --learning-rate below {self._run.learning_rate:g}"
            )

    def say(self, message: str) -> None:
        """Show a line above the bar."""
        if self._recorder:
            self._recorder.say(message)

    def flush(self) -> None:
        """Flush all metrics to the operating system, so that they survive a killed process."""
        if self._recorder:
            with self._stop.guard():
                self._recorder.flush()

    def close(self) -> None:
        """Close the metrics and the bar."""
        if self._recorder:
            with self._stop.guard():
                self._recorder.close()

    def times(self) -> dict[str, Any]:
        """Where the time of this process went in the loop, for run.json. Waits for the device."""
        self._watch.finish()
        seconds = time.perf_counter() - self._begun
        shares = {name: spent / seconds for name, spent in self._watch.seconds.items()}
        idle = self._watch.idle_share(seconds)
        return {"steps": self._steps, "seconds": seconds, "share_of_time": shares, "idle_share": idle}

    def _notice_little(self, loss: float, negatives: bool) -> None:
        """Tell the user once if the first plain steps have a loss near 0: the encoder tells dropout positives apart."""
        if negatives or self._easy is None:
            return
        self._easy = self._easy + 1 if loss < LITTLE else None
        if self._easy == LITTLE_STEPS:
            self._easy = None
            self.say(
                f"hint: the first {LITTLE_STEPS} steps without negatives have a loss below {LITTLE}: the encoder tells "
                "positives from other sentences already, so that there is little to learn: try --paraphrases, "
                "--positives, a higher --dropout, a higher --temperature, or --alpha 1"
            )
