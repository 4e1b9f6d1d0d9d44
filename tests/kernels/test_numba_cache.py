"""Numba's cache: if processes and threads start at once, one compiles, and all get kernels that work."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
ENVIRONMENT.pop("NUMBA_DISABLE_JIT", None)
SCRIPT = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from una_fast._kernels import csr
with ThreadPoolExecutor(3) as threads:
    list(threads.map(lambda _: csr.warm_up(), range(3)))
start, stop = np.empty((2, 3), dtype=np.int32)
csr.score_windows(np.array([3.0, 2.5, 1.0]), 0.6, start, stop)
print(start.tolist(), stop.tolist(), sum(sum(kernel.stats.cache_misses.values()) for kernel in csr._SIGNATURES))
"""


def run(environment):
    return subprocess.Popen([sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, text=True)


def test_processes_that_start_together_compile_once(tmp_path):
    running = [run({**ENVIRONMENT, "NUMBA_CACHE_DIR": str(tmp_path)}) for _ in range(4)]
    printed = [process.communicate(timeout=120)[0].rsplit(" ", 1) for process in running]
    assert [process.returncode for process in running] == [0] * 4
    assert {result for result, _ in printed} == {"[0, 0, 2] [2, 2, 3]"}
    misses = sorted(int(count) for _, count in printed)
    assert misses[:3] == [0, 0, 0]  # three loaded the kernels that one compiled
    assert misses[3] > 0


def test_kernels_work_where_no_cache_can_be_written():
    no_place = run({**ENVIRONMENT, "NUMBA_CACHE_LOCATOR_CLASSES": "IPythonCacheLocator"})  # none here
    assert no_place.communicate(timeout=120)[0].startswith("[0, 0, 2] [2, 2, 3]")
