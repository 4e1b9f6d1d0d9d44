"""Counter-based random numbers for sentences, from the generator of the kernels (_kernels/draws/random.pxd)."""

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
    """An epoch and a sample index, both from 0 to 2**64 - 1."""

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
    """Return a seed that depends on `method`, so that two methods with equal seeds draw independently of each other."""
    return xxhash.xxh3_64_intdigest(f"{method} {integer('seed', seed) % 2**64}".encode())


@dataclass(frozen=True)
class CounterRNG:
    """The random numbers of a batch of sentences.

    Each draw depends only on the seed, epoch, sample index, row, position and draw number. The position is usually a
    word's position in its sentence, and the draw number, from 0 to 127, distinguishes the draws at one position.
    `bits`, `units` and `below` return the same draws in different forms.

    Args:
        seed: any integer.
        epoch, sample_index: integers from 0 to 2**64 - 1.
        rows: integers (n_rows,), one per sentence: its row number in the index, or a hash of its words.
    """

    seed: int
    epoch: int
    rows: NDArray[np.integer]
    sample_index: int = 0

    def bits(self, n_positions: int, number: int = 0) -> NDArray[np.uint64]:
        """Return 64 random bits for each row and position: uint64 (n_rows, n_positions). number: the draw number."""
        out = np.empty((len(self.rows), n_positions), dtype=np.uint64)
        fill_bits(self.seed % 2**64, self.epoch, self.sample_index, self.rows.astype(np.uint64), number, out)
        return out

    def units(self, n_positions: int, number: int = 0) -> NDArray[np.float64]:
        """Return one number per row and position, uniform in [0, 1): float64 (n_rows, n_positions)."""
        return (self.bits(n_positions, number) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, n: int, n_positions: int, number: int = 0) -> NDArray[np.int64]:
        """Return one integer per row and position, uniform over 0 .. n - 1: int64 (n_rows, n_positions). n < 2**32."""
        bits = self.bits(n_positions, number)
        low, high = bits & np.uint64(2**32 - 1), bits >> np.uint64(32)  # floor(bits * n / 2**64)
        return ((high * np.uint64(n) + (low * np.uint64(n) >> np.uint64(32))) >> np.uint64(32)).astype(np.int64)


def unit(bits: int) -> float:
    """Turn 64 random bits into a number, uniform in [0, 1)."""
    return (bits >> 11) * 2.0**-53


def below(bits: int, n: int) -> int:
    """Turn 64 random bits into an integer, uniform over 0 .. n - 1."""
    return bits * n >> 64


def pick(bits: int, items: Sequence[Item]) -> Item:
    """Choose one of `items` with 64 random bits."""
    return items[below(bits, len(items))]
