"""Ranks as processes: one finds bad input, or dies, and the others stop."""

import signal

import numpy as np
import pytest
import torch

from support import rank_processes
from train.generation import ranks
from train.generation.ranks import Stop, run_ranks
from una_fast.errors import InputError

DEVICES = [torch.device("cpu")] * 2
DONE = np.zeros(9, dtype=np.bool_)


def test_a_rank_that_dies_is_named_and_the_others_stop(monkeypatch):
    monkeypatch.setattr(ranks, "_rank_process", rank_processes.one_dies)
    wrote = []
    assert run_ranks(None, DEVICES, DONE, Stop(), wrote.append) == "rank 1 died (exit code -9)"
    assert wrote in ([], [3])  # [] if the other rank had not begun


def test_bad_input_of_a_rank_is_raised_and_the_others_stop(monkeypatch):
    monkeypatch.setattr(ranks, "_rank_process", rank_processes.one_refuses)
    wrote = []
    with pytest.raises(InputError, match="^a file is cut short$"):
        run_ranks(None, DEVICES, DONE, Stop(), wrote.append)
    assert wrote in ([], [3])


def test_a_stop_does_not_wait_for_a_rank_that_still_loads(monkeypatch):
    monkeypatch.setattr(ranks, "_rank_process", rank_processes.one_loads)
    stop, wrote = Stop(), []

    def stop_now(n_lines):
        wrote.append(n_lines)
        stop(signal.SIGTERM)

    assert run_ranks(None, DEVICES, DONE, stop, stop_now) == "" and wrote == [3]
