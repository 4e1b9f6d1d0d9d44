"""Sentences -> embeddings: each distinct sentence once, tokenised once, in batches of nearly equal length.

Letters of shapes: B sentences of a batch, L its longest, D the width of an embedding, n distinct sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Encode = Callable[[dict[str, Tensor]], Tensor]

# Tokens of a batch, padding included. On a CPU a batch's activations should stay in the cache; on a GPU it
# should fill the card.
CPU_BATCH_TOKENS = 2048
GPU_BATCH_TOKENS = 65_536


class DistinctSentences:
    """Numbers sentences so that each distinct one is encoded once, whatever tasks and sides it occurs in."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}

    def add(self, texts: Iterable[str]) -> NDArray[np.int64]:
        """The row of each text, int64 (n,)."""
        rows = self._rows
        return np.fromiter((rows.setdefault(text, len(rows)) for text in texts), np.int64)

    @property
    def texts(self) -> list[str]:
        """The distinct sentences, by row."""
        return list(self._rows)


class Batches:
    """Tokenised sentences in batches sorted by length, kept for as many passes as one likes.

    Almost all batches hold sentences of one length, so little padding is computed.
    """

    def __init__(
        self,
        texts: Sequence[str],
        tokenizer: Any,
        max_length: int | None = None,
        batch_tokens: int | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        self.device = torch.device(device)
        limit = min(max_length or tokenizer.model_max_length, tokenizer.model_max_length)
        ids = tokenizer(list(texts), truncation=True, max_length=limit)["input_ids"] if texts else []
        lengths = np.fromiter((len(row) for row in ids), np.int64, count=len(ids))
        budget = batch_tokens or (GPU_BATCH_TOKENS if self.device.type == "cuda" else CPU_BATCH_TOKENS)
        self.order = np.argsort(lengths, kind="stable")
        self.batches = [
            _pad(tokenizer, [ids[row] for row in self.order[start:stop]], self.device)
            for start, stop in batch_bounds(lengths[self.order], budget)
        ]

    def embed(self, encode: Encode, threads: int = 1) -> Tensor:
        """Embeddings in the order of the texts, float32 (n, D), on the device.

        `threads` batches are encoded at the same time: for a CPU, where one intra-op thread a batch wastes
        less than all threads on one.
        """
        with torch.inference_mode():
            if threads > 1 and len(self.batches) > 1:
                with ThreadPoolExecutor(threads) as pool:
                    parts = list(pool.map(_without_grad(encode), self.batches))
            else:
                parts = [encode(batch) for batch in self.batches]
            embeddings = torch.cat([part.float() for part in parts])  # (n, D), by length
            result = torch.empty_like(embeddings)
            result[torch.from_numpy(self.order).to(embeddings.device)] = embeddings
        return result


def batch_bounds(lengths: NDArray[np.int64], budget: int) -> list[tuple[int, int]]:
    """Bounds (start, stop) of batches over never decreasing lengths (n,), of at most `budget` padded tokens.

    A batch ends early where the length changes, once it holds a quarter of the budget: short batches cost
    calls, mixed ones cost padding.
    """
    bounds = []
    start = 0
    for stop in range(1, len(lengths)):
        full = int(lengths[stop]) * (stop + 1 - start) > budget
        changes = lengths[stop] != lengths[stop - 1] and int(lengths[stop - 1]) * (stop - start) * 4 >= budget
        if full or changes:
            bounds.append((start, stop))
            start = stop
    if len(lengths):
        bounds.append((start, len(lengths)))
    return bounds


def _pad(tokenizer: Any, ids: list[list[int]], device: torch.device) -> dict[str, Tensor]:
    """A batch of int64 (B, L) tensors; without its mask where no row is padded."""
    batch = tokenizer.pad({"input_ids": ids}, return_tensors="pt")
    return {name: tensor.to(device) for name, tensor in batch.items()}


def _without_grad(encode: Encode) -> Encode:
    """`encode` in inference mode: the mode belongs to a thread, so each worker has to enter it."""

    def encode_batch(batch: dict[str, Tensor]) -> Tensor:
        with torch.inference_mode():
            return encode(batch)

    return encode_batch
