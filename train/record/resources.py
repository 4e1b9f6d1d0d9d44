"""The machine, the versions and the memory of a run, and how its time divides into phases."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

import una_fast
from una_fast.parallel import n_cores

PACKAGES = ("torch", "transformers", "tokenizers", "numpy")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide a result."""
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), "una_fast": una_fast.__version__, **packages}


def machine() -> dict[str, Any]:
    """The system, processor, number of cores and GPUs of this machine."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        processor = names[0] if names else processor
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {"system": platform.platform(), "processor": processor, "cores": n_cores(None), "gpus": gpus}


def peak_memory() -> dict[str, int]:
    """Peak memory in bytes: resident memory of this process and, of the GPU, allocated and reserved memory."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    peak = {"resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    if torch.cuda.is_available():
        peak["gpu_bytes"] = torch.cuda.max_memory_allocated()
        peak["gpu_reserved_bytes"] = torch.cuda.max_memory_reserved()  # graphs' memory included
    return peak


class Stopwatch:
    """Seconds by phase: the time of this process on a CPU, the device's own time on a GPU.

    On a GPU a phase lasts from the event at its beginning to the event at its end. It includes the time in which the
    device waits, and no step waits for the measurement; the sums are complete after `finish`.
    """

    def __init__(self, device: torch.device) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._on_gpu = device.type == "cuda"
        self._running: deque[tuple[str, torch.cuda.Event, torch.cuda.Event]] = deque()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time the block as `name`."""
        if not self._on_gpu:
            begun = time.perf_counter()
            yield
            self.seconds[name] += time.perf_counter() - begun
            return
        begins, ends = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begins.record()
        yield
        ends.record()
        self._running.append((name, begins, ends))
        while self._running and self._running[0][-1].query():
            self._read()

    def finish(self) -> None:
        """Wait for the device, and add the phases that were not read yet."""
        while self._running:
            self._running[0][-1].synchronize()
            self._read()

    def idle_share(self, total: float) -> float:
        """The share of `total` seconds in which the device waited for the host; on a CPU, the steps for their data.

        A GPU counts as waiting between the phases of its work; gaps between the kernels of a phase are not seen.
        """
        if self._on_gpu:
            return max(0.0, 1 - sum(spent for name, spent in self.seconds.items() if name != "data") / total)
        return self.seconds["data"] / total

    def _read(self) -> None:
        name, begins, ends = self._running.popleft()
        self.seconds[name] += begins.elapsed_time(ends) / 1000
