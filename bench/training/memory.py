"""Compute the memory of a training step with FakeTensors, which have shapes but no data.

``python -m bench.training.memory`` prints the table of docs/recipes.md. It adds up what PyTorch allocates, kernel by
kernel, without the CUDA context (about 0.5 GiB) and the allocator's unused memory.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import BertConfig, BertModel

from bench import script
from bench.report import table
from train.config import Run
from train.distributed import Ranks
from train.encoder.encoder import SentenceEncoder
from train.loop.data import Batch, Plan
from train.loop.trainer import Trainer

TOKENS, VIEWS = 32, 3  # tokens of every text; views of a step with --loss triplet
BERT_BASE = BertConfig()
BERT_LARGE = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
BATCHES = (64, 256, 1024)
WAYS: tuple[dict[str, Any], ...] = (
    {"precision": "fp32"},
    {"precision": "bf16"},
    {"precision": "bf16", "grad_cache": 256},
)


class LiveBytes(TorchDispatchMode):
    """Counts the memory of everything that PyTorch does in the with block.

    live, peak: the bytes of all live tensors, now and at most so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, kernel: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a kernel, and count what it allocates."""
        result = kernel(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self.add(leaf)
        return result

    def add(self, tensor: Tensor) -> None:
        """Count the memory of a tensor until it is freed."""
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return
        self._known.add(key)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._free, key, size)

    def _free(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.live -= size


def _attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, dropout_p: float = 0.0, **named: Any
) -> Tensor:
    """Compute attention by the kernel that a GPU uses with dropout and a mask.

    This kernel does not store the matrix of attention weights, (n_tokens, n_tokens).
    """
    mask = attn_mask
    if mask is not None:
        shape = (len(query), query.shape[1], query.shape[2], key.shape[2])
        mask = query.new_zeros(mask.shape).expand(shape)
    efficient = torch.ops.aten._scaled_dot_product_efficient_attention
    return efficient(query, key, value, mask, True, dropout_p)[0]


def _dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.native_dropout(input, p, training)[0] if training and p else input


@contextmanager
def as_on_a_gpu() -> Iterator[None]:
    """In the with block, use the attention, dropout and autocast of a GPU.

    CPU tensors then take as much memory as on a GPU.
    """
    norm = functional.layer_norm

    def layer_norm(input: Tensor, *args: Any, **named: Any) -> Tensor:
        with torch.autocast("cpu", enabled=False):
            return norm(input.float(), *args, **named)

    with ExitStack() as held:
        for name, stand_in in (
            ("scaled_dot_product_attention", _attention), ("dropout", _dropout), ("layer_norm", layer_norm),
        ):  # fmt: skip
            held.enter_context(mock.patch.object(functional, name, stand_in))
        yield


@contextmanager
def fake_trainer(config: BertConfig, batch_size: int, **settings: Any) -> Iterator[tuple[Trainer, LiveBytes]]:
    """Yield a trainer whose tensors have no data, and the counter of the bytes that they would have."""
    run = Run(model="", augment="una", batch_size=batch_size, device="cpu", learning_rate=1e-5, schedule="constant",
              **settings)  # fmt: skip
    stay = mock.patch.object(SentenceEncoder, "to", lambda encoder, device: encoder)
    with stay, as_on_a_gpu(), FakeTensorMode(), LiveBytes() as counted:
        encoder = SentenceEncoder(BertModel(config, add_pooling_layer=False), 0, bias_as_mask=True).train()
        for weight in encoder.parameters():
            counted.add(weight)
        plan = Plan(np.arange(batch_size), batch_size, 0)
        yield Trainer(run, Ranks(0, 1, 0, torch.device("cpu")), encoder, plan), counted


def peak_of_step(config: BertConfig, batch_size: int, tokens: int = TOKENS, **settings: Any) -> int:
    """Return the peak bytes of two steps. From the second step on, the optimiser's moments take memory too."""
    with fake_trainer(config, batch_size, **settings) as (trainer, counted):
        for step in range(2):
            trainer.step(fake_batch(step, batch_size, tokens, trainer.run.grad_cache))
    return counted.peak


def fake_batch(step: int, batch_size: int, tokens: int, rows_of_part: int) -> Batch:
    """Make a batch in which every text has `tokens` tokens. rows_of_part: texts per part, or 0 for one part."""
    ids = torch.ones(VIEWS * batch_size, tokens, dtype=torch.int64)
    parts = [
        {"input_ids": part, "attention_mask": torch.ones_like(part)} for part in ids.split(rows_of_part or len(ids))
    ]
    return Batch(step, np.arange(batch_size), VIEWS, parts, torch.arange(len(ids)))


def print_table() -> None:
    rows = []
    for name, config in (("BERT-base", BERT_BASE), ("BERT-large", BERT_LARGE)):
        for batch_size in BATCHES:
            sizes = [peak_of_step(config, batch_size, **way) / 2**30 for way in WAYS]
            rows.append([name, f"{batch_size:,}", *(f"{size:.1f}" for size in sizes)])
    print(table(["encoder", "batch", "fp32", "bf16", "bf16, `--grad-cache 256`"], rows))


if __name__ == "__main__":
    sys.exit(script.run(__doc__, print_table))
