"""Reports a run: writes losses and dev scores to metrics.jsonl, prints progress, and measures the time of steps."""

from __future__ import annotations

import functools
import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from train.distributed import StopConsensus
from train.loop.data import Batch
from train.loop.trainer import Step, Trainer, learning_rate
from train.messages import STDERR, progress_bar
from train.record.checkpoint import Progress
from train.record.folder import DEV, METRICS, dev_name
from train.record.trackers import start_trackers
from una_fast.errors import InputError, counted
from una_fast.storage.files import write_file

LATE_STEPS = 8  # a GPU's loss is read this many steps later: by then it is computed, so reading does not wait


class StepReader:
    """Reads a step's loss, cosines and duration. On a GPU it reads them LATE_STEPS steps later, to avoid waiting."""

    def __init__(self, device: torch.device) -> None:
        self._late = LATE_STEPS if device.type == "cuda" else 0
        self._pending: deque[tuple[Tensor, Any, Any, dict[str, Any]]] = deque()

    def now(self) -> Any:
        """Return the time in seconds or, on a GPU, a CUDA event, which gets its time when the GPU reaches it."""
        if not self._late:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def push(self, loss: Tensor, about: dict[str, Any], cosines: Tensor, begun: Any) -> None:
        """Queue the results of a step for `due`.

        about: other entries of the step's line in metrics.jsonl. cosines: `Step.cosines`. begun: what `now` returned
        when the step began.
        """
        read = torch.cat([loss.detach()[None], cosines.mean(1)])  # one copy to the host for all
        if self._late:
            read = torch.empty_like(read, device="cpu", pin_memory=True).copy_(read, non_blocking=True)
        self._pending.append((read, begun, self.now(), {"n": cosines.shape[1], **about}))

    def due(self, all_of_them: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the line of metrics.jsonl for each queued step or, on a GPU, for all but the newest LATE_STEPS.

        all_of_them: empty the queue, and wait for the GPU. Raises InputError if a loss is NaN or infinite.
        """
        while len(self._pending) > (0 if all_of_them else self._late):
            loss, begun, ended, about = self._pending.popleft()
            if self._late:
                ended.synchronize()
            seconds = begun.elapsed_time(ended) / 1000 if self._late else ended - begun
            speed = round(about.pop("n") / seconds, 2)
            value, *cosines = loss.tolist()
            means = dict(zip(("cosine_positive", "cosine_negative"), (round(c, 5) for c in cosines), strict=False))
            if not math.isfinite(value):
                raise InputError(
                    f"step {about['step']}: the loss is {value}: try a lower --learning-rate, a higher --temperature, "
                    "or --precision fp32 or bf16"
                )
            yield {**about, "sentences_per_second": speed, **means, "loss": value}


def rank_zero_only(method: Callable[..., None]) -> Callable[..., None]:
    """Let only rank 0 execute a method. If the method fails to write, all ranks stop."""

    @functools.wraps(method)
    def act(self: Telemetry, *arguments: Any, **named: Any) -> None:
        if self._is_first:
            with self._stop.guard():
                method(self, *arguments, **named)

    return act


class Telemetry:
    """Reports steps and dev scores in metrics.jsonl, to the trackers of --report-to, and on a progress bar."""

    def __init__(self, trainer: Trainer, start: Progress, stop: StopConsensus, trackers: dict[str, Any]) -> None:
        run, ranks = trainer.run, trainer.ranks
        self._run, self._n_steps, self._stop = run, trainer.plan.n_steps, stop
        self._loss_options = trainer.loss_spec.options.values()
        self._is_first, self._dev = ranks.first, DEV + dev_name(run.dev)
        if self._is_first:
            self._trackers = trackers
            start_trackers(trackers, vars(run), start.step)
            trim_metrics(Path(run.output), start)
            # line-buffered, so that every line survives a killed process
            self._file = (Path(run.output) / METRICS).open("a", encoding="utf-8", buffering=1)
            self._bar = progress_bar(start.step, self._n_steps, "step")
            if start.evaluated_step == start.step:  # log it again: a resumed TensorBoard hides points from here on
                self._track("log", {self._dev: start.last_score}, start.step)
        self._reader = StepReader(ranks.device)
        self._steps, self._waited = 0, 0.0  # steps that this process took, and the seconds it waited for batches
        self._begun, self._step_begun = time.perf_counter(), self._reader.now()
        on = torch.cuda.get_device_name(ranks.device) if ranks.device.type == "cuda" else ranks.device.type
        about = f"{on}, {counted(ranks.world, 'rank')}, {run.precision}"
        self.say(f"training on {about}: steps {start.step:,} to {self._n_steps:,}")

    def timed(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield the batches, and measure the wait for each one. A step's time includes this wait."""
        while True:
            self._step_begun, begun = self._reader.now(), time.perf_counter()
            batch = next(batches, None)
            self._waited += time.perf_counter() - begun
            if batch is None:
                return
            yield batch

    def step(self, batch: Batch, step: Step) -> None:
        """Record one optimiser step. A loss that is NaN or infinite raises InputError, a few steps later on a GPU."""
        self._steps += 1
        rate = learning_rate(self._run, batch.step, self._n_steps)
        about = {"step": batch.step, "negatives": batch.n_views > 2, "lr": rate}
        self._reader.push(step.loss, about, step.cosines, self._step_begun)
        if batch.step == 0 and batch.n_views > 2 and "margin_most" in self._loss_options:
            self._warn_of_far_negatives(*step.cosines)
        self.catch_up(all_of_them=False)

    def _warn_of_far_negatives(self, positive: Tensor, negative: Tensor) -> None:
        """Warn if cosine(anchor, positive) - cosine(anchor, negative) exceeds --margin-most for any sentence."""
        most = self._run.margin_most
        if n := int((positive - negative > most).sum()):  # synchronises a GPU, but only after the first step
            about = f"{n} of {len(negative)} negatives of the first step are already farther away than this"
            self.say(f"--margin-most {most:g}: {about}, and the loss pulls them closer: give a higher value, up to 2")

    def catch_up(self, all_of_them: bool = True) -> None:
        """Record the losses of all steps so far, or only those that are ready without waiting for the GPU."""
        for record in self._reader.due(all_of_them):
            self._record(**record)

    @rank_zero_only
    def _record(self, step: int, loss: float, negatives: bool, **curves: float) -> None:
        """Record a step in metrics.jsonl, in the trackers and on the progress bar. curves: other values of the step."""
        self._write({"step": step, "loss": loss, "negatives": negatives, **curves})
        self._track("log", {"loss/negatives" if negatives else "loss/plain": loss, **curves}, step)
        speed = curves["sentences_per_second"]
        self._bar.set_postfix({"loss": f"{loss:.4g}", "sentences/s": f"{speed:.0f}"}, refresh=False)
        if self._bar.n == self._bar.initial:
            self._bar.unpause()  # so that the speed on the bar excludes the evaluation before the first step
        self._bar.update(step + 1 - self._bar.n)

    @rank_zero_only
    def evaluation(self, progress: Progress, measure: str) -> None:
        """Record the dev score of the last evaluation. measure: what the score is, such as "Spearman"."""
        score = progress.last_score
        assert score is not None
        self._write({"step": progress.step, self._dev: score if math.isfinite(score) else None})
        self._track("log", {self._dev: score}, progress.step)
        best = " (best so far)" if progress.best_step == progress.step else ""
        self.say(f"step {progress.step}: dev {measure} {score:.4f}{best}")

    @rank_zero_only
    def say(self, message: str) -> None:
        """Print a line above the progress bar."""
        self._bar.write(message, file=STDERR)

    @rank_zero_only
    def close(self) -> None:
        """Close metrics.jsonl, the trackers and the progress bar."""
        self._bar.close()
        self._file.close()
        self._track("finish")

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(f"{json.dumps(record)}\n")

    def _track(self, method: str, *arguments: Any) -> None:
        """Call a method of each tracker. Drop a tracker that fails."""
        for name, tracker in [*self._trackers.items()]:
            try:
                getattr(tracker, method)(*arguments)
            except Exception as error:  # trackers raise exceptions of many types
                del self._trackers[name]
                self.say(f"warning: --report-to {name}: {error!r:.200}; the run continues without it")

    def times(self) -> dict[str, Any]:
        """Return this process's number of steps, its run time, and the share of that time spent waiting for batches."""
        seconds = time.perf_counter() - self._begun
        return {"steps": self._steps, "seconds": seconds, "share_of_time": {"data": self._waited / seconds}}


def trim_metrics(output: Path, start: Progress) -> None:
    """Remove from metrics.jsonl the steps and scores after `start`, because the run will write them again."""
    path = output / METRICS
    if path.exists():
        *lines, _ = path.read_bytes().split(b"\n")  # a kill may have truncated the last line
        write_file(path, b"".join(line + b"\n" for line in lines if not _is_later(line, start)))


def _is_later(line: bytes, start: Progress) -> bool:
    scored = -1 if start.evaluated_step is None else start.evaluated_step
    try:
        record = json.loads(line)
        return record["step"] >= start.step if "loss" in record else record["step"] > scored
    except (ValueError, TypeError, KeyError):  # not a line of una_fast: it stays
        return False
