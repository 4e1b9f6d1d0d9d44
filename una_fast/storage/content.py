"""Checks of arrays from a file, since compiled code uses them as indices and does not check them.

`wrong_bounds`, `wrong_rows` and `wrong_strings` return what is wrong as the end of a message, or "" if all is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from una_fast.arrays import Ragged, StringTable
from una_fast.storage.files import BLOCK, forget_pages

CHECKED_AT_ONCE = 1 << 20  # values of a comparison of neighbours: its temporaries stay in cache


def blocks(array: np.ndarray, overlap: int = 0) -> Iterator[np.ndarray]:
    """The array in parts of CHECKED_AT_ONCE values, each with the first `overlap` of the next.

    Pages of a mapped array are released after use, so the memory of the process does not grow with the array.
    """
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    data = base.obj if isinstance(base, memoryview) else base
    for number, start in enumerate(range(0, max(len(array) - overlap, 0), CHECKED_AT_ONCE), start=1):
        yield array[start : start + CHECKED_AT_ONCE + overlap]
        if number * CHECKED_AT_ONCE * array.itemsize % BLOCK == 0:
            forget_pages(data)
    forget_pages(data)


def wrong_range(values: np.ndarray, low: float, high: float) -> bool:
    """True if a value is NaN, or not from `low` to `high`."""
    return not all(low <= part.min() and part.max() <= high for part in blocks(values))


def wrong_bounds(bounds: np.ndarray, end: int) -> str:
    """Check that bounds of rows start at 0, never decrease, and end at `end`. bounds: int64 (N + 1,)."""
    if len(bounds) == 0 or bounds[0] != 0 or bounds[-1] != end:
        return f"its rows do not start at 0 and end at {end:,}"
    if any((part[1:] < part[:-1]).any() for part in blocks(bounds, overlap=1)):
        return "a row ends before it starts"
    return ""


def wrong_ids(ids: np.ndarray, n: int) -> bool:
    """True if an id is not from 0 to `n` - 1."""
    unsigned = ids.view(f"u{ids.itemsize}")  # a negative id becomes larger than any valid one
    return any(part.max() >= n for part in blocks(unsigned))


def wrong_rows(rows: Ragged, n_rows: int, n_ids: int) -> str:
    """Check that `rows` has `n_rows` rows, of ids from 0 to `n_ids` - 1. O(T) time: one pass, 10 GB/s."""
    if len(rows.indptr) != n_rows + 1:
        return f"has {len(rows.indptr):,} bounds of rows, and {n_rows + 1:,} are needed"
    if wrong_ids(rows.values, n_ids):
        return f"has an id outside of 0 to {n_ids - 1:,}"
    return wrong_bounds(rows.indptr, len(rows.values))


def wrong_strings(table: StringTable) -> str:
    """Check that the strings of a table are whole UTF-8 characters."""
    if found := wrong_bounds(table.offsets, len(table.utf8)):
        return found
    for part in blocks(table.offsets, overlap=1):
        if not are_utf8(table.utf8, part):
            return "holds bytes that are not UTF-8, or cuts a character in two"
    return ""


def are_utf8(data: np.ndarray, offsets: np.ndarray) -> bool:
    """Whether each string ``data[offsets[i]:offsets[i + 1]]`` is whole UTF-8. data: uint8; offsets: int64 (n + 1,)."""
    strings = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
