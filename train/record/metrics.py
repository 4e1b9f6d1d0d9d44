"""What a run records about its environment, the progress bar, and the trimming of metrics.jsonl for --resume."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

import una_fast
from train.record.checkpoint import Progress
from train.record.folder import METRICS, write_file
from train.signals import STDERR
from una_fast.parallel import n_cores

PACKAGES = ("torch", "transformers", "tokenizers", "numpy")
LINE_SECONDS = 60.0  # between two lines of the bar without a terminal


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


class Bar(tqdm):
    """A progress bar on standard error. Without a terminal, it prints one line per minute."""

    def __init__(self, start: int, total: int, unit: str, smoothing: float = 0.3) -> None:
        seconds = 0.5 if sys.stderr.isatty() else LINE_SECONDS
        super().__init__(
            initial=start, total=total, unit=unit, smoothing=smoothing, mininterval=seconds, maxinterval=seconds,
            dynamic_ncols=True, file=STDERR,
        )  # fmt: skip


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that determine a result."""
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
    """Return the peak memory of this process in bytes."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    peak = {"resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    if torch.cuda.is_available():
        peak["gpu_bytes"] = torch.cuda.max_memory_allocated()
        peak["gpu_reserved_bytes"] = torch.cuda.max_memory_reserved()  # graphs' memory included
    return peak
