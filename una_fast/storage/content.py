"""Checks of arrays that came from a file, at the speed of memory: compiled code indexes by them without a look.

Each returns what is wrong, in words, or "".
"""

from __future__ import annotations

import numpy as np

from una_fast._kernels.words.chunks import first_invalid_utf8
from una_fast.arrays import Ragged, StringTable

CHECKED_AT_ONCE = 1 << 20  # values of a comparison of neighbours: its temporaries stay in cache


def wrong_bounds(bounds: np.ndarray, end: int) -> str:
    """Bounds of rows start at 0, never decrease, and end at `end`. bounds: int64 (N + 1,)."""
    if len(bounds) == 0 or bounds[0] != 0 or bounds[-1] != end:
        return f"its rows do not start at 0 and end at {end:,}"
    for start in range(0, len(bounds) - 1, CHECKED_AT_ONCE):
        part = bounds[start : start + CHECKED_AT_ONCE + 1]
        if (part[1:] < part[:-1]).any():
            return "a row ends before it starts"
    return ""


def wrong_rows(rows: Ragged, n_rows: int, n_ids: int) -> str:
    """`n_rows` rows of ids from 0 to `n_ids` - 1. O(T) time: one pass, 10 GB/s."""
    if len(rows.indptr) != n_rows + 1:
        return f"has {len(rows.indptr):,} bounds of rows, and {n_rows + 1:,} are needed"
    unsigned = rows.values.view(f"u{rows.values.itemsize}")  # a negative id is huge without its sign
    if unsigned.max(initial=0) >= max(n_ids, 1) or (n_ids == 0 and len(unsigned)):
        return f"has an id outside of 0 to {n_ids - 1:,}"
    return wrong_bounds(rows.indptr, len(rows.values))


def wrong_strings(table: StringTable) -> str:
    """Strings of whole UTF-8 characters."""
    if found := wrong_bounds(table.offsets, len(table.utf8)):
        return found
    if first_invalid_utf8(table.utf8) >= 0:
        return "holds bytes that are not UTF-8"
    starts = table.offsets[table.offsets < len(table.utf8)]
    if (table.utf8[starts] & 0xC0 == 0x80).any():  # a byte that continues a character
        return "cuts a character in two"
    return ""
