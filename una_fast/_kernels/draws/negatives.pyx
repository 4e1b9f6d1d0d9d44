"""Rows of the index -> negatives of UNA: for each row which words are replaced, then by what."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from una_fast._kernels.cache_lines import on_own_lines
from una_fast._kernels.draws.law cimport Law
from una_fast._kernels.draws.probability cimport FirstPlaces, fill_probabilities
from una_fast._kernels.draws.replace cimport choose, choose_exactly, copy_to_repeats, replace_chosen
from una_fast._kernels.draws.rows cimport BLOCK, RowKernel, Workspace
from una_fast._kernels.ids.emit cimport TermTokens
from una_fast._kernels.prefetch cimport una_prefetch

cdef enum:
    # In longer rows `choose` is not used: the time to find the later places of a term grows with the words of the row.
    LONGEST_CHOICE = 4096


cdef class NegativesWorkspace(Workspace):
    """Buffers of one thread for the negatives of a block of rows of at most `longest_row` words."""

    cdef FirstPlaces places
    cdef int32_t[::1] row, first, chosen
    cdef int64_t[::1] bounds_of_row
    cdef double[::1] z, p
    cdef const unsigned char[::1] fixed_unseen

    def __init__(self, int64_t longest_row):
        Workspace.__init__(self, longest_row)
        self.places = FirstPlaces(longest_row)
        self.row, self.first, self.chosen = (on_own_lines(max(longest_row, 1), np.int32) for _ in range(3))
        self.bounds_of_row = on_own_lines(2, np.int64)
        self.z, self.p = (on_own_lines(max(longest_row, 1), np.float64) for _ in range(2))
        self.fixed_unseen = np.empty(0, dtype=np.uint8)  # rows of an index have no unseen words

    cdef int weigh(self, Law law, const int32_t* ids, int64_t n) except -1 nogil:
        """Fill `first`, z and p for one row of n words."""
        memcpy(&self.row[0], ids, n * sizeof(int32_t))
        self.bounds_of_row[1] = n
        return fill_probabilities(law, self.places, self.row, self.bounds_of_row, 1, self.first, self.z, self.p,
                                  self.fixed_unseen)


cdef class Negatives(RowKernel):
    """Makes the negatives of rows of an index with the scores and settings in `law`.

    thresholds: uint32 (T,), of all words of the index (see `probability.fill_thresholds`); None: the probabilities of
    each row are computed, which makes the same draws.
    """

    cdef readonly Law law
    cdef const uint32_t[::1] thresholds
    cdef bint keeps

    def __init__(self, words, Law law, TermTokens tokens=None, const uint32_t[::1] thresholds=None):
        RowKernel.__init__(self, words, law.seed, tokens)
        self.law = law
        self.keeps = thresholds is not None
        self.thresholds = thresholds if self.keeps else np.empty(0, dtype=np.uint32)

    cdef int draw_block(self, Workspace work, const int64_t[::1] rows, int64_t begin, int64_t stop) except -1 nogil:
        cdef const int32_t* records = NULL
        cdef int64_t row
        if self.tokens is not None:
            records = &self.tokens.records[0, 0]
        for row in range(stop - begin):
            if work.bounds[row] < work.bounds[row + 1]:
                self.draw_row(<NegativesWorkspace>work, row, rows[begin + row], records)
        return 0

    cdef int draw_row(self, NegativesWorkspace work, int64_t place, int64_t row,
                      const int32_t* records) except -1 nogil:
        """Draw the words of `row` of the index in work.terms, where they are row `place` of the block."""
        cdef int64_t at = self.indptr[row], n = work.bounds[place + 1] - work.bounds[place], n_chosen = -1
        cdef uint64_t key = work.keys[place]
        cdef const int32_t* ids = &self.values[at]
        cdef int32_t* chosen = &work.chosen[0]
        cdef int32_t* out = &work.terms[work.bounds[place]]
        if self.keeps and n <= LONGEST_CHOICE:
            n_chosen = choose(&self.thresholds[at], key, n, chosen)
        if n_chosen >= 0:
            return replace_chosen(self.law, key, ids, n, NULL, chosen, n_chosen, records, out)
        work.weigh(self.law, ids, self.indptr[row + 1] - at)
        n_chosen = choose_exactly(self.law.released, key, &work.first[0], &work.p[0], n, chosen)
        replace_chosen(self.law, key, ids, n, NULL, chosen, n_chosen, records, out)
        if not self.law.released:
            copy_to_repeats(&work.first[0], n, out)
        return 0

    cdef int gather(self, const int64_t[::1] rows, int64_t begin, int64_t stop, Workspace work) except -1 nogil:
        """Copy the first work.most_words words of each row; prefetch the idf of all its words if they are needed."""
        cdef int64_t row, k, start, n, end = 0
        for row in range(begin, stop):
            start, n = self.indptr[rows[row]], self.indptr[rows[row] + 1] - self.indptr[rows[row]]
            if n > 0 and not self.keeps:
                for k in range(start, start + n):
                    una_prefetch(&self.law.idf[self.values[k]])
            n = min(n, work.most_words)
            if n > 0:
                memcpy(&work.terms[end], &self.values[start], n * sizeof(int32_t))
            end += n
            work.bounds[row - begin + 1] = end
        return 0

    cdef int announce(self, const int64_t[::1] rows, int64_t begin) except -1 nogil:
        """Do what `RowKernel.announce` does, and prefetch the thresholds of the same words."""
        cdef int64_t row, k
        RowKernel.announce(self, rows, begin)
        if self.keeps:
            for row in range(begin, min(begin + BLOCK, rows.shape[0])):
                for k in range(self.indptr[rows[row]], self.indptr[rows[row] + 1], 16):
                    una_prefetch(&self.thresholds[k])
        return 0
