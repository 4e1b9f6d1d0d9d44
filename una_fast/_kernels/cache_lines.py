"""Arrays that share no cache line with anything else; large ones on large pages."""

from __future__ import annotations

import mmap
from contextlib import suppress

import numpy as np
from numpy.typing import DTypeLike

LINES = 128  # bytes: a cache line, and its neighbour, which some processors load with it
LARGE = 1 << 22  # bytes, two large pages of x86


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
