"""From the rows of a step to one rank's batch of token ids.

Letters: B sentences of a step over all ranks, b those of one rank, V views, L tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from train.steps.plan import share

CPU_PARTS = 4  # parts of a step by length: padding falls from 25 % to 6 % of the tokens of Wikipedia sentences
GPU_PARTS = 1  # half of 64 sentences does not fill a GPU: two halves would take as long as the whole
GPU_WIDTHS = 8  # distinct widths of a part on a GPU, at most: each gets graphs or compiled code of its own


class NegativeSource(Protocol):
    """What the loop asks of una_fast.Augmenter."""

    def negative_ids(self, rows: NDArray, epoch: int = 0, max_length: int = 32) -> dict[str, Tensor]:
        """Token ids of the negatives of rows, int64 (B, L)."""


class AnchorSource(Protocol):
    """What the loop asks of una_fast.tokens.ids.TokenIds."""

    def anchor_ids(self, rows: NDArray, max_length: int = 32) -> dict[str, Tensor]:
        """Token ids of the sentences of rows, int64 (B, L)."""


@dataclass(frozen=True)
class Batch:
    """One rank's part of a step, as the encoder takes it.

    parts: token ids (rows, L of the part), shortest sentences first. place: int64 (V * b,), the row of the encoded
    parts that holds view v of sentence i at v * b + i. sizes: b of every rank. A rank without sentences (b = 0)
    encodes one that no loss sees, since gradients are exchanged by all.
    """

    step: int
    parts: list[dict[str, Tensor]]
    place: Tensor
    n_views: int
    sizes: list[int]
    negatives: bool

    def to(self, device: torch.device) -> Batch:
        """The same on `device`, without waiting for it.

        Memory is pinned here and not by the thread that makes batches: another thread that asks CUDA for memory
        would break a capture of graphs, and would open a context on the first GPU whatever this rank's is.
        """
        if device.type == "cpu":
            return self
        parts = [{name: _moved(ids, device) for name, ids in part.items()} for part in self.parts]
        return replace(self, parts=parts, place=_moved(self.place, device))


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    return tensor.pin_memory().to(device, non_blocking=True)


def gpu_column_multiple(max_length: int) -> int:
    """What widths on a GPU are multiples of: by eight its matrix units take columns, GPU_WIDTHS are the most."""
    return 8 * -(-max_length // (8 * GPU_WIDTHS))


@dataclass(frozen=True)
class BatchMaker:
    """From the rows of a step to one rank's Batch; makes negatives on the steps that use them only.

    paraphrase_offset: row of the first paraphrase in the index, or None where a sentence is its own positive.
    negative_views: views of a negative that the loss takes (1 or 2), or 0. alpha: see Run.
    """

    tokens: AnchorSource
    augmenter: NegativeSource | None
    max_length: int
    alpha: int
    negative_views: int
    paraphrase_offset: int | None
    rank: int
    world: int
    rows_of_part: int = 0  # at most so many rows in a part; 0: as n_parts says
    n_parts: int = CPU_PARTS  # of as many rows
    multiple: int = 1  # of which a part's columns are

    def uses_negatives(self, step: int) -> bool:
        """True on the optimiser steps that alpha divides, counted from 0."""
        return bool(self.augmenter and self.negative_views and self.alpha and step % self.alpha == 0)

    def __call__(self, step: int, epoch: int, rows: NDArray[np.int64]) -> Batch:
        """The part of this rank."""
        sizes = [len(rows[share(len(rows), rank, self.world)]) for rank in range(self.world)]
        mine = rows[share(len(rows), self.rank, self.world)]
        negatives = self.uses_negatives(step)
        views = self._views(mine if len(mine) else rows[:1], epoch, negatives)
        texts = {name: torch.cat([view[name] for view in views]) for name in views[0]}  # (V b, L)
        parts, place = self._cut(texts)
        if not len(mine):
            place = place[:0]
        return Batch(step, parts, place, len(views), sizes, negatives)

    def _views(self, rows: NDArray[np.int64], epoch: int, negatives: bool) -> list[dict[str, Tensor]]:
        """Token ids (b, L) of each view: the anchor twice or with its paraphrase, the negative once or twice."""
        anchors = self.tokens.anchor_ids(rows, self.max_length)
        positives = anchors
        if self.paraphrase_offset is not None:
            positives = self.tokens.anchor_ids(rows + self.paraphrase_offset, self.max_length)
        if not negatives:
            return [anchors, positives]
        assert self.augmenter is not None
        negative = self.augmenter.negative_ids(rows, epoch, self.max_length)
        return [anchors, positives] + [negative] * self.negative_views

    def _cut(self, texts: dict[str, Tensor]) -> tuple[list[dict[str, Tensor]], Tensor]:
        """Rows sorted by length and cut into parts, each as wide as its longest row; and each row's place."""
        mask = texts["attention_mask"]
        lengths = mask.sum(1)  # (V b,)
        padded_left = bool((mask[:, -1] > mask[:, 0]).any())
        order = lengths.argsort(stable=True)
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order))
        n_rows = self.rows_of_part or -(-len(order) // self.n_parts)
        parts = []
        for chosen in order.split(n_rows):
            width = -(-int(lengths[chosen].max()) // self.multiple) * self.multiple
            columns = slice(max(0, mask.shape[1] - width), None) if padded_left else slice(width)
            parts.append({name: ids[chosen, columns].contiguous() for name, ids in texts.items()})
        return parts, place
