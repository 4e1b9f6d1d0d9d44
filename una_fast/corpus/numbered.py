"""Rows of strings that several threads find, as numbers of the distinct strings by first appearance."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from una_fast._kernels.csr import relabel
from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, POINTER, Ragged, StringTable, check_id_range, row_bounds
from una_fast.parallel import Workers

Item = TypeVar("Item")
Number = Callable[[StringSet, int, Item], tuple[np.ndarray, np.ndarray]]


class NumberedRows:
    """Distinct strings that several threads find, numbered by first appearance, and rows of them. what: they are.

    Each thread numbers strings in a set of its own. A string is added there with its place: the number of the task in
    the upper 32 bits, in which a thread's tasks ascend. So the sets can be joined in the order of the places, and the
    numbers depend neither on the threads nor on where the work is cut.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._sets: dict[int, StringSet] = {}
        self._parts: list[tuple[StringSet, np.ndarray, np.ndarray]] = []

    def extend(self, workers: Workers, items: Iterable[Item], number: Number[Item]) -> Iterator[Item]:
        """Add the rows of each item, and yield the item.

        number: called with the set of its thread, a place, and the item; it adds the item's strings there, from that
        place on, and returns their numbers, int32 (t,), and the lengths of the rows, int64 (n,).
        """

        def task(numbered: tuple[int, Item]) -> tuple[StringSet, np.ndarray, np.ndarray]:
            thread = threading.get_ident()
            if thread not in self._sets:
                self._sets[thread] = StringSet()
            return self._sets[thread], *number(self._sets[thread], numbered[0] << 32, numbered[1])

        for (_, item), part in workers.map(task, enumerate(items, len(self._parts))):
            check_id_range(len(part[0]), self._what)
            self._parts.append(part)
            yield item

    def result(self, workers: Workers) -> tuple[StringTable, Ragged]:
        """The distinct strings, and all rows in the order in which they were added, int32. Nothing is left of both."""
        strings, numbers = self._joined()
        check_id_range(len(strings), self._what)
        parts, self._parts = self._parts, []
        bounds = row_bounds([len(ids) for _, ids, _ in parts])
        ids = np.empty(bounds[-1], dtype=ID)

        def fill(i: int) -> None:
            relabel(parts[i][1], numbers[parts[i][0]], ids[bounds[i] : bounds[i + 1]])

        list(workers.map(fill, range(len(parts))))
        return strings, Ragged(ids, row_bounds(np.concatenate([np.empty(0, dtype=POINTER), *(n for *_, n in parts)])))

    def _joined(self) -> tuple[StringTable, dict[StringSet, np.ndarray]]:
        """The distinct strings of all sets, and for each set the number of each of its strings in them, int32."""
        sets, self._sets = list(self._sets.values()), {}
        if len(sets) == 1:
            return StringTable(*sets[0].strings()), {sets[0]: np.arange(len(sets[0]), dtype=ID)}
        together = StringTable.from_strings([])
        for one in sets:
            together = together.followed_by(StringTable(*one.strings()))
        places = np.concatenate([np.empty(0, dtype=POINTER), *(one.first_places() for one in sets)])
        order, joined = np.argsort(places, kind="stable"), StringSet(len(places))
        numbers = np.empty(len(order), dtype=ID)
        numbers[order] = joined.add(together.utf8, together.offsets[:-1][order], together.offsets[1:][order])
        bounds = row_bounds([len(one) for one in sets])
        return StringTable(*joined.strings()), {one: numbers[bounds[i] : bounds[i + 1]] for i, one in enumerate(sets)}
