"""Counter-based random numbers for sentences, as numpy arrays. una_fast/_kernels/draws/random.pxd generates them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from una_fast._kernels.draws.random import fill_bits
from una_fast.errors import InputError, integer

Item = TypeVar("Item")


@dataclass(frozen=True)
class SampleKey:
    """An epoch and a sample index. Raises InputError unless both are integers from 0 to 2**64 - 1."""

    epoch: int = 0
    sample_index: int = 0

    def __post_init__(self) -> None:
        for name in ("epoch", "sample_index"):
            number = getattr(self, name)
            if type(number) is not int:
                object.__setattr__(self, name, number := integer(name, number))
            if not 0 <= number < 2**64:
                raise InputError(f"{name}={number}: must be from 0 to 2**64 - 1")


def seed_of(method: str, seed: int) -> int:
    """Hash `seed`, any integer, with the name of a method, so that methods with equal seeds draw independently."""
    return xxhash.xxh3_64_intdigest(f"{method} {integer('seed', seed) % 2**64}".encode())


@dataclass(frozen=True)
class CounterRNG:
    """The random numbers of the sentences `rows` for one epoch and sample index.

    rows: row numbers of the index, int64 (B,), or hashes of texts, uint64 (B,). Every draw is a function of only (seed,
    epoch, sample index, row, position, number), so it does not depend on the batch.
    """

    seed: int
    epoch: int
    rows: NDArray
    sample_index: int = 0

    def bits(self, n_positions: int, number: int = 0) -> NDArray[np.uint64]:
        """Return draw `number` at positions 0, 1, ... of each row: uint64 (B, n_positions)."""
        out = np.empty((len(self.rows), n_positions), dtype=np.uint64)
        fill_bits(self.seed % 2**64, self.epoch, self.sample_index, self.rows.astype(np.uint64), number, out)
        return out

    def units(self, n_positions: int, number: int = 0) -> NDArray[np.float64]:
        """Return numbers uniform in [0, 1): float64 (B, n_positions)."""
        return (self.bits(n_positions, number) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, n: int, n_positions: int, number: int = 0) -> NDArray[np.int64]:
        """Return integers uniform over 0 .. n - 1, for n < 2**32: int64 (B, n_positions)."""
        bits = self.bits(n_positions, number)
        low, high = bits & np.uint64(2**32 - 1), bits >> np.uint64(32)  # floor(bits * n / 2**64)
        return ((high * np.uint64(n) + (low * np.uint64(n) >> np.uint64(32))) >> np.uint64(32)).astype(np.int64)


def unit(bits: int) -> float:
    """Turn 64 random bits into a number that is uniform in [0, 1)."""
    return (bits >> 11) * 2.0**-53


def below(bits: int, n: int) -> int:
    """Turn 64 random bits into an integer that is uniform over 0 .. n - 1."""
    return bits * n >> 64


def pick(bits: int, items: Sequence[Item]) -> Item:
    """Choose one of `items` by 64 random bits; all are equally likely."""
    return items[below(bits, len(items))]
