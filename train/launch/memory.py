"""The memory of a GPU: what a step needs is told before the first one, and what to lower once the memory is full."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from train.config.run import Run
from train.loop.trainer import Trainer
from train.signals import tell_user
from una_fast.errors import InputError

GIB = 2**30
MOMENTARY = 1.1  # what the kernels of a backward pass hold for a moment: 5 to 15 % of what it keeps, in 24 to 2 layers
ROWS = 4  # texts of the smaller of two parts that are encoded to count bytes


def warn_of_memory(trainer: Trainer, free: int) -> None:
    """Tell the user if a step with texts of --max-length tokens needs more than the `free` bytes of the GPU."""
    needed = bytes_of_step(trainer)
    if needed > free and trainer.ranks.first:
        length = trainer.run.max_length
        tell_user(
            f"memory: a step needs {needed / GIB:.1f} GiB of the GPU if its texts have --max-length {length} tokens, "
            f"and {free / GIB:.1f} GiB are free: {remedy(trainer.run)}"
        )


def bytes_of_step(trainer: Trainer) -> int:
    """Bytes at the peak of a step, beside the weights: what its backward pass keeps, gradients, and two moments.

    See `bench.training.memory`, which counts each allocation: this is within 6 % of it for BERT.
    """
    run, weights = trainer.run, [*trainer.encoder.parameters()]
    views = 2 + (trainer.row.negative_views if run.alpha else 0) + (run.mlm_weight > 0)
    rows = views * -(-run.batch_size // trainer.ranks.world)
    kept, twice = (bytes_kept(trainer, n) for n in (ROWS, 2 * ROWS))  # both with the weights' copies in bf16 or fp16
    of_row = (twice - kept) // ROWS
    activations = int(MOMENTARY * (kept + (min(rows, run.grad_cache or rows) - ROWS) * of_row))
    gradients = sum(weight.nbytes for weight in weights if weight.requires_grad)
    at_once = activations + gradients if run.grad_cache else max(activations, gradients)
    return 2 * gradients + at_once


def bytes_kept(trainer: Trainer, rows: int) -> int:
    """Bytes that the backward pass of `rows` texts of --max-length tokens needs, without the weights."""
    weights = {weight.untyped_storage()._cdata for weight in trainer.encoder.parameters()}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in weights:
            kept[storage._cdata] = storage.nbytes()
        return tensor

    part = trainer.part_of_ones(rows, trainer.run.max_length)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor), trainer.autocast():
        held = trainer.encoder.embed(part)  # holds what is counted, so that none of it is freed meanwhile
    return sum(kept.values()) + held.nbytes


def remedy(run: Run) -> str:
    """What a user can do about a GPU whose memory is full."""
    cache = [] if run.mlm_weight else [f"--grad-cache {max(1, (run.grad_cache or run.batch_size) // 2)}"]
    halves = [] if run.precision != "fp32" else ["--precision bf16"]
    return f"give {', '.join([*cache, *halves, 'a lower --batch-size'])} or a lower --max-length"


@contextmanager
def full_memory_named(run: Run) -> Iterator[None]:
    """An allocation that fails on the GPU inside ends this process with a sentence.

    In a group the process ends at once: the other ranks wait for it in an exchange, and its launcher ends them.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        first_line = f"{error}".partition("\n")[0]
        sentence = f"the GPU's memory is full: {remedy(run)} ({first_line})"
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            tell_user(f"error: rank {os.environ['RANK']}: {sentence}")
            os._exit(1)
        raise InputError(sentence) from error
