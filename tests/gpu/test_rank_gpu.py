"""Several ranks with CUDA graphs, proven on one GPU: two ranks over gloo share it, and NCCL has a group of one rank.

Not run yet: written without a GPU.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from support.fake_tokens import SETTINGS, make_trainer
from train.config import Run
from train.distributed import Ranks
from train.encoder.pretrained import quiet

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that PyTorch can use")
SENTENCES, EPOCHS, STOP = 47, 4, 13


def steps_of(ranks, model, compile, precision, state=None, stop=100, **settings):
    """Train. Return the losses, the weights, the trainer's state, and the number of graphs and collective calls."""
    settings = {**SETTINGS, "dropout": 0.1, "epochs": EPOCHS, "device": "cuda", **settings}
    run = Run(model=str(model), augment="una", compile=compile, precision=precision, **settings)
    trainer, maker = make_trainer(run, ranks, sentences=SENTENCES, state=state, n_parts=1, multiple=8)
    first = 0 if state is None else STOP
    batches = [batch for batch in trainer.plan.batches() if first <= batch[0] < stop]
    losses = [trainer.step(maker.make(*batch).to(ranks.device)).loss for batch in batches]
    found = {
        "losses": [loss.item() for loss in losses],
        "weights": {name: weight.cpu() for name, weight in trainer.encoder.state_dict().items()},
        "pieces": [len(graph.pieces) for graph in trainer.graphs.captured.values()] if trainer.graphs else [],
        "state": trainer.state(),
    }
    trainer.close()
    return found


def train_rank(ranks, folder, model, *how):
    """Train as a rank that shares the GPU with the others. gloo copies what the ranks exchange to the CPU and back."""
    quiet()
    gpu = torch.device("cuda", 0)
    torch.cuda.set_device(gpu)
    torch.save(steps_of(replace(ranks, local_rank=0, device=gpu), model, *how), Path(folder) / f"{ranks.rank}.pt")


@pytest.fixture(scope="module")
def ranks_train(groups, tmp_path_factory, tiny_model):
    def train(*how):
        folder = tmp_path_factory.mktemp("ranks")
        groups(2).call(train_rank, str(folder), str(tiny_model), *how)
        return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(2)]

    return train


def assert_same(one, other):
    same = one["losses"] == other["losses"]
    assert same and all(torch.equal(weight, other["weights"][name]) for name, weight in one["weights"].items())


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_two_ranks_on_one_gpu_have_equal_bits_with_and_without_graphs(ranks_train, precision):
    eager, replayed = ranks_train("off", precision), ranks_train("graphs", precision)
    for one, other in zip(eager, replayed, strict=True):
        assert_same(one, other)
        assert len(other["pieces"]) > 1 and set(other["pieces"]) == {5}  # three graphs and two sums
    assert_same(*replayed)


def test_two_ranks_on_one_gpu_resume_with_equal_bits(ranks_train):
    whole = ranks_train("graphs", "bf16")
    stopped = ranks_train("graphs", "bf16", None, STOP)
    resumed = ranks_train("graphs", "bf16", stopped[0]["state"])
    for one, other in zip(whole, resumed, strict=True):
        assert_same({**one, "losses": one["losses"][STOP:]}, other)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_nccl_calls_between_graphs(tiny_model, precision):
    """NCCL refuses two ranks on a GPU. Here the group has only rank 0 of two, and the rows of the other are 0."""
    gpu = torch.device("cuda", 0)
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1, device_id=gpu)
    try:
        eager, replayed = (steps_of(Ranks(0, 2, 0, gpu), tiny_model, way, precision) for way in ("off", "graphs"))
    finally:
        dist.destroy_process_group()
    assert_same(eager, replayed)
    assert len(replayed["pieces"]) > 1 and set(replayed["pieces"]) == {5}
