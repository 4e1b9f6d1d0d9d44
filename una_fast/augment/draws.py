"""An endless stream of random numbers for one text, from the counter-based generator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from una_fast.augment.counter_rng import CounterRNG, below, unit

Item = TypeVar("Item")
BLOCK = 64  # positions that one call of the generator fills


class Draws:
    """The random numbers of one text, drawn one after another.

    They depend only on the seed, the epoch, the sample index and the text's row. rng: has exactly one row.
    """

    def __init__(self, rng: CounterRNG):
        self._bits = _bits(rng)

    def unit(self) -> float:
        """Draw a number, uniform in [0, 1)."""
        return unit(next(self._bits))

    def below(self, n: int) -> int:
        """Draw an integer, uniform over 0 .. n - 1."""
        return below(next(self._bits), n)

    def pick(self, items: Sequence[Item]) -> Item:
        """Draw one of `items`."""
        return items[self.below(len(items))]

    def weighted(self, weights: Sequence[float]) -> int:
        """Draw an index with a probability proportional to its weight."""
        point = self.unit() * sum(weights)
        for i, weight in enumerate(weights):
            point -= weight
            if point < 0:
                return i
        return len(weights) - 1

    def ordered(self, weights: Mapping[Item, float]) -> list[Item]:
        """Return the keys in a random order: they are drawn one after another, each by its weight."""
        return sorted(weights, key=lambda item: -(self.unit() ** (1 / weights[item])))


def _bits(rng: CounterRNG) -> Iterator[int]:
    for number in range(128):  # the generator's draw numbers: 8,192 draws, more than any text needs
        yield from rng.bits(BLOCK, number)[0].tolist()
