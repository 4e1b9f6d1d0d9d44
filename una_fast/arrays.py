"""Array types that all modules share: dtypes, arrays with rows of different lengths, string tables, buffers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import DTypeLike

from una_fast.errors import InputError

ID = np.int32  # ids of terms, chunks and sub-words: half the bytes of int64, and memory bandwidth limits the kernels
POINTER = np.int64  # row bounds: a corpus may have more than 2**31 words
SCORE = np.float64  # scores and probabilities: rounding them to float32 would change draws, which compare them
TOKEN = np.int64  # token ids in batches: the dtype that torch's embedding layers accept

MAX_IDS = 2**31 - 1
CACHE_LINES = 128  # bytes: two cache lines, because some processors load them in pairs


def check_id_range(n: int, what: str) -> None:
    """Raise InputError if n distinct items are too many for int32 ids. what: the items' plural noun."""
    if n > MAX_IDS:
        raise InputError(f"the corpus has {n:,} distinct {what}, but an index can have at most {MAX_IDS:,}: split it")


def row_bounds(lengths: np.ndarray | Sequence[int]) -> np.ndarray:
    """Return the bounds of n rows with these lengths, int64 (n + 1,): row i is ``bounds[i]:bounds[i + 1]``."""
    bounds = np.zeros(len(lengths) + 1, dtype=POINTER)
    np.cumsum(lengths, out=bounds[1:])
    return bounds


@dataclass(frozen=True)
class RaggedArray:
    """Rows of different lengths in one array: row i is ``values[indptr[i]:indptr[i + 1]]``."""

    values: np.ndarray  # integers
    indptr: np.ndarray  # int64 (n_rows + 1,), never decreasing, from 0 to len(values)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.values[self.indptr[row] : self.indptr[row + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[row] for row in range(len(self)))

    def lengths(self) -> np.ndarray:
        """Return the number of values in each row, int64 (n_rows,)."""
        return np.diff(self.indptr)

    def empty_rows(self) -> np.ndarray:
        """Return the indices of the empty rows, ascending."""
        return np.flatnonzero(self.indptr[1:] == self.indptr[:-1])  # `lengths` of a billion rows would take 8 GB

    def followed_by(self, *others: RaggedArray) -> RaggedArray:
        """Return a copy of the rows of this array, followed by the rows of `others`."""
        parts = [self, *others]
        lengths = np.concatenate([part.lengths() for part in parts])
        return RaggedArray(np.concatenate([part.values for part in parts]), row_bounds(lengths))

    def take(self, rows: np.ndarray) -> RaggedArray:
        """Return the rows with the indices `rows`, in that order. No index may be negative."""
        starts = self.indptr[rows]
        return rows_from(self.values, starts, self.indptr[rows + 1] - starts)


def rows_from(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> RaggedArray:
    """Copy rows out of `values`: row i is ``values[starts[i]:starts[i] + lengths[i]]``."""
    bounds = row_bounds(lengths)
    indices = np.repeat(starts - bounds[:-1], lengths)
    indices += np.arange(bounds[-1])
    return RaggedArray(values[indices], bounds)


@dataclass(frozen=True)
class StringTable(Sequence[str]):
    """Strings in one UTF-8 buffer: string i is ``utf8[offsets[i]:offsets[i + 1]]``, and is decoded when it is read."""

    utf8: np.ndarray  # uint8
    offsets: np.ndarray  # int64 (n + 1,), in bytes, as `RaggedArray.indptr`

    @classmethod
    def from_strings(cls, strings: Sequence[str]) -> StringTable:
        """Make a table of `strings`."""
        return cls.from_bytes([string.encode("utf-8") for string in strings])

    @classmethod
    def from_bytes(cls, strings: Sequence[bytes]) -> StringTable:
        """Make a table of `strings`, which are encoded in UTF-8."""
        return cls(np.frombuffer(b"".join(strings), dtype=np.uint8), row_bounds([*map(len, strings)]))

    @classmethod
    def from_arrow(cls, strings: pa.LargeStringArray) -> StringTable:
        """Make a table that shares the memory of an Arrow array without nulls."""
        _, offsets, utf8 = strings.buffers()
        bounds = np.frombuffer(offsets, dtype=POINTER)[strings.offset : strings.offset + len(strings) + 1]
        return cls(np.frombuffer(utf8 or b"", dtype=np.uint8)[bounds[0] : bounds[-1]], bounds - bounds[0])

    def take(self, order: np.ndarray) -> StringTable:
        """Return the strings with the indices `order`, in this order."""
        numbers = pa.Array.from_buffers(pa.int64(), len(order), [None, pa.py_buffer(order.astype(np.int64))])
        return StringTable.from_arrow(self._arrow().take(numbers))  # 4 times as fast as `RaggedArray.take`

    def followed_by(self, *others: StringTable) -> StringTable:
        """Return a copy of the strings of this table, followed by the strings of `others`."""
        first, *following = (RaggedArray(table.utf8, table.offsets) for table in (self, *others))
        joined = first.followed_by(*following)
        return StringTable(joined.values, joined.indptr)

    def containing(self, *texts: bytes) -> np.ndarray:
        """Return the indices of the strings that contain at least one of `texts`, ascending. No text may be empty."""
        escaped = "|".join(re.escape(text.decode("utf-8")) for text in texts)
        return self.matching(escaped or r"[^\x00-\x{10FFFF}]")  # this pattern matches nothing

    def matching(self, pattern: str) -> np.ndarray:
        """Return the indices of the strings that contain a match of an RE2 regular expression, ascending."""
        numbers = pc.indices_nonzero(pc.match_substring_regex(self._arrow(), pattern))
        # to_numpy would import pandas
        return np.frombuffer(numbers.buffers()[1], np.uint64, len(numbers)).astype(np.int64)

    def is_utf8(self) -> bool:
        """Return whether each string is valid UTF-8. If so, no offset points into the middle of a character."""
        try:
            self._arrow().validate(full=True)
        except pa.ArrowInvalid:
            return False
        return True

    def _arrow(self) -> pa.LargeStringArray:
        # made of buffers, because pa.array would import pandas
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.utf8)]
        return pa.Array.from_buffers(pa.large_string(), len(self), buffers)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, i: int | np.integer) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | np.integer | slice) -> str | list[str]:
        if isinstance(i, slice):
            start, stop, step = i.indices(len(self))
            if step != 1 or stop < start:
                return [*self.take(np.arange(start, stop, step))]
            bounds = self.offsets[start : stop + 1]  # without a copy by Arrow, which takes 40 us
            return [*StringTable(self.utf8[bounds[0] : bounds[-1]], bounds - bounds[0])]
        n = len(self)
        if not -n <= i < n:
            raise IndexError(f"index {i} of a table of {n} strings")
        i %= n
        return self.utf8[self.offsets[i] : self.offsets[i + 1]].tobytes().decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        buffer = self.utf8.tobytes()
        bounds = itertools.pairwise(self.offsets.tolist())
        if buffer.isascii():  # one byte per character, so one call decodes all strings
            text = buffer.decode("ascii")
            return (text[start:stop] for start, stop in bounds)
        return (buffer[start:stop].decode("utf-8") for start, stop in bounds)


def cache_aligned_zeros(n: int, dtype: DTypeLike) -> np.ndarray:
    """Return an array of n zeros that shares no cache line with other data, for a buffer that a thread writes.

    A write to a cache line invalidates the line in the other cores' caches. When a thread's counters shared a line with
    another thread's pointers, drawing a negative took 1.0 us instead of 0.7.
    """
    n_bytes = n * np.dtype(dtype).itemsize
    buffer = np.zeros(n_bytes + 2 * CACHE_LINES, dtype=np.uint8)
    start = -buffer.ctypes.data % CACHE_LINES
    return buffer[start : start + n_bytes].view(dtype)


def extended(array: np.ndarray, used: int, more: np.ndarray) -> np.ndarray:
    """Write `more` after the first `used` items of an array, and return the array, or a longer copy if it is full.

    Other threads may be reading the first `used` items.
    """
    if used + len(more) > len(array):
        array = np.concatenate([array, np.empty(used + len(more), dtype=array.dtype)])
    array[used : used + len(more)] = more
    return array
