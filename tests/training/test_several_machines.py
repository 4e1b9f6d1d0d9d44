"""Ranks on several machines, each with its own index folder and --output, compute the same as on one machine."""

import os
import signal
from pathlib import Path
from unittest import mock

import pytest
import torch

import una_fast
from support.small_runs import assert_same_run, finish, free_port, options, start_prepared, wait_for_step
from train.config.run import Run
from train.launch.run import beginning
from train.loop.distributed import Ranks
from una_fast.errors import InputError
from una_fast.index.copies import fetch_index

pytestmark = pytest.mark.slow


def machines(values):
    """Start one rank for each of several machines, with the environment that torchrun sets.

    Each takes its part of this machine's cores: sums over another number of threads differ in the last bits.
    """
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "TORCHELASTIC_RUN_ID": "x"}
    started = []
    for rank, own in enumerate(values):
        of_rank = {"RANK": str(rank), "WORLD_SIZE": str(len(values)), "LOCAL_WORLD_SIZE": str(len(values))}
        with mock.patch.dict(os.environ, {**shared, **of_rank, "LOCAL_RANK": "0"}):
            started.append(start_prepared(own))
    return started


def test_a_stopped_run_goes_on_where_other_machines_have_no_checkpoint(tmp_path, tiny_model):
    """Rank 1 gets the step of the run from rank 0; otherwise it would begin with step 0."""
    first_machine = options(tmp_path, tiny_model)
    una_fast.build_index(Path(first_machine["corpus"][0])).save(first_machine["index"])
    fetch_index(first_machine["index"], tmp_path / "copy")
    values = [first_machine, {**first_machine, "index": str(tmp_path / "copy"), "output": str(tmp_path / "other")}]
    whole = {**values[0], "output": str(tmp_path / "whole"), "nproc": 2}
    assert finish(start_prepared(whole))[0] == 0
    first, second = machines(values)
    wait_for_step(first, Path(values[0]["output"]), 2)
    first.send_signal(signal.SIGTERM)
    said = [finish(machine) for machine in (first, second)]
    assert [code for code, _ in said] == [128 + signal.SIGTERM] * 2, said
    assert not Path(values[1]["output"]).exists()
    done = [finish(machine) for machine in machines([{**own, "resume": True} for own in values])]
    assert [code for code, _ in done] == [0, 0], done
    assert_same_run(values[0]["output"], whole["output"])


@pytest.mark.parametrize("name", ["corpus", "--learning-rate", "model"])
def test_machines_that_differ_are_refused(monkeypatch, name):
    fingerprint = {"--learning-rate": "a", "corpus": "a", "model": "a"}
    monkeypatch.setattr(torch.distributed, "broadcast_object_list", lambda sent: sent.__setitem__(0, fingerprint))
    monkeypatch.setattr(torch.distributed, "all_gather_object", lambda into, mine: into.__setitem__(2, mine))
    with pytest.raises(InputError, match=f"rank 2 has {name} b, and rank 0 a: give all machines the same options"):
        beginning(Run(output=""), Ranks(2, 3, 0, torch.device("cpu")), {**fingerprint, name: "b"})
