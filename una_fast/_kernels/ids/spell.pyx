"""Rows of ids -> their text as UTF-8, words joined by a space."""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

import numpy as np


def spell_rows(const int32_t[::1] ids, const int64_t[::1] indptr, const unsigned char[::1] utf8,
               const int64_t[::1] offsets, const unsigned char[::1] other_utf8, const int64_t[::1] other_offsets,
               int64_t first_glued):
    """Returns (text uint8 (T,), bounds int64 (N + 1,)): row i of `ids` is spelt ``text[bounds[i]:bounds[i + 1]]``.

    Row i has the ids ``ids[indptr[i]:indptr[i + 1]]``, int32. An id k of at least 0 is the string
    ``utf8[offsets[k]:offsets[k + 1]]``; a negative id k is string -1 - k of the table `other_utf8`, `other_offsets`. No
    space follows an id from `first_glued` on.
    """
    cdef int64_t n = indptr.shape[0] - 1, row
    bounds_array = np.zeros(n + 1, dtype=np.int64)
    cdef int64_t[::1] bounds = bounds_array
    with nogil:
        for row in range(n):
            bounds[row + 1] = bounds[row] + row_length(
                ids, indptr[row], indptr[row + 1], offsets, other_offsets, first_glued)
    text = np.empty(bounds[n], dtype=np.uint8)
    cdef unsigned char[::1] out = text
    with nogil:
        for row in range(n):
            write_row(ids, indptr[row], indptr[row + 1], utf8, offsets, other_utf8, other_offsets, first_glued, out,
                      bounds[row])
    return text, bounds_array


cdef int64_t row_length(const int32_t[::1] ids, int64_t start, int64_t stop, const int64_t[::1] offsets,
                        const int64_t[::1] other_offsets, int64_t first_glued) except -1 nogil:
    cdef int64_t k, length = 0
    for k in range(start, stop):
        length += k > start and ids[k - 1] < first_glued
        if ids[k] >= 0:
            length += offsets[ids[k] + 1] - offsets[ids[k]]
        else:
            length += other_offsets[-ids[k]] - other_offsets[-1 - ids[k]]
    return length


cdef int write_row(const int32_t[::1] ids, int64_t start, int64_t stop, const unsigned char[::1] utf8,
                   const int64_t[::1] offsets, const unsigned char[::1] other_utf8,
                   const int64_t[::1] other_offsets, int64_t first_glued, unsigned char[::1] out,
                   int64_t end) except -1 nogil:
    cdef int64_t k
    for k in range(start, stop):
        if k > start and ids[k - 1] < first_glued:
            out[end] = c' '
            end += 1
        if ids[k] >= 0:
            end = copy(utf8, offsets[ids[k]], offsets[ids[k] + 1], out, end)
        else:
            end = copy(other_utf8, other_offsets[-1 - ids[k]], other_offsets[-ids[k]], out, end)
    return 0


cdef int64_t copy(const unsigned char[::1] utf8, int64_t start, int64_t stop, unsigned char[::1] out,
                  int64_t end) except -1 nogil:
    if stop > start:
        memcpy(&out[end], &utf8[start], stop - start)
    return end + stop - start
