"""Which rows of the corpus each optimiser step takes: the same for any number of ranks and after a restart.

Letter: B sentences of a step over all ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Plan:
    """The rows of every step, which depend on the settings alone and not on the ranks.

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
        """The rows of one epoch in the order of training, int64 (n,): a permutation chosen by (seed, epoch)."""
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, epoch])))
        return generator.permutation(self.rows)

    def batches(self, start: int = 0) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
        """(step, epoch, rows of the step) from step `start` to the end."""
        order, order_epoch = self.rows, -1
        for step in range(start, self.n_steps):
            epoch, position = divmod(step, self.steps_per_epoch)
            if epoch != order_epoch:
                order, order_epoch = self.order(epoch), epoch
            yield step, epoch, order[position * self.batch_size : (position + 1) * self.batch_size]


def rank_share(n: int, rank: int, world: int) -> slice:
    """The consecutive part of n rows that a rank takes; the sizes of parts differ by one at most, and may be 0."""
    return slice(n * rank // world, n * (rank + 1) // world)


def usable_rows(blank: NDArray[np.int64], n_anchors: int) -> tuple[NDArray[np.int64], int, int]:
    """Rows to train on, int64 and ascending, and how many anchors and how many paraphrases are blank.

    blank: int64, ascending, the rows of documents without words; the rows of paraphrases, if any, follow those of the
    anchors. A sentence is left out if it or its paraphrase is blank, because there is nothing to compare.
    """
    anchors, paraphrases = np.split(blank, [np.searchsorted(blank, n_anchors)])
    paraphrases = paraphrases[paraphrases < 2 * n_anchors] - n_anchors
    return np.delete(np.arange(n_anchors), np.union1d(anchors, paraphrases)), len(anchors), len(paraphrases)
