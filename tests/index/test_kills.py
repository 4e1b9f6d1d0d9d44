"""Saves that are killed at random moments: there is always a complete folder, and later saves clean up."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from una_fast.storage import load_arrays, place, save_arrays

SAVER = """
import sys, itertools
from pathlib import Path
import numpy as np
from una_fast.storage import place, save_arrays
if sys.argv[2] == "renames":
    place._EXCHANGE = None
for i in itertools.count():
    save_arrays(Path(sys.argv[1]), "index", 1, {"i": i}, {name: np.full(1000, i) for name in "abc"})
    print(i, flush=True)
"""
N_KILLS = int(os.environ.get("UNA_FAST_KILLS", "20"))


def kill_a_saver(folder, how, delay):
    """Kill a process that saves to `folder` repeatedly; returns the number of its last complete save."""
    saver = subprocess.Popen(
        [sys.executable, "-c", SAVER, str(folder), how],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    first = int(saver.stdout.readline())
    time.sleep(delay)
    saver.send_signal(signal.SIGKILL)
    return max([first, *map(int, saver.communicate()[0].split("\n")[:-1])])


@pytest.mark.parametrize("how", ["exchange", "renames"])
def test_a_killed_save_leaves_the_old_folder_or_the_new_one(tmp_path, how):
    folder, moments = tmp_path / "saved", random.Random(how)
    for _ in range(N_KILLS // 2):
        last = kill_a_saver(folder, how, moments.uniform(0, 0.05))
        if how == "exchange" and place._EXCHANGE:
            assert folder.exists()
        meta, arrays, _ = load_arrays(folder, "index", 1)
        assert meta["i"] in (last, last + 1)
        assert all((array == meta["i"]).all() for array in arrays.values())
    save_arrays(folder, "index", 1, {"i": -1}, {"a": np.zeros(3)})
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
    assert sorted(path.name for path in folder.iterdir()) == ["a.npy", "manifest.json"]


def test_a_folder_that_a_kill_left_aside_is_put_back(tmp_path, monkeypatch):
    """A kill between the two renames, on a system that cannot exchange folders."""

    class Killed(BaseException):
        pass

    def kill(_folder, _replaced):
        move_aside(_folder, _replaced)
        raise Killed

    move_aside = place._move_aside
    save_arrays(tmp_path / "saved", "index", 1, {"i": 1}, {"a": np.zeros(3)})
    monkeypatch.setattr(place, "_EXCHANGE", None)
    monkeypatch.setattr(place, "_move_aside", kill)
    with pytest.raises(Killed):
        save_arrays(tmp_path / "saved", "index", 1, {"i": 2}, {"a": np.zeros(3)})
    assert not (tmp_path / "saved").exists()
    assert load_arrays(tmp_path / "saved", "index", 1).meta == {"i": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
