"""Ranks as processes: one finds bad input, or dies, or a signal comes, and the others are ended at once."""

import signal

import numpy as np
import pytest
import torch

from support import rank_processes
from train.generation import work
from train.generation.work import Stop, run_ranks
from una_fast.errors import InputError

DEVICES = [torch.device("cpu")] * 2
DONE = np.zeros(9, dtype=np.bool_)


@pytest.mark.slow
def test_a_rank_that_dies_is_named_and_the_others_end(monkeypatch):
    monkeypatch.setattr(work, "_write_rank", rank_processes.one_dies)
    assert run_ranks(None, DEVICES, DONE, Stop(), lambda n: None) == "rank 1 died (exit code -9)"


@pytest.mark.slow
def test_bad_input_of_a_rank_is_raised_and_the_others_end(monkeypatch):
    monkeypatch.setattr(work, "_write_rank", rank_processes.one_refuses)
    with pytest.raises(InputError, match="^a file is cut short$"):
        run_ranks(None, DEVICES, DONE, Stop(), lambda n: None)


def test_a_signal_ends_all_ranks(monkeypatch):
    monkeypatch.setattr(work, "_write_rank", rank_processes.none_ends)
    stop, wrote = Stop(), []

    def stop_now(n_lines):
        wrote.append(n_lines)
        stop(signal.SIGTERM)

    assert run_ranks(None, DEVICES, DONE, stop, stop_now) == "" and wrote[0] == 3
