"""The memory of a GPU: a step is tried before the first one, and what a user can lower once the memory is full."""

from __future__ import annotations

import torch

from train.config.run import Run
from train.loop.trainer import Trainer
from train.signals import tell_user


def warn_of_memory(trainer: Trainer) -> None:
    """Tell the user if the GPU cannot hold a step whose texts have --max-length tokens: its gradients are dropped."""
    run, encoder = trainer.run, trainer.encoder
    views = 2 + (trainer.row.negative_views if run.alpha else 0) + (run.mlm_weight > 0)
    rows = views * -(-run.batch_size // trainer.ranks.world)
    part = trainer.part_of_ones(min(rows, run.grad_cache or rows), run.max_length)
    try:
        moments = [torch.empty_like(weight) for weight in encoder.parameters() for _ in range(2)]  # as AdamW keeps them
        with trainer.autocast():
            encoder.embed(part).sum().backward()
        del moments
    except torch.OutOfMemoryError:
        length = f"--max-length {run.max_length}"
        tell_user(f"memory: the GPU cannot hold a step if all of its texts have {length} tokens: {remedy(run)}")
    trainer.zero_grad()


def remedy(run: Run) -> str:
    """What a user can do about a GPU whose memory is full."""
    cache = [] if run.mlm_weight else [f"--grad-cache {max(1, (run.grad_cache or run.batch_size) // 2)}"]
    halves = [] if run.precision != "fp32" else ["--precision bf16"]
    return f"give {', '.join([*cache, *halves, 'a lower --batch-size'])} or a lower --max-length"
