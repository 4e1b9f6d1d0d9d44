"""Writes rows of ids as UTF-8 text, with the words joined by spaces."""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

import numpy as np


def spell_rows(const int32_t[::1] ids, const int64_t[::1] indptr, const unsigned char[::1] utf8,
               const int64_t[::1] offsets, const unsigned char[::1] other_utf8, const int64_t[::1] other_offsets):
    """Return (text, bounds): the text of row i, whose ids start at ``indptr[i]``, is ``text[bounds[i]:bounds[i + 1]]``.

    With n strings in `utf8`, the ids 0 to n - 1 stand for these strings, and the id n + k for string k of `other_utf8`.
    """
    cdef int64_t row, k, capacity = ids.shape[0], end = 0, n = offsets.shape[0] - 1
    with nogil:
        for k in range(ids.shape[0]):
            capacity += size(offsets, ids[k]) if ids[k] < n else size(other_offsets, ids[k] - n)
    text, bounds_array = np.empty(capacity, dtype=np.uint8), np.zeros(indptr.shape[0], dtype=np.int64)
    cdef unsigned char[::1] out = text
    cdef int64_t[::1] bounds = bounds_array
    with nogil:
        for row in range(indptr.shape[0] - 1):
            for k in range(indptr[row], indptr[row + 1]):
                if k > indptr[row]:
                    out[end] = c' '
                    end += 1
                if ids[k] < n:
                    end += copy(utf8, offsets, ids[k], out, end)
                else:
                    end += copy(other_utf8, other_offsets, ids[k] - n, out, end)
            bounds[row + 1] = end
    return text[:end], bounds_array


cdef inline int64_t size(const int64_t[::1] offsets, int64_t i) except -1 nogil:
    return offsets[i + 1] - offsets[i]


cdef inline int64_t copy(const unsigned char[::1] utf8, const int64_t[::1] offsets, int64_t i, unsigned char[::1] out,
                         int64_t end) except -1 nogil:
    """Copy string i to `out`, from index `end` on, and return how many bytes it has."""
    cdef int64_t n = size(offsets, i)
    if n > 0:
        memcpy(&out[end], &utf8[offsets[i]], n)
    return n
