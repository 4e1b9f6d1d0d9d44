"""Rows of the index -> negatives of UNA. For each block of `draws/rows`: probabilities first, then replacements."""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from una_fast._kernels.cache_lines import on_own_lines

from una_fast._kernels.ids.emit cimport TermTokens
from una_fast._kernels.draws.law cimport Law
from una_fast._kernels.prefetch cimport una_prefetch
from una_fast._kernels.draws.probability cimport FirstPlaces, fill_probabilities
from una_fast._kernels.draws.replace cimport fill_replacements
from una_fast._kernels.draws.rows cimport BLOCK, RowKernel, Workspace


cdef class NegativesWorkspace(Workspace):
    """Buffers of one thread for the negatives of a block of rows of at most `longest_row` words."""

    cdef FirstPlaces places
    cdef int32_t[::1] first, chosen
    cdef double[::1] z, p
    cdef const unsigned char[::1] fixed_unseen

    def __init__(self, int64_t longest_row):
        Workspace.__init__(self, longest_row)
        capacity = BLOCK * max(longest_row, 1)
        self.places = FirstPlaces(longest_row)
        self.first, self.chosen = (on_own_lines(capacity, np.int32) for _ in range(2))
        self.z, self.p = (on_own_lines(capacity, np.float64) for _ in range(2))
        self.fixed_unseen = np.empty(0, dtype=np.uint8)  # rows of an index have no unseen words

    cdef int draw(self, Law law, int64_t n_rows) except -1 nogil:
        fill_probabilities(law, self.places, self.ids, self.bounds, n_rows, self.first, self.z, self.p,
                           self.fixed_unseen)
        return fill_replacements(law, self.keys, self.ids, self.bounds, n_rows, self.first, self.z, self.p,
                                 self.chosen, self.terms)


cdef class Negatives(RowKernel):
    """Makes the negatives of rows of an index with the scores and settings in `law`."""

    cdef readonly Law law

    def __init__(self, words, Law law, TermTokens tokens=None):
        RowKernel.__init__(self, words, law.seed, tokens)
        self.law = law

    cdef int draw_block(self, Workspace workspace, int64_t n_rows) except -1 nogil:
        return (<NegativesWorkspace>workspace).draw(self.law, n_rows)

    cdef int gather(self, const int64_t[::1] rows, int64_t begin, int64_t stop, Workspace work) except -1 nogil:
        """Do what `RowKernel.gather` does, and prefetch the idf of each word."""
        cdef int64_t row, k, end = 0
        for row in range(begin, stop):
            for k in range(self.indptr[rows[row]], self.indptr[rows[row] + 1]):
                work.ids[end] = self.values[k]
                una_prefetch(&self.law.idf[self.values[k]])
                end += 1
            work.bounds[row - begin + 1] = end
        return 0
