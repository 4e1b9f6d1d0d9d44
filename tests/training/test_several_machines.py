"""Ranks on several machines, each with its own index folder and --output, compute the same as on one machine."""

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
import torch

import una_fast
from support.small_runs import assert_same_run, finish, free_port, options, start_prepared, wait_for_step
from train.launch import run as launcher
from train.loop.distributed import Ranks
from una_fast.errors import InputError
from una_fast.index.copies import fetch_index

pytestmark = pytest.mark.slow


def machines(values):
    """Start one rank for each of several machines, with the environment that torchrun sets.

    Each takes its part of this machine's cores: sums over another number of threads differ in the last bits.
    """
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "TORCHELASTIC_RUN_ID": "x",
        "LOCAL_RANK": "0",
    }
    started = []
    for rank, own in enumerate(values):
        of_rank = {"RANK": str(rank), "WORLD_SIZE": str(len(values)), "LOCAL_WORLD_SIZE": str(len(values))}
        with mock.patch.dict(os.environ, shared | of_rank):
            started.append(start_prepared(own))
    return started


@pytest.fixture
def values(tmp_path, tiny_model):
    """The options of each of two machines, which hold copies of one index."""
    both = options(tmp_path, tiny_model)
    una_fast.build_index(Path(both["corpus"][0])).save(both["index"])
    fetch_index(both["index"], tmp_path / "copy")
    return [both, {**both, "index": str(tmp_path / "copy"), "output": str(tmp_path / "other")}]


def test_a_stopped_run_goes_on_where_other_machines_have_no_checkpoint(values, tmp_path):
    """Rank 1 gets the step of the run from rank 0; otherwise it would begin with step 0."""
    whole = {**values[0], "output": str(tmp_path / "whole"), "nproc": 2}
    assert finish(start_prepared(whole))[0] == 0
    first, second = machines(values)
    wait_for_step(first, Path(values[0]["output"]), 2)
    first.send_signal(signal.SIGTERM)
    said = [finish(machine) for machine in (first, second)]
    assert [code for code, _ in said] == [128 + signal.SIGTERM] * 2, said
    assert not Path(values[1]["output"], "last").exists()
    done = [finish(machine) for machine in machines([{**own, "resume": True} for own in values])]
    assert [code for code, _ in done] == [0, 0], done
    assert_same_run(values[0]["output"], whole["output"])


@pytest.mark.parametrize("name", ["corpus", "--learning-rate", "model"])
def test_machines_that_differ_are_refused(monkeypatch, name):
    def gather(found, mine):
        fingerprint, progress = mine
        found[:] = [mine, mine, ({**fingerprint, name: "b"}, progress)]

    monkeypatch.setattr(launcher.dist, "all_gather_object", gather)
    job = SimpleNamespace(fingerprint={"--learning-rate": "a", "corpus": "a", "model": "a"}, progress=None)
    with pytest.raises(InputError, match=f"rank 2 has {name} b, and rank 0 a: give all machines the same options"):
        launcher.agreed(Ranks(1, 3, 0, torch.device("cpu")), job)
