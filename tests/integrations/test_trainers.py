"""The negatives that trainers get: new in every epoch, the same for any workers and ranks, and after a stop."""

import json
import os
import subprocess
import sys

import pytest
import torch

import una_fast
from support.recorded_training import KINDS, ROWS, embeddings, pairs_loss, record
from support.small_runs import ROOT, free_port, write_corpus

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    una_fast.build_index(write_corpus(folder / "corpus.txt", ROWS)).save(folder / "index")
    return folder


@pytest.fixture(scope="module")
def alone(folder, tiny_model):
    """The negatives that one process without workers gets."""
    return {kind: record(kind, folder, tiny_model) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_negatives_are_new_in_every_epoch(alone, kind):
    first, second = alone[kind]
    assert first.keys() == second.keys() and len(first) == ROWS - 2
    assert sum(first[anchor] != second[anchor] for anchor in first) > ROWS // 2
    assert not set(first.values()) & {""}


@pytest.fixture(scope="module")
def ranks(folder, tiny_model):
    """The records of each of two ranks."""
    command, port = [sys.executable, "-m", "support.recorded_training", str(folder), str(tiny_model)], str(free_port())
    processes = [
        subprocess.Popen(
            [*command, str(rank)],
            env={
                **os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]), "OMP_NUM_THREADS": "1",
                "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port,
            },
        )
        for rank in range(2)
    ]  # fmt: skip
    assert [process.wait() for process in processes] == [0, 0]
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_see_what_one_sees(alone, ranks, kind):
    one, other = (rank[kind] for rank in ranks)
    assert [{**first, **second} for first, second in zip(one, other, strict=True)] == alone[kind]
    assert [len(epoch) for epoch in one + other] == [len(alone[kind][0]) // 2] * 4


def test_a_loss_over_all_ranks_is_that_of_one(ranks):
    """Each rank's gradient is multiplied by the number of ranks, so DDP's mean equals the gradient of one rank."""
    loss, gradient = pairs_loss(embeddings())
    assert [rank["loss"] for rank in ranks] == pytest.approx([loss] * 2)
    found = torch.cat([torch.tensor(rank["gradient"]) for rank in ranks], dim=1)
    assert torch.allclose(found, 2 * torch.tensor(gradient), atol=1e-6)
