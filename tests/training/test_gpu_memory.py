"""The memory of a GPU on paper, and what a rank says when it is full."""

import os
import sys

import pytest
import torch
from transformers import BertConfig

from bench.training.memory import LiveBytes, fake_batch, fake_trainer
from support.small_runs import options, train_here
from train.config.run import Run
from train.encoder.encoder import SentenceEncoder
from train.launch.run import joined
from train.loop.distributed import Ranks
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
        trainer.try_memory()
        assert not capsys.readouterr().err
        weights, tried = sum(weight.nbytes for weight in trainer.encoder.parameters()), counted.peak
        assert all(weight.grad is None for weight in trainer.encoder.parameters())
        for step in range(2):
            trainer.step(fake_batch(step, 256, 32, 0))
        assert tried == pytest.approx(counted.peak, rel=0.1) and tried > 4 * weights
        monkeypatch.setattr(SentenceEncoder, "embed", full)
        trainer.try_memory()
    assert capsys.readouterr().err == (
        "memory: the GPU cannot hold a step if all of its texts have --max-length 32 tokens: give --grad-cache 128, "
        "--precision bf16, a lower --batch-size or a lower --max-length\n"
    )


def full(*args, **named):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nmore")


@pytest.mark.parametrize("world", [1, 2])
def test_a_full_memory_ends_the_run_with_a_sentence(tmp_path, tiny_model, monkeypatch, capsys, world):
    """A rank of several ends its process, because the others wait for it in an exchange: the launcher ends them."""
    plain = Trainer.step
    monkeypatch.setattr(Trainer, "step", lambda trainer, batch: full() if batch.step else plain(trainer, batch))
    sentence = (
        "the GPU's memory is full: give --grad-cache 4, --precision bf16, a lower --batch-size or a lower --max-length "
        "(CUDA out of memory. Tried to allocate 2 GiB.)"
    )
    if world == 1:
        with pytest.raises(InputError) as refused:
            train_here(options(tmp_path, tiny_model))
        assert str(refused.value) == sentence
        return
    in_group = iter((True, False))  # until the process has ended
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr("train.launch.run.join_group", lambda device: Ranks(1, 2, 0, torch.device(device)))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: next(in_group))
    monkeypatch.setattr(os, "_exit", sys.exit)
    with pytest.raises(SystemExit, match="1"), joined(Run(device="cpu", batch_size=8, precision="fp32")):
        full()
    assert f"error: rank 1: {sentence}\n" in capsys.readouterr().err
