"""Rows to train on and their order in an epoch: a permutation in memory, or for very many rows a keyed bijection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from una_fast.augment.row_draws import mix

LARGEST_IN_MEMORY = 2**26  # rows; a permutation of them takes 0.5 GiB of each rank
ROUNDS = 24  # of the Feistel network; with 12, a chi-square test shows that some orders of 5 rows are more likely


class Rows(Protocol):
    """Distinct rows of a corpus, by position; a numpy array has this interface."""

    def __len__(self) -> int: ...

    def take(self, positions: NDArray[np.int64], /) -> NDArray[np.int64]:
        """The rows at these positions."""


class Order(Protocol):
    """The rows of one epoch in the order of training; a numpy array has this interface."""

    def __getitem__(self, positions: slice, /) -> NDArray[np.int64]: ...


@dataclass(frozen=True)
class AllBut:
    """The rows 0 to n - 1 without `left_out` (int64, ascending), in order; only `left_out` takes memory."""

    n: int
    left_out: NDArray[np.int64]

    def __len__(self) -> int:
        return self.n - len(self.left_out)

    def take(self, positions: NDArray[np.int64], /) -> NDArray[np.int64]:
        """The rows at these positions, int64."""
        before = self.left_out - np.arange(len(self.left_out))  # number of rows that stay before each one left out
        return positions + np.searchsorted(before, positions, side="right")


@dataclass(frozen=True)
class Shuffled:
    """`rows` in a shuffled order, computed for the requested positions alone. keys: uint64 (ROUNDS,)."""

    rows: Rows
    keys: NDArray[np.uint64]

    def __getitem__(self, positions: slice, /) -> NDArray[np.int64]:
        n = len(self.rows)
        return self.rows.take(shuffled(np.arange(*positions.indices(n)), n, self.keys))


def epoch_order(rows: Rows, seed: int, epoch: int) -> Order:
    """The order of one epoch, a function of the rows, the seed and the epoch."""
    sequence = np.random.SeedSequence([seed, epoch])
    if len(rows) > LARGEST_IN_MEMORY:
        return Shuffled(rows, sequence.generate_state(ROUNDS, np.uint64).astype(np.uint64))
    everything = rows.take(np.arange(len(rows)))
    return np.random.Generator(np.random.Philox(sequence)).permutation(everything)


def shuffled(positions: NDArray[np.int64], n: int, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The place of each position in a permutation of 0 to n - 1 that the keys choose.

    A Feistel network permutes the numbers of as many bits as n - 1 has, below 2 n; a result of n or more goes through
    it again until it is below n ("cycle walking", Black and Rogaway 2002), which makes it a permutation of 0 to n - 1.
    """
    places = _feistel(positions.astype(np.uint64), (n - 1).bit_length(), keys)
    while len(outside := np.flatnonzero(places >= n)):
        places[outside] = _feistel(places[outside], (n - 1).bit_length(), keys)
    return places.astype(np.int64)


def _feistel(numbers: NDArray[np.uint64], bits: int, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A permutation of the numbers of `bits` bits: each half in turn is changed by a hash of the other."""
    width = np.uint64(bits // 2)
    low_mask, high_mask = np.uint64((1 << bits // 2) - 1), np.uint64((1 << bits - bits // 2) - 1)
    low, high = numbers & low_mask, numbers >> width
    for number, key in enumerate(keys):
        if number % 2:
            low = low ^ (mix(high + key) & low_mask)
        else:
            high = high ^ (mix(low + key) & high_mask)
    return high << width | low
