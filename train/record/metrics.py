"""Collects what a run records: losses and speed of its steps, package versions, the machine, and peak memory.

It also provides the progress bar, and trims metrics.jsonl when a run continues.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import platform
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

import una_fast
from train.record.checkpoint import Progress
from train.record.folder import METRICS, write_file
from train.signals import STDERR
from una_fast.errors import InputError
from una_fast.parallel import n_cores

LINE_SECONDS = 60.0  # between two lines of the bar without a terminal
LATE_STEPS = 8  # a GPU's loss is read this many steps later: by then it is computed, so reading does not wait


def cut_metrics(output: Path, start: Progress) -> None:
    """Remove from metrics.jsonl the steps and scores after `start`, because the run will write them again.

    Lines in another format stay. Raises InputError if the file cannot be written.
    """
    path = output / METRICS
    if path.exists():
        *lines, _ = path.read_bytes().split(b"\n")  # a kill may have truncated the last line
        write_file(path, b"".join(line + b"\n" for line in lines if not _is_later(line, start)))


def _is_later(line: bytes, start: Progress) -> bool:
    """Return whether a line of metrics.jsonl belongs to a step or a score after `start`."""
    try:
        record = json.loads(line)
        scored = -1 if start.evaluated_step is None else start.evaluated_step
        return record["step"] >= start.step if "loss" in record else record["step"] > scored
    except (ValueError, TypeError, KeyError):
        return False


class Bar(tqdm):
    """A progress bar on standard error. Without a terminal, it prints one line per minute."""

    def __init__(self, start: int, total: int, unit: str, smoothing: float = 0.3) -> None:
        seconds = 0.5 if sys.stderr.isatty() else LINE_SECONDS
        super().__init__(
            initial=start, total=total, unit=unit, smoothing=smoothing, mininterval=seconds, maxinterval=seconds,
            dynamic_ncols=True, file=STDERR,
        )  # fmt: skip


class AsyncLossReader:
    """Reads the losses of steps. On a GPU, it reads a loss LATE_STEPS steps later, so that no step waits for it."""

    def __init__(self, device: torch.device) -> None:
        self._late = LATE_STEPS if device.type == "cuda" else 0
        self._pending: deque[tuple[Tensor, Any, Any, dict[str, Any]]] = deque()

    def now(self) -> Any:
        """Return the current time, to measure how long a step takes: seconds on a CPU, a CUDA event on a GPU.

        A clock on the CPU cannot measure a step on a GPU, because the GPU computes the step after its launch.
        """
        if not self._late:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def push(self, loss: Tensor, about: dict[str, Any], cosines: Tensor, begun: Any) -> None:
        """Queue the results of a step. `due` returns them later.

        Args:
            loss: the loss, a scalar.
            about: other entries of the step's line in metrics.jsonl, including "step".
            cosines: float (1 or 2, B), the cosines of B anchors with their positives and, if any, their negatives.
            begun: the result of `now` at the beginning of the step.
        """
        read = torch.cat([loss.detach()[None], cosines.mean(1)])  # one copy to the host for all
        if self._late:
            read = torch.empty_like(read, device="cpu", pin_memory=True).copy_(read, non_blocking=True)
        self._pending.append((read, begun, self.now(), {"n": cosines.shape[1], **about}))

    def due(self, all_of_them: bool = False) -> Iterator[dict[str, Any]]:
        """Yield one dict for metrics.jsonl per queued step. On a GPU, the newest LATE_STEPS steps stay in the queue.

        all_of_them: empty the queue, and wait for the GPU. Raises InputError, on all ranks, if a loss is NaN or
        infinite.
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


PACKAGES = ("torch", "transformers", "tokenizers", "numpy")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a result depends on."""
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), "una_fast": una_fast.__version__, **packages}


def machine() -> dict[str, Any]:
    """Return the system, processor, number of cores and GPUs of this machine."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    processor = names[0] if names else platform.processor() or platform.machine()
    return {"system": platform.platform(), "processor": processor, "cores": n_cores(None), "gpus": gpus}


def peak_memory() -> dict[str, int]:
    """Return the peak memory use of this process in bytes. With a GPU, include allocated and reserved GPU memory."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    peak = {"resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    if torch.cuda.is_available():
        peak["gpu_bytes"] = torch.cuda.max_memory_allocated()
        peak["gpu_reserved_bytes"] = torch.cuda.max_memory_reserved()  # graphs' memory included
    return peak
