"""Checks of arrays that compiled code uses as indices, of an index that came from elsewhere."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from una_fast.arrays import Ragged, StringTable


def wrong_bounds(bounds: np.ndarray, end: int) -> str:
    """What is wrong with bounds of rows, which start at 0, never decrease and end at `end`, or "". bounds: int64."""
    if len(bounds) == 0 or bounds[0] != 0 or bounds[-1] != end:
        return f"its rows do not start at 0 and end at {end:,}"
    return "a row ends before it starts" if (bounds[1:] < bounds[:-1]).any() else ""


def wrong_ids(ids: np.ndarray, n: int) -> bool:
    """True if an id is not from 0 to `n` - 1."""
    unsigned = ids.view(f"u{ids.itemsize}")  # a negative id becomes larger than any valid one
    return len(ids) > 0 and bool(unsigned.max() >= n)


def wrong_rows(rows: Ragged, n_rows: int, n_ids: int) -> str:
    """What is wrong with `n_rows` rows of ids from 0 to `n_ids` - 1, or ""."""
    if len(rows.indptr) != n_rows + 1:
        return f"has {len(rows.indptr):,} bounds of rows, and {n_rows + 1:,} are needed"
    if wrong_ids(rows.values, n_ids):
        return f"has an id outside of 0 to {n_ids - 1:,}"
    return wrong_bounds(rows.indptr, len(rows.values))


def wrong_strings(table: StringTable) -> str:
    """What is wrong with the strings of a table, whole UTF-8 characters each, or ""."""
    if wrong := wrong_bounds(table.offsets, len(table.utf8)):
        return wrong
    return "" if are_utf8(table.utf8, table.offsets) else "holds bytes that are not UTF-8, or cuts a character in two"


def are_utf8(data: np.ndarray, offsets: np.ndarray) -> bool:
    """Whether each string ``data[offsets[i]:offsets[i + 1]]`` is whole UTF-8. data: uint8; offsets: int64 (n + 1,)."""
    strings = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
