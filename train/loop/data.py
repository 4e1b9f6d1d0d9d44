"""Makes the batches of training. A step has the same rows with any number of ranks, and after a resume.

Letters: a step has B sentences on all ranks together, and b on one rank. V views, L tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from train.distributed import rank_share
from una_fast.augment.counter_rng import CounterRNG, seed_of
from una_fast.parallel import map_ahead
from una_fast.tokens.ids import TokenIds

PARTS: dict[str, dict[str, int]] = {  # how `BatchMaker` cuts a batch by length, for each type of device
    # on a CPU, 4 parts reduce padding from 25% to 6% of the tokens of Wikipedia sentences
    "cpu": {"n_parts": 4, "multiple": 1},
    # on an H200, a step of 512 sentences takes 50.1 ms in one part, 50.3 ms in two and 54.3 ms in four;
    # matrix units compute 8 columns at a time
    "cuda": {"n_parts": 1, "multiple": 8},
}
AHEAD = 3  # batches prepared ahead, so that no step waits for a single slow batch; 100 kB each

Rows = NDArray[np.int64]  # row numbers of sentences in the index
Ids = dict[str, Tensor]  # the tokenizer's outputs by name: token ids, mask and others, each int64 (texts, L)
ViewMaker = Callable[[Rows, int, int], Ids]  # (rows, epoch, max_length) -> the token ids of one view of the rows


@dataclass(frozen=True)
class Plan:
    """Chooses the rows of every step."""

    rows: Rows  # (n,), the rows of the sentences to train on, ascending
    batch_size: int
    seed: int
    epochs: int = 1
    max_steps: int | None = None
    nearest: Rows | None = None  # (n,), the neighbour of each row in `rows`; if given, half of each batch is neighbours

    @property
    def rows_per_step(self) -> int:
        """Number of training sentences in a full step: `batch_size`, or half of it with --neighbours."""
        return self.batch_size if self.nearest is None else self.batch_size // 2

    @property
    def steps_per_epoch(self) -> int:
        """Number of optimiser steps per epoch. The last step may have fewer sentences than the others."""
        return -(-len(self.rows) // self.rows_per_step)

    @property
    def n_steps(self) -> int:
        """Number of optimiser steps of the whole run."""
        steps = self.steps_per_epoch * self.epochs
        return min(steps, self.max_steps or steps)

    def order(self, epoch: int) -> Rows:
        """Return the rows of an epoch in training order, which depends only on (seed, epoch)."""
        return np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, epoch]))).permutation(self.rows)

    def batches(self, start: int = 0) -> Iterator[tuple[int, int, Rows]]:
        """Yield (step, epoch, rows of the step), from step `start` on."""
        for step in range(start, self.n_steps):
            epoch, position = divmod(step, self.steps_per_epoch)
            if step == start or position == 0:
                order = self.order(epoch)
            rows = order[position * self.rows_per_step : (position + 1) * self.rows_per_step]
            if self.nearest is not None:  # entry i + B / 2 is the neighbour of entry i
                rows = np.concatenate([rows, self.nearest[np.searchsorted(self.rows, rows)]])
            yield step, epoch, rows


def original_text(tokens: TokenIds, offset: int = 0) -> ViewMaker:
    """Make a view of unedited sentences: the view of row r is the sentence of row r + `offset`."""
    return lambda rows, epoch, max_length: tokens.anchor_ids(rows + offset, max_length)


def on_share(edited: ViewMaker, plain: ViewMaker, share: float, seed: int) -> ViewMaker:
    """Make a view that uses `edited` for a random share of the rows in each epoch, and `plain` for the others."""
    if share == 1:
        return edited

    def ids(rows: Rows, epoch: int, max_length: int) -> Ids:
        chosen = CounterRNG(seed_of("share of positives", seed), epoch, rows).units(1) < share  # (b, 1)
        made, original = (view(rows, epoch, max_length) for view in (edited, plain))
        return {name: torch.where(torch.from_numpy(chosen), made[name], original[name]) for name in original}

    return ids


@dataclass(frozen=True)
class Views:
    """Makes the token ids of the texts that a step compares."""

    anchor: ViewMaker
    positive: ViewMaker | None  # None if a sentence is its own positive, under another dropout mask
    negative: ViewMaker | None
    max_length: int
    alpha: int  # every alpha-th step has negatives, beginning with step 0; if alpha is 0, no step has negatives
    negative_views: int  # the number of views of the negative that the loss needs: 0, 1 or 2

    def of(self, step: int, epoch: int, rows: Rows) -> list[Ids]:
        """Return anchors, positives and, if the step has negatives, `negative_views` copies of the negatives."""
        anchors = self.anchor(rows, epoch, self.max_length)
        views = [anchors, self.positive(rows, epoch, self.max_length) if self.positive else anchors]
        if self.negative and self.negative_views and self.alpha and step % self.alpha == 0:
            views += [self.negative(rows, epoch, self.max_length)] * self.negative_views
        return views


@dataclass(frozen=True)
class Batch:
    """One rank's share of a step: the token ids of b sentences in all views."""

    step: int
    rows: Rows  # (B,), the rows of the whole step
    n_views: int
    parts: list[Ids]  # sorted by length, so that each part has little padding
    positions: Tensor  # int64 (V b,); row positions[v * b + i] of the concatenated parts is view v of sentence i

    def to(self, device: torch.device) -> Batch:
        """Copy the batch to a device, with a single asynchronous transfer."""
        if device.type == "cpu":
            return self
        # pinned here, because in the batch thread CUDA would open a context on the first GPU instead of this rank's
        tensors, structure = tree_flatten((self.parts, self.positions))  # int64
        sent = torch.cat([tensor.flatten() for tensor in tensors]).pin_memory().to(device, non_blocking=True)
        pieces = sent.split([tensor.numel() for tensor in tensors])
        shaped = [piece.view(tensor.shape) for piece, tensor in zip(pieces, tensors, strict=True)]
        parts, positions = tree_unflatten(shaped, structure)
        return replace(self, parts=parts, positions=positions)


@dataclass(frozen=True)
class BatchMaker:
    """Makes the batches of one rank."""

    views: Views
    rank: int
    world: int
    rows_of_part: int = 0  # number of texts per part; 0: split the texts into `n_parts` equal parts
    n_parts: int = 1
    multiple: int = 1  # the number of columns of each part is a multiple of this

    def make(self, step: int, epoch: int, rows: Rows) -> Batch:
        """Make this rank's batch of a step. rows: the row numbers of all ranks' sentences, (B,)."""
        own = rows[rank_share(len(rows), self.rank, self.world)]
        encoded = own if len(own) else rows[:1]  # a rank without rows takes part in the exchange of gradients too
        views = self.views.of(step, epoch, encoded)
        texts = {name: torch.cat([view[name] for view in views]) for name in views[0]}  # (V b, L)
        rows_of_part = self.rows_of_part or -(-len(texts["input_ids"]) // self.n_parts)
        parts, positions = cut_by_length(texts, rows_of_part, self.multiple)
        return Batch(step, rows, len(views), parts, positions if len(own) else positions[:0])


def cut_by_length(texts: Ids, n_rows: int, multiple: int = 1) -> tuple[list[Ids], Tensor]:
    """Sort texts by length, split them into parts of `n_rows` texts, and remove superfluous padding.

    Return the parts, and the position of each text in the concatenation of all parts.
    """
    mask = texts["attention_mask"]
    lengths = mask.sum(1)  # (rows,)
    padded_left = bool((mask[:, -1] > mask[:, 0]).any())
    order = lengths.argsort(stable=True)
    parts = []
    for chosen in order.split(n_rows):
        width = -(-int(lengths[chosen].max()) // multiple) * multiple
        columns = slice(max(0, mask.shape[1] - width), None) if padded_left else slice(width)
        parts.append({name: ids[chosen, columns].contiguous() for name, ids in texts.items()})
    return parts, order.argsort()


def prefetched(steps: Iterable[tuple[int, int, Rows]], make: Callable[[int, int, Rows], Batch]) -> Generator[Batch]:
    """Yield a batch for each of `steps`. A background thread makes the batches ahead, and ends with the generator."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
    with pool, closing(map_ahead(lambda step: pool.submit(make, *step), steps, AHEAD + 1)) as made:
        yield from made
