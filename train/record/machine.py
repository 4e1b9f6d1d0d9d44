"""The machine, the versions and the memory of a run."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from pathlib import Path
from typing import Any

import torch

from una_fast.parallel import n_cores

PACKAGES = ("una_fast", "torch", "transformers", "tokenizers", "numpy")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide a result."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


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
