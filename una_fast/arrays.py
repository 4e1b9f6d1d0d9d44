"""The array types that all stages share: dtypes, ragged rows, tables of strings, per-thread buffers."""

from __future__ import annotations

import itertools
import mmap
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import DTypeLike

from una_fast.errors import InputError

ID = np.int32  # ids of terms, chunks and sub-words: half the bytes of int64, and memory traffic limits the kernels
POINTER = np.int64  # row bounds: a corpus may have more than 2**31 words
SCORE = np.float64  # scores and probabilities: draws compare them, so they are not rounded to float32
TOKEN = np.int64  # token ids in batches, as torch embeddings take them

MAX_IDS = 2**31 - 1
LINES = 128  # bytes: a cache line, and its neighbour, which some processors load with it
LARGE = 1 << 22  # bytes, two large pages of x86


def check_id_range(n: int, what: str) -> None:
    """Raise InputError for more than 2**31 - 1 distinct `what`, the most that int32 ids can number."""
    if n > MAX_IDS:
        raise InputError(f"the corpus has {n:,} distinct {what}, and an index can have at most {MAX_IDS:,}: split it")


def row_bounds(lengths: np.ndarray | Sequence[int]) -> np.ndarray:
    """Return the bounds of n rows of these lengths, int64 (n + 1,): row i is ``bounds[i]`` to ``bounds[i + 1]``."""
    bounds = np.zeros(len(lengths) + 1, dtype=POINTER)
    np.cumsum(lengths, out=bounds[1:])
    return bounds


@dataclass(frozen=True)
class RaggedArray:
    """Rows of different lengths in one array: row i is ``values[indptr[i]:indptr[i + 1]]``.

    values: (T,) integers; indptr: int64 (N + 1,), starting at 0, never decreasing, ending at T.
    """

    values: np.ndarray
    indptr: np.ndarray

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.values[self.indptr[row] : self.indptr[row + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[row] for row in range(len(self)))

    def lengths(self) -> np.ndarray:
        """Return the number of values of each row, int64 (N,)."""
        return np.diff(self.indptr)

    def empty_rows(self) -> np.ndarray:
        """Return the numbers of the rows without a value, int64, ascending."""
        return np.flatnonzero(self.indptr[1:] == self.indptr[:-1])  # `lengths` of a billion rows would take 8 GB

    def followed_by(self, *others: RaggedArray) -> RaggedArray:
        """Return these rows, then the rows of each of `others`."""
        parts = [self, *others]
        lengths = np.concatenate([part.lengths() for part in parts])
        return RaggedArray(np.concatenate([part.values for part in parts]), row_bounds(lengths))

    def take(self, rows: np.ndarray) -> RaggedArray:
        """Return the rows with the numbers `rows`, integers (m,), in that order."""
        return rows_from(self.values, self.indptr[:-1][rows], self.lengths()[rows])


def rows_from(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> RaggedArray:
    """Gather rows: row i is ``values[starts[i]:starts[i] + lengths[i]]``. starts, lengths: integers (n,)."""
    bounds = row_bounds(lengths)
    places = np.repeat(starts - bounds[:-1], lengths)
    places += np.arange(bounds[-1])
    return RaggedArray(values[places], bounds)


@dataclass(frozen=True)
class StringTable(Sequence[str]):
    """Strings as one UTF-8 buffer: string i is ``utf8[offsets[i]:offsets[i + 1]]``, decoded when asked for.

    utf8: uint8 (T,); offsets: int64 (n + 1,).
    """

    utf8: np.ndarray
    offsets: np.ndarray

    @classmethod
    def from_strings(cls, strings: Sequence[str]) -> StringTable:
        """Pack `strings`, in order."""
        encoded = [s.encode("utf-8") for s in strings]
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), row_bounds([len(e) for e in encoded]))

    @classmethod
    def from_arrow(cls, strings: pa.LargeStringArray) -> StringTable:
        """Wrap the buffers of an Arrow array without nulls."""
        _, offsets, utf8 = strings.buffers()
        bounds = np.frombuffer(offsets, dtype=POINTER)[strings.offset : strings.offset + len(strings) + 1]
        return cls(np.frombuffer(utf8 or b"", dtype=np.uint8)[bounds[0] : bounds[-1]], bounds - bounds[0])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return both arrays, by the names under which they are stored."""
        return {"utf8": self.utf8, "offsets": self.offsets}

    def take(self, order: np.ndarray) -> StringTable:
        """Return the strings of these numbers, integers (m,), in that order."""
        numbers = pa.Array.from_buffers(pa.int64(), len(order), [None, pa.py_buffer(order.astype(np.int64))])
        return StringTable.from_arrow(self._arrow().take(numbers))  # a fourth of the time of `RaggedArray.take`

    def followed_by(self, *others: StringTable) -> StringTable:
        """Return these strings, then those of the `others`."""
        rows, *following = (RaggedArray(part.utf8, part.offsets) for part in (self, *others))
        joined = rows.followed_by(*following)
        return StringTable(joined.values, joined.indptr)

    def rows_with(self, *contents: bytes) -> np.ndarray:
        """Return the numbers of the strings that contain one of `contents` (none empty), int64, ascending."""
        escaped = "|".join(re.escape(content.decode("utf-8")) for content in contents)
        return self.rows_matching(escaped or r"[^\x00-\x{10FFFF}]")  # which matches nothing

    def rows_matching(self, pattern: str) -> np.ndarray:
        """Return the numbers of the strings in which a pattern of RE2 matches, int64, ascending."""
        rows = pc.indices_nonzero(pc.match_substring_regex(self._arrow(), pattern))
        return np.frombuffer(rows.buffers()[1], np.uint64, len(rows)).astype(np.int64)  # to_numpy would import pandas

    def is_utf8(self) -> bool:
        """Return whether each string is valid UTF-8, so that no bound is inside a character."""
        try:
            self._arrow().validate(full=True)
        except pa.ArrowInvalid:
            return False
        return True

    def _arrow(self) -> pa.LargeStringArray:
        """Wrap the same buffers; pa.array would import pandas."""
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
            return [*self.take(np.arange(*i.indices(len(self))))]
        n = len(self)
        if not -n <= i < n:
            raise IndexError(f"index {i} of a table of {n} strings")
        i %= n
        return self.utf8[self.offsets[i] : self.offsets[i + 1]].tobytes().decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        buffer = self.utf8.tobytes()
        bounds = itertools.pairwise(self.offsets.tolist())
        if buffer.isascii():  # one byte per character, so all strings are decoded at once
            text = buffer.decode("ascii")
            return (text[start:stop] for start, stop in bounds)
        return (buffer[start:stop].decode("utf-8") for start, stop in bounds)


def on_own_lines(n: int, dtype: DTypeLike) -> np.ndarray:
    """Return zeros (n,) that start at a multiple of LINES bytes, with nothing else in their cache lines.

    Buffers of a thread need this: a write of one thread takes the whole line from the others. Two counters of 4 bytes
    next to pointers of the other thread's workspace slowed a negative from 0.7 to 1.0 us.
    """
    itemsize = np.dtype(dtype).itemsize
    buffer = _zeros(-(-n * itemsize // LINES) * LINES + LINES)
    skip = -buffer.ctypes.data % LINES
    return buffer[skip : skip + n * itemsize].view(dtype)


def _zeros(n_bytes: int) -> np.ndarray:
    """Return zeros, uint8; large arrays on pages of 2 MB where the system has them: fewer addresses to look up."""
    if n_bytes < LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(n_bytes, dtype=np.uint8)
    memory = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without large pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype=np.uint8)
