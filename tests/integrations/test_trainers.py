"""Trainers get new negatives in every epoch, and the same ones on any number of ranks."""

import json
import multiprocessing
import os
from functools import partial

import pytest
import torch
from torch import nn
from transformers import TrainerCallback

import una_fast
from support.sentence_trainer import Given, make_trainer
from support.small_runs import free_port, write_corpus
from una_fast.integrations.sentence_transformers import PairsLoss

pytestmark = pytest.mark.slow
ROWS = 18  # two are blank; the others make four batches per epoch, or two on each of two ranks
KINDS = ("text", "rows")


class RecordingLoss(nn.Module):
    """A loss that records its input."""

    def __init__(self, model, seen):
        super().__init__()
        self.model, self.seen = model, seen

    def forward(self, features, labels=None):
        assert len(features) == 3
        self.seen[-1].update(zip(ids_of(features[0]), ids_of(features[2]), strict=True))
        return self.model(dict(features[0]))["sentence_embedding"].sum()


def ids_of(features):
    """Return the ids of each text, without padding."""
    pairs = zip(features["input_ids"], features["attention_mask"].bool(), strict=True)
    return [" ".join(map(str, ids[mask].tolist())) for ids, mask in pairs]


def record(kind, folder, model, **arguments):
    """Train two epochs. Return for each epoch a dict from the ids of a sentence to the ids of its negative."""
    seen, epochs = [], TrainerCallback()
    epochs.on_epoch_begin = lambda *args, **kwargs: seen.append({})
    loss, by_rows = partial(RecordingLoss, seen=seen), kind == "rows"
    settings = {"num_train_epochs": 2, **arguments}
    make_trainer(folder / "index", model, folder / "output", loss, by_rows, epochs, **settings).train()
    return seen


# float (3, 6, 8): anchors, positives and negatives of six sentences
EMBEDDINGS = torch.randn(3, 6, 8, generator=torch.Generator().manual_seed(0))


def pairs_loss(views):
    """Return `PairsLoss` of views (3, B, D), gathered from all ranks, and its gradient."""
    leaf = views.clone().requires_grad_()
    value = PairsLoss(Given(), alpha=1, gather_across_devices=True)([{"embedding": view} for view in leaf])
    value.backward()
    return value.item(), leaf.grad.tolist()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    una_fast.build_index(write_corpus(folder / "corpus.txt", ROWS)).save(folder / "index")
    return folder


@pytest.fixture(scope="module")
def one_process(folder, tiny_model):
    """Return the negatives that a single process gets."""
    return {kind: record(kind, folder, tiny_model) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_negatives_are_new_in_every_epoch(one_process, kind):
    first, second = one_process[kind]
    assert first.keys() == second.keys() and len(first) == ROWS - 2
    assert sum(first[anchor] != second[anchor] for anchor in first) > ROWS // 2
    assert not set(first.values()) & {""}


def record_rank(rank, port, folder, model):
    """Record all kinds on one of two ranks, and this rank's gradient of a loss over both ranks."""
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in names.items()})
    found = {kind: record(kind, folder, model, ddp_backend="gloo") for kind in KINDS}
    found["loss"], found["gradient"] = pairs_loss(EMBEDDINGS[:, 3 * rank : 3 * (rank + 1)])
    (folder / f"rank{rank}.json").write_text(json.dumps(found), encoding="utf-8")


@pytest.fixture(scope="module")
def ranks(folder, tiny_model):
    """Return the records of each of two ranks."""
    context, port = multiprocessing.get_context("spawn"), free_port()
    processes = [context.Process(target=record_rank, args=(rank, port, folder, tiny_model)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_together_get_the_negatives_of_one_process(one_process, ranks, kind):
    one, other = (rank[kind] for rank in ranks)
    assert [{**first, **second} for first, second in zip(one, other, strict=True)] == one_process[kind]
    assert [len(epoch) for epoch in one + other] == [len(one_process[kind][0]) // 2] * 4


def test_a_loss_over_all_ranks_equals_the_loss_of_one_process(ranks):
    """Each rank's gradient is multiplied by the number of ranks, so DDP's mean equals the gradient of one process."""
    loss, gradient = pairs_loss(EMBEDDINGS)
    assert [rank["loss"] for rank in ranks] == pytest.approx([loss] * 2)
    found = torch.cat([torch.tensor(rank["gradient"]) for rank in ranks], dim=1)
    assert torch.allclose(found, 2 * torch.tensor(gradient), atol=1e-6)
