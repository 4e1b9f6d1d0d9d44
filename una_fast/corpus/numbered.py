"""Rows of strings that several threads find, as numbers of the distinct strings by first appearance."""

from __future__ import annotations

import threading

import numpy as np

from una_fast._kernels.csr import relabel
from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, POINTER, Ragged, StringTable, check_id_range, row_bounds
from una_fast.parallel import Workers

PLACES_A_TASK = 1 << 32


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

    def __len__(self) -> int:
        return len(self._parts)

    def of_this_thread(self) -> StringSet:
        """The set of the calling thread."""
        thread = threading.get_ident()
        if thread not in self._sets:
            self._sets[thread] = StringSet()
        return self._sets[thread]

    def append(self, found: StringSet, ids: np.ndarray, lengths: np.ndarray) -> None:
        """Add the rows of a task: int32 (t,), numbers in `found`, the set of its thread; int64 (n,), of each row."""
        check_id_range(len(found), self._what)
        self._parts.append((found, ids, lengths))

    def result(self, workers: Workers) -> tuple[StringTable, Ragged]:
        """The distinct strings, and all rows in the order in which they were added, int32. Nothing is left of both."""
        strings, numbers = self._joined()
        check_id_range(len(strings), self._what)
        parts, self._parts = self._parts, []
        bounds = row_bounds([len(ids) for _, ids, _ in parts])
        ids = np.empty(bounds[-1], dtype=ID)

        def fill(i: int) -> None:
            relabel(parts[i][1], numbers[parts[i][0]], ids[bounds[i] : bounds[i + 1]])

        for _ in workers.map(fill, range(len(parts))):
            pass
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
