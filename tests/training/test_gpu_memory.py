"""The memory of a GPU on paper, and what a rank says when it is full."""

import sys

import pytest
import torch
from transformers import BertConfig

from bench.training.memory import LiveBytes, fake_batch, fake_trainer
from support.small_runs import ROOT, finish, options, start, train_here
from train.encoder.encoder import SentenceEncoder
from train.launch.memory import warn_of_memory
from train.loop.trainer import Trainer
from una_fast.errors import InputError

CONFIG = BertConfig(hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=1024)


def test_bytes_are_counted_until_they_are_freed():
    with LiveBytes() as counted:
        first = torch.zeros(1000, dtype=torch.float32)
        view = first[:10]
        second = first + 1
        assert counted.live == 8000
        del first, second
        assert counted.live == 4000  # the view holds the first
        del view
    assert (counted.live, counted.peak) == (0, 8000)


def test_a_run_that_will_not_fit_is_told_before_it_starts(capsys, monkeypatch):
    with fake_trainer(CONFIG, 256, precision="fp32") as (trainer, counted):
        warn_of_memory(trainer)
        assert not capsys.readouterr().err
        weights, tried = sum(weight.nbytes for weight in trainer.encoder.parameters()), counted.peak
        assert all(weight.grad is None for weight in trainer.encoder.parameters())
        for step in range(2):
            trainer.step(fake_batch(step, 256, 32, 0))
        assert tried == pytest.approx(counted.peak, rel=0.1) and tried > 4 * weights
        monkeypatch.setattr(SentenceEncoder, "embed", full)
        warn_of_memory(trainer)
    assert capsys.readouterr().err == (
        "memory: the GPU cannot hold a step if all of its texts have --max-length 32 tokens: give --grad-cache 128, "
        "--precision bf16, a lower --batch-size or a lower --max-length\n"
    )


def full(*args, **named):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nmore")


PLACES = {
    "forward": (SentenceEncoder, "forward"),
    "backward": (torch.Tensor, "backward"),
    "optimiser": (torch.optim.AdamW, "step"),
    "evaluation": (Trainer, "embed"),
    "the move to the card": (Trainer, "__init__"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_full_memory_ends_the_run_with_a_sentence(tmp_path, tiny_model, monkeypatch, place):
    def plant(trainer=None):
        monkeypatch.setattr(*PLACES[place], full)

    if place in ("forward", "backward", "optimiser"):  # from the second step on: the model is loaded by then
        plain = Trainer.step
        monkeypatch.setattr(Trainer, "step", lambda trainer, batch: (batch.step and plant(), plain(trainer, batch))[1])
    else:
        plant()
    with pytest.raises(InputError) as refused:
        train_here(options(tmp_path, tiny_model))
    assert str(refused.value) == (
        "the GPU's memory is full: give --grad-cache 4, --precision bf16, a lower --batch-size or a lower --max-length "
        "(CUDA out of memory. Tried to allocate 2 GiB.)"
    )


LOSS = """
import os
import torch
from una_fast.losses import pairs

def full(gradient):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")

def loss(views, temperature):
    if os.environ["RANK"] == "1" and os.environ["PLACE"] == "forward":
        full(None)
    if os.environ["RANK"] == "1":
        views.register_hook(full)
    return pairs(views, temperature)
"""


TORCHRUN = (sys.executable, *"-m torch.distributed.run --standalone --nproc-per-node 2 --no-python".split())


@pytest.mark.slow
@pytest.mark.parametrize(("launcher", "place"), [((), "backward"), (TORCHRUN, "forward")])
def test_a_rank_whose_memory_is_full_ends_all_ranks(tmp_path, tiny_model, monkeypatch, launcher, place):
    (tmp_path / "own_loss.py").write_text(LOSS)
    monkeypatch.setenv("PLACE", place)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    values = options(tmp_path, tiny_model, loss="own_loss:loss", augment="none", **({} if launcher else {"nproc": 2}))
    code, said = finish(start(values, *launcher))
    assert code == 1 and "error: rank 1: the GPU's memory is full: give --grad-cache 4" in said, said
