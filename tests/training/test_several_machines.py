"""Ranks on several machines, each with its own index folder and --output: rank 0 says where all begin."""

import pytest
import torch

from train.config.run import Run
from train.launch.run import beginning
from train.loop.distributed import Ranks
from train.record.checkpoint import Progress
from una_fast.errors import InputError

FINGERPRINT = {"--learning-rate": "a", "corpus": "a", "model": "a"}
OTHER = Ranks(2, 3, 0, torch.device("cpu"))


@pytest.fixture(autouse=True)
def rank_0(monkeypatch):
    """Rank 0 sends its fingerprint, and a checkpoint of step 5."""
    sent = [FINGERPRINT, Progress(step=5), {"weights": 1}, False]
    monkeypatch.setattr(torch.distributed, "broadcast_object_list", lambda into: into.__setitem__(slice(None), sent))
    monkeypatch.setattr(torch.distributed, "all_gather_object", lambda into, mine: into.__setitem__(2, mine))


def test_a_machine_without_a_checkpoint_begins_where_rank_0_does(tmp_path):
    run = Run(output=str(tmp_path / "none"), resume=True)
    assert beginning(run, OTHER, FINGERPRINT) == (Progress(step=5), {"weights": 1}, False)


@pytest.mark.parametrize("name", FINGERPRINT)
def test_machines_that_differ_are_refused(name):
    with pytest.raises(InputError, match=f"rank 2 has {name} b, and rank 0 a: give all machines the same options"):
        beginning(Run(output=""), OTHER, {**FINGERPRINT, name: "b"})
