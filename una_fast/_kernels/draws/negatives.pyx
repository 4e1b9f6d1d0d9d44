"""Rows of the index -> negatives of UNA: for each row which words are replaced, then by what."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from una_fast._kernels.cache_lines import on_own_lines
from una_fast._kernels.draws.law cimport Law
from una_fast._kernels.draws.probability cimport FirstPlaces, fill_probabilities
from una_fast._kernels.draws.probability import id_bits
from una_fast._kernels.draws.replace cimport choose_exactly, copy_to_repeats, replace_chosen
from una_fast._kernels.draws.random cimport draw64
from una_fast._kernels.draws.rows cimport Respelled, RowKernel, Workspace
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

    weighted: uint32 (T,), all words of the index with their probabilities (see `probability.fill_weighted`); None: the
    probabilities of each row are computed, which makes the same draws.
    """

    cdef readonly Law law
    cdef const uint32_t[::1] weighted
    cdef int id_bits
    cdef bint keeps

    def __init__(self, words, Law law, TermTokens tokens=None, Respelled respelled=None, weighted=None):
        RowKernel.__init__(self, words, law.seed, tokens, respelled)
        self.law, self.keeps, self.id_bits = law, weighted is not None, id_bits(law.scores.shape[0])
        self.weighted = weighted if self.keeps else np.empty(0, dtype=np.uint32)
        if self.keeps:
            self.read_first = weighted.view(np.int32)

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
        cdef int64_t at = self.indptr[row], n = work.bounds[place + 1] - work.bounds[place], n_chosen
        cdef uint64_t key = work.keys[place]
        cdef const int32_t* ids = &self.values[at]
        cdef int32_t* chosen = &work.chosen[0]
        cdef int32_t* out = &work.terms[work.bounds[place]]
        if self.keeps and n <= LONGEST_CHOICE:
            n_chosen = choose(&self.weighted[at], self.id_bits, key, n, &work.row[0], out, chosen)
            if n_chosen >= 0:
                return replace_chosen(self.law, key, &work.row[0], n, NULL, chosen, n_chosen, records, out)
        memcpy(out, ids, n * sizeof(int32_t))
        work.weigh(self.law, ids, self.indptr[row + 1] - at)
        n_chosen = choose_exactly(self.law.released, key, &work.first[0], &work.p[0], n, chosen)
        replace_chosen(self.law, key, ids, n, NULL, chosen, n_chosen, records, out)
        if not self.law.released:
            copy_to_repeats(&work.first[0], n, out)
        return 0

    cdef int gather(self, const int64_t[::1] rows, int64_t begin, int64_t stop, Workspace work) except -1 nogil:
        """Make room for the first work.most_words words of each row; prefetch the idf of all if they are needed.

        A row with two words in one has fewer in the end, so all its words are needed.
        """
        cdef int64_t row, k, n
        for row in range(begin, stop):
            if not self.keeps:
                for k in range(self.indptr[rows[row]], self.indptr[rows[row] + 1]):
                    una_prefetch(&self.law.idf[self.values[k]])
            n = self.indptr[rows[row] + 1] - self.indptr[rows[row]]
            work.bounds[row - begin + 1] = work.bounds[row - begin] + (
                n if self.is_spelled(rows[row]) else min(n, work.most_words))
        return 0


cdef inline int64_t choose(const uint32_t* weighted, int bits, uint64_t key, int64_t n, int32_t* ids, int32_t* out,
                           int32_t* chosen) noexcept nogil:
    """Fill `chosen` with the places of the first n words of a row that are replaced, in order; returns their number.

    weighted, bits: the row's words, and `id_bits` (see `probability.fill_weighted`); key: `row_key` of the row; ids,
    out: int32 (n,), both filled with the terms of the words; chosen: int32 (n,). An entry is twice the place, plus 1 if
    the term stands at later places too, which get the same replacement. Returns -1 if a draw lies so near a probability
    that the bits that are kept cannot decide: at V = 523,000 and p below 1, that is so for one word in 4,096.
    """
    cdef int64_t k, n_chosen = 0
    cdef uint32_t word, draw, p, id_mask = (<uint32_t>1 << bits) - 1
    cdef bint near = False
    # The loop body has no branch: half of the words are chosen, so half of the predictions of a branch would be wrong.
    for k in range(n):
        word = weighted[k]
        draw = <uint32_t>(draw64(key, k, 0) >> (33 + bits))
        p = word >> (bits + 1)
        ids[k] = out[k] = <int32_t>(word & id_mask)
        chosen[n_chosen] = <int32_t>(k << 1 | (word >> bits & 1))
        n_chosen += draw < p
        near |= draw == p
    return -1 if near else n_chosen
