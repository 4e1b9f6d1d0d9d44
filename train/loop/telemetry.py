"""What one rank reports about its steps: losses and scores in the metrics, lines on the screen, and its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from train.loop.data import Batch
from train.loop.distributed import StopConsensus
from train.loop.trainer import Step, Trainer, learning_rate
from train.record.checkpoint import Progress
from train.record.folder import dev_name
from train.record.metrics import AsyncLossReader, Recorder
from train.record.trackers import start_trackers
from una_fast.errors import counted


class Telemetry:
    """Reports a trainer's steps from `start` on. An error of a file or of the screen is one of `stop`."""

    def __init__(self, trainer: Trainer, start: Progress, stop: StopConsensus) -> None:
        self._run, self._watch, self._n_steps, self._stop = trainer.run, trainer.watch, trainer.plan.n_steps, stop
        ranks, output = trainer.ranks, Path(trainer.run.output)
        self._recorder: Recorder | None = None
        if ranks.first:
            trackers = start_trackers(self._run.report_to, vars(self._run), start.step)
            self._recorder = Recorder(output, start, self._n_steps, trackers, dev_name(self._run.dev))
        self._losses = AsyncLossReader(ranks.device)
        self._steps = 0  # taken by this process
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
        about = {"step": batch.step, "lr": rate, "negatives": batch.n_views > 2, "sentences_per_second": speed}
        self._losses.push(step.loss, about, step.cosines)
        self.catch_up(all_of_them=False)

    def catch_up(self, all_of_them: bool = True) -> None:
        """Record the losses that are due, or of all steps so far, which waits for the device."""
        for record in self._losses.due(all_of_them):
            self._record(partial(Recorder.step, **record))

    def evaluation(self, at: Progress) -> None:
        """Record the dev score of a state of the run."""
        score = at.last_score
        assert score is not None
        self._record(lambda recorder: recorder.evaluation(at.step, score, best=at.best_step == at.step))

    def say(self, message: str) -> None:
        """Show a line above the bar."""
        self._record(lambda recorder: recorder.say(message))

    def flush(self) -> None:
        """Flush all metrics to the operating system, so that they survive a killed process."""
        self._record(Recorder.flush)

    def close(self) -> None:
        """Close the metrics and the bar."""
        self._record(Recorder.close)

    def _record(self, act: Callable[[Recorder], None]) -> None:
        """Act on the recorder, which rank 0 alone has."""
        if self._recorder:
            with self._stop.guard():
                act(self._recorder)

    def times(self) -> dict[str, Any]:
        """Where the time of this process went in the loop, for run.json. Waits for the device."""
        self._watch.finish()
        seconds = time.perf_counter() - self._begun
        shares = {name: spent / seconds for name, spent in self._watch.seconds.items()}
        idle = self._watch.idle_share(seconds)
        return {"steps": self._steps, "seconds": seconds, "share_of_time": shares, "idle_share": idle}
