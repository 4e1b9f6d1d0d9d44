"""Makes one rank's batch of token ids from the rows of a step.

Letters: B sentences of a step over all ranks, b those of one rank, V views, L tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from train.objective.masking import Masked, Masking
from train.steps.plan import rank_share
from train.steps.views import Views

CPU_PARTS = 4  # parts of a batch, by length: padding falls from 25 % to 6 % of the tokens of Wikipedia sentences
GPU_PARTS = 1  # 32 sentences do not fill a GPU: two halves of a batch of 64 would take as long as the whole
GPU_WIDTHS = 8  # distinct widths of a part on a GPU, at most: each gets its own graphs


@dataclass(frozen=True)
class Batch:
    """One rank's sentences of a step, as the encoder takes them.

    parts: token ids (rows, L of the part), shortest sentences first. place: int64 (V * b,); entry v * b + i is the row
    of the encoded parts that holds view v of sentence i. sizes: b of every rank. epoch, rows: those of the whole step,
    rows int64 (B,) of the index, by which a noise on embeddings is drawn. masked: the anchors with tokens masked, if
    the run has that loss. A rank without sentences (b = 0) encodes one that enters no loss, because all ranks take part
    in the exchange of gradients.
    """

    step: int
    parts: list[dict[str, Tensor]]
    place: Tensor
    n_views: int
    sizes: list[int]
    negatives: bool
    epoch: int
    rows: NDArray[np.int64]
    masked: Masked | None = None

    def to(self, device: torch.device) -> Batch:
        """A copy on `device`; the transfer is asynchronous.

        Memory is pinned here and not in the thread that makes batches: another thread that asks CUDA for memory
        would break a capture of graphs, and would open a context on the first GPU even if this rank has another.
        """
        if device.type == "cpu":
            return self
        parts = [{name: _moved(ids, device) for name, ids in part.items()} for part in self.parts]
        masked = self.masked and Masked(
            {name: _moved(ids, device) for name, ids in self.masked.part.items()},
            _moved(self.masked.positions, device),
            _moved(self.masked.targets, device),
        )
        return replace(self, parts=parts, place=_moved(self.place, device), masked=masked)


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    return tensor.pin_memory().to(device, non_blocking=True)


def gpu_column_multiple(max_length: int) -> int:
    """The number that divides the widths of parts on a GPU: a multiple of 8, with GPU_WIDTHS widths at most.

    A GPU's matrix units compute columns in groups of 8.
    """
    return 8 * -(-max_length // (8 * GPU_WIDTHS))


@dataclass(frozen=True)
class BatchMaker:
    """Makes one rank's Batch from the rows of a step."""

    views: Views
    rank: int
    world: int
    rows_of_part: int = 0  # rows of a part, at most; 0: n_parts decides
    n_parts: int = CPU_PARTS  # parts with equal numbers of rows
    multiple: int = 1  # divides the number of columns of every part
    masking: Masking | None = None

    def __call__(self, step: int, epoch: int, rows: NDArray[np.int64]) -> Batch:
        """The batch of this rank. rows: int64 (B,), the rows of the whole step."""
        sizes = [len(rows[rank_share(len(rows), rank, self.world)]) for rank in range(self.world)]
        mine = rows[rank_share(len(rows), self.rank, self.world)]
        views = self.views(step, epoch, mine if len(mine) else rows[:1])
        texts = {name: torch.cat([view[name] for view in views]) for name in views[0]}  # (V b, L)
        parts, place = self._cut(texts)
        masked = self.masking(views[0], mine if len(mine) else rows[:1], epoch) if self.masking else None
        if not len(mine):
            place, masked = place[:0], masked and masked.without_targets()
        return Batch(step, parts, place, len(views), sizes, self.views.uses_negatives(step), epoch, rows, masked)

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
