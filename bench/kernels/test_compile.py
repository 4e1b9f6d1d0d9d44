"""Time before a process's first kernel runs: Numba compiles once on a machine, and loads its cache after that."""

import subprocess
import sys
from pathlib import Path

import pytest

CHILD = """
import time
from una_fast._kernels import csr
start = time.perf_counter()
csr.warm_up()
print(time.perf_counter() - start)
"""


@pytest.mark.parametrize("cached", [False, True], ids=["compiled", "cached"])
def test_numba_kernels_become_ready(note, tmp_path: Path, cached: bool) -> None:
    if note.benchmark.disabled:
        pytest.skip("a compilation takes long, and only its time is of interest: pytest --benchmark-only")
    folders = (tmp_path / ("full" if cached else f"empty_{i}") for i in range(10))
    if cached:
        seconds_to_warm_up(tmp_path / "full")
    label = "Numba kernels from the cache" if cached else "Numba kernels compiled"
    seconds = note("before the first call", 0, label, 0, lambda: seconds_to_warm_up(next(folders)), rounds=1)
    note.benchmark.extra_info["seconds"] = seconds  # time of the kernels alone: most of the round is Python's start


def seconds_to_warm_up(cache: Path) -> float:
    """Seconds that the kernels take in a process of its own, without the imports."""
    environment = {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": ":".join(sys.path)}
    out = subprocess.run([sys.executable, "-c", CHILD], env=environment, check=True, capture_output=True, text=True)
    return float(out.stdout)
