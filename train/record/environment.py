"""What run.json records about the versions, the machine and the memory of a run."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from pathlib import Path
from typing import Any

import torch

import una_fast
from una_fast.parallel import n_cores

PACKAGES = ("torch", "transformers", "tokenizers", "numpy")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that determine a result."""
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), "una_fast": una_fast.__version__, **packages}


def machine() -> dict[str, Any]:
    """Return the name of the system and of the processor, the number of cores, and the names of the GPUs."""
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
