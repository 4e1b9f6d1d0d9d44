"""Rows of the index -> negatives: gather, probabilities, draws and tokens, block by block, so that what one stage
leaves is in the first-level cache when the next reads it, and the misses of a block are under way together."""

from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from una_fast._kernels.ids.emit cimport TermTokens, write_rows
from una_fast._kernels.draws.law cimport Law
from una_fast._kernels.prefetch cimport una_prefetch
from una_fast._kernels.draws.probability cimport FirstPlaces, fill_probabilities
from una_fast._kernels.draws.random cimport epoch_key, row_key
from una_fast._kernels.draws.replace cimport fill_replacements

cdef enum:
    BLOCK = 16  # rows; 8 to 64 were within 5 %, 1 is 1.5 times slower


cdef class Workspace:
    """What one thread needs to make negatives: buffers for a block of rows of at most `longest_row` words."""

    cdef FirstPlaces places
    cdef int32_t[::1] ids, first, chosen, terms
    cdef double[::1] z, p
    cdef int64_t[::1] bounds
    cdef uint64_t[::1] keys

    def __init__(self, int64_t longest_row):
        capacity = BLOCK * max(longest_row, 1)
        self.places = FirstPlaces(longest_row)
        self.ids, self.first, self.chosen, self.terms = (np.empty(capacity, dtype=np.int32) for _ in range(4))
        self.z, self.p = (np.empty(capacity, dtype=np.float64) for _ in range(2))
        self.bounds = np.zeros(BLOCK + 1, dtype=np.int64)
        self.keys = np.empty(BLOCK, dtype=np.uint64)


cdef class Negatives:
    """Makes the negatives of rows of an index. words: `Ragged` int32 term ids; several threads may share one object,
    each with a `Workspace` of its own."""

    cdef const int32_t[::1] values
    cdef const int64_t[::1] indptr
    cdef readonly Law law
    cdef readonly TermTokens tokens

    def __init__(self, words, Law law, TermTokens tokens=None):
        self.values, self.indptr, self.law, self.tokens = words.values, words.indptr, law, tokens

    def token_ids(self, const int64_t[::1] rows, uint64_t epoch, Workspace work, int64_t[:, ::1] input_ids,
                  int64_t[:, ::1] attention_mask):
        """Fill `input_ids` and `attention_mask`, int64 (B, L), with the negatives of `rows` (B,)."""
        cdef int64_t begin = 0, stop
        cdef uint64_t key = epoch_key(self.law.seed, epoch)
        with nogil:
            while begin < rows.shape[0]:
                stop = min(begin + BLOCK, rows.shape[0])
                self.block(rows, begin, stop, key, work)
                write_rows(self.tokens, work.terms, work.bounds, stop - begin, input_ids, attention_mask, begin)
                begin = stop

    def terms(self, const int64_t[::1] rows, uint64_t epoch, Workspace work, int32_t[::1] out):
        """Fill `out` with the terms of the negatives of `rows`, one row after the other."""
        cdef int64_t begin = 0, stop, k, end = 0
        cdef uint64_t key = epoch_key(self.law.seed, epoch)
        with nogil:
            while begin < rows.shape[0]:
                stop = min(begin + BLOCK, rows.shape[0])
                self.block(rows, begin, stop, key, work)
                for k in range(work.bounds[stop - begin]):
                    out[end + k] = work.terms[k]
                end += work.bounds[stop - begin]
                begin = stop

    cdef int block(self, const int64_t[::1] rows, int64_t begin, int64_t stop, uint64_t key,
                   Workspace work) except -1 nogil:
        """work.terms and work.bounds: the negatives of rows[begin:stop]."""
        cdef int64_t n_rows = stop - begin, k
        self.gather(rows, begin, stop, work)
        self.announce(rows, stop)
        for k in range(n_rows):
            work.keys[k] = row_key(key, <uint64_t>rows[begin + k])
        fill_probabilities(self.law, work.places, work.ids, work.bounds, n_rows, work.first, work.z, work.p)
        fill_replacements(self.law, work.keys, work.ids, work.bounds, n_rows, work.first, work.z, work.p, work.chosen,
                          work.terms)
        return 0

    cdef int gather(self, const int64_t[::1] rows, int64_t begin, int64_t stop, Workspace work) except -1 nogil:
        cdef int64_t row, k, end = 0
        for row in range(begin, stop):
            for k in range(self.indptr[rows[row]], self.indptr[rows[row] + 1]):
                work.ids[end] = self.values[k]
                una_prefetch(&self.law.idf[self.values[k]])
                end += 1
            work.bounds[row - begin + 1] = end
        return 0

    cdef int announce(self, const int64_t[::1] rows, int64_t begin) except -1 nogil:
        """Ask for the words of the next block, and for the bounds of the one after it."""
        cdef int64_t row, k, n = rows.shape[0]
        for row in range(begin, min(begin + BLOCK, n)):
            for k in range(self.indptr[rows[row]], self.indptr[rows[row] + 1], 16):
                una_prefetch(&self.values[k])
        for row in range(min(begin + BLOCK, n), min(begin + 2 * BLOCK, n)):
            una_prefetch(&self.indptr[rows[row]])
        return 0
