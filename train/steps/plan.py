"""Which rows of the corpus each optimiser step takes: the same for any number of ranks, and after a restart.

Letter: B sentences of a step over all ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Plan:
    """The rows of every step, the same whatever the ranks: a function of the settings alone.

    rows: int64 (n,), the sentences to train on, in the corpus's order.
    """

    rows: NDArray[np.int64]
    batch_size: int
    seed: int
    epochs: int = 1
    max_steps: int | None = None

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps of one pass; the last one may hold fewer sentences."""
        return -(-len(self.rows) // self.batch_size)

    @property
    def n_steps(self) -> int:
        """Optimiser steps of the run."""
        steps = self.steps_per_epoch * self.epochs
        return steps if self.max_steps is None else min(steps, self.max_steps)

    def order(self, epoch: int) -> NDArray[np.int64]:
        """The rows of one epoch in the order of training, int64 (n,)."""
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, epoch])))
        return generator.permutation(self.rows)

    def batches(self, start: int = 0) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
        """(step, epoch, rows of the step) from step `start` to the end."""
        order, order_epoch = self.rows[:0], -1
        for step in range(start, self.n_steps):
            epoch, position = divmod(step, self.steps_per_epoch)
            if epoch != order_epoch:
                order, order_epoch = self.order(epoch), epoch
            yield step, epoch, order[position * self.batch_size : (position + 1) * self.batch_size]


def rank_share(n: int, rank: int, world: int) -> slice:
    """The consecutive part of n rows that a rank takes; parts differ by one at most, and may be empty."""
    return slice(n * rank // world, n * (rank + 1) // world)


def usable_rows(n_words: Sequence[int] | NDArray[np.int64], n_anchors: int) -> tuple[NDArray[np.int64], int, int]:
    """Rows to train on, and how many anchors and how many paraphrases are blank.

    n_words: words of each document, anchors first and their paraphrases, if any, behind. A blank sentence has
    nothing to compare; a sentence is left out if it or its paraphrase is blank.
    """
    blank = np.asarray(n_words) == 0
    anchors = blank[:n_anchors]
    paraphrases = blank[n_anchors : 2 * n_anchors]
    unusable = anchors | paraphrases if len(paraphrases) else anchors
    return np.flatnonzero(~unusable), int(anchors.sum()), int(paraphrases.sum())
