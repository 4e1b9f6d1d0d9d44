"""Rows of the index -> drawn rows, as terms or as token ids: gather, draw and write, block by block, so that what one
stage leaves is in the first-level cache when the next reads it, and the misses of a block are under way together.

A way to augment is a subclass of `RowKernel` that draws the rows of one block.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from una_fast._kernels.ids.emit cimport TermTokens, write_rows
from una_fast._kernels.prefetch cimport una_prefetch
from una_fast._kernels.draws.random cimport row_key, stream_key


cdef class Workspace:
    """Buffers of one thread for a block of rows of at most `longest_row` words, of which each becomes `growth` at most.

    ids, bounds: the rows as they are; terms, ends: as they are drawn (one array of bounds where no length changes);
    keys: `row_key` of each row.
    """

    def __init__(self, int64_t longest_row, int64_t growth=1):
        capacity = BLOCK * max(longest_row, 1)
        self.ids = np.empty(capacity, dtype=np.int32)
        self.terms = np.empty(growth * capacity, dtype=np.int32)
        self.bounds = np.zeros(BLOCK + 1, dtype=np.int64)
        self.ends = self.bounds if growth == 1 else np.zeros(BLOCK + 1, dtype=np.int64)
        self.keys = np.empty(BLOCK, dtype=np.uint64)


cdef class RowKernel:
    """Draws rows of an index. words: `Ragged` int32 term ids; several threads may share one object, each with a
    workspace of its own."""

    def __init__(self, words, uint64_t seed, TermTokens tokens=None):
        self.values, self.indptr, self.seed, self.tokens = words.values, words.indptr, seed, tokens

    def token_ids(self, const int64_t[::1] rows, uint64_t epoch, Workspace work, int64_t[:, ::1] input_ids,
                  int64_t[:, ::1] attention_mask, uint64_t draw_set=0):
        """Fill `input_ids` and `attention_mask`, int64 (B, L), with what is drawn of `rows` (B,)."""
        cdef int64_t begin = 0, stop
        cdef uint64_t key = stream_key(self.seed, epoch, draw_set)
        with nogil:
            while begin < rows.shape[0]:
                stop = min(begin + BLOCK, rows.shape[0])
                self.block(rows, begin, stop, key, work)
                write_rows(self.tokens, work.terms, work.ends, stop - begin, input_ids, attention_mask, begin)
                begin = stop

    def terms(self, const int64_t[::1] rows, uint64_t epoch, Workspace work, int32_t[::1] out, uint64_t draw_set=0):
        """Fill `out` with the terms drawn of `rows`, one row after the other; returns their bounds, int64 (B + 1,)."""
        cdef int64_t begin = 0, stop, k, end = 0
        cdef uint64_t key = stream_key(self.seed, epoch, draw_set)
        indptr = np.zeros(rows.shape[0] + 1, dtype=np.int64)
        cdef int64_t[::1] bounds = indptr
        with nogil:
            while begin < rows.shape[0]:
                stop = min(begin + BLOCK, rows.shape[0])
                self.block(rows, begin, stop, key, work)
                for k in range(work.ends[stop - begin]):
                    out[end + k] = work.terms[k]
                for k in range(stop - begin):
                    bounds[begin + k + 1] = end + work.ends[k + 1]
                end += work.ends[stop - begin]
                begin = stop
        return indptr

    cdef int block(self, const int64_t[::1] rows, int64_t begin, int64_t stop, uint64_t key,
                   Workspace work) except -1 nogil:
        """work.terms and work.ends: what is drawn of rows[begin:stop]."""
        cdef int64_t k
        self.gather(rows, begin, stop, work)
        self.announce(rows, stop)
        for k in range(stop - begin):
            work.keys[k] = row_key(key, <uint64_t>rows[begin + k])
        self.draw_block(work, stop - begin)
        return 0

    cdef int draw_block(self, Workspace work, int64_t n_rows) except -1 nogil:
        """Fill work.terms and work.ends from work.ids, work.bounds and work.keys; each subclass defines this."""
        return 0

    cdef int gather(self, const int64_t[::1] rows, int64_t begin, int64_t stop, Workspace work) except -1 nogil:
        """work.ids and work.bounds: the words of rows[begin:stop]."""
        cdef int64_t row, k, end = 0
        for row in range(begin, stop):
            for k in range(self.indptr[rows[row]], self.indptr[rows[row] + 1]):
                work.ids[end] = self.values[k]
                end += 1
            work.bounds[row - begin + 1] = end
        return 0

    cdef int announce(self, const int64_t[::1] rows, int64_t begin) except -1 nogil:
        """Prefetch the words of the next block, and the bounds of the one after it."""
        cdef int64_t row, k, n = rows.shape[0]
        for row in range(begin, min(begin + BLOCK, n)):
            for k in range(self.indptr[rows[row]], self.indptr[rows[row] + 1], 16):
                una_prefetch(&self.values[k])
        for row in range(min(begin + BLOCK, n), min(begin + 2 * BLOCK, n)):
            una_prefetch(&self.indptr[rows[row]])
        return 0
