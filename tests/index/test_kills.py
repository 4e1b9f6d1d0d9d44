"""Saves that are killed at random moments: the folder always holds a complete save, and later saves clean up."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from una_fast.storage import load_arrays, save_arrays

pytestmark = pytest.mark.slow

SAVER = """
import sys, itertools
from pathlib import Path
import numpy as np
from una_fast.storage import save_arrays
for i in itertools.count():
    save_arrays(Path(sys.argv[1]), "index", 1, {"i": i}, {name: np.full(1000, i) for name in "abc"})
    print(i, flush=True)
"""
N_KILLS = int(os.environ.get("UNA_FAST_KILLS", "20"))


def kill_a_saver(folder, delay):
    """Kill a process that saves to `folder` repeatedly; returns the number of its last complete save."""
    saver = subprocess.Popen(
        [sys.executable, "-c", SAVER, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    first = int(saver.stdout.readline())
    time.sleep(delay)
    saver.send_signal(signal.SIGKILL)
    return max([first, *map(int, saver.communicate()[0].split("\n")[:-1])])


def test_a_killed_save_leaves_the_old_content_or_the_new_one(tmp_path):
    folder, moments = tmp_path / "saved", random.Random(0)
    for _ in range(N_KILLS):
        last = kill_a_saver(folder, moments.uniform(0, 0.05))
        meta, arrays = load_arrays(folder, "index", 1)
        assert meta["i"] in (last, last + 1)
        assert all((array == meta["i"]).all() for array in arrays.values())
    save_arrays(folder, "index", 1, {"i": -1}, {"a": np.zeros(3)})
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
    left = sorted(path.name for path in folder.iterdir())
    assert len(left) == 2 and left[0].startswith("a-") and left[1] == "manifest.json"
