"""Rows of terms -> replacement probabilities: equations 3 and 4 of the paper."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

import numpy as np

from una_fast._kernels.draws.law cimport Law


cdef class FirstPlaces:
    """Finds where each term of a row stands first: a hash table that is never cleared, entries carry the row's stamp.

    longest_row: the most words that a row can have.
    """

    def __init__(self, int64_t longest_row):
        self.table = np.zeros(table_size(longest_row), dtype=np.uint64)
        self.repeats = np.zeros(longest_row, dtype=np.int32)
        self.stamp = 0

    cdef int fill(self, const int32_t[::1] ids, int64_t start, int64_t stop, int32_t[::1] first) except -1 nogil:
        """first[k], for k in start .. stop - 1: the first place, counted from start, with the id of place k."""
        cdef uint64_t mask = <uint64_t>table_size(stop - start) - 1, slot, stamp
        cdef int64_t k, place
        self.stamp += 1
        if self.stamp == 0:  # after 2**32 rows the stamps begin again
            self.table[:] = 0
            self.stamp = 1
        stamp = <uint64_t>self.stamp << 32
        for k in range(start, stop):
            slot = ((<uint32_t>ids[k] * <uint64_t>0x9E3779B97F4A7C15ULL) >> 32) & mask
            while self.table[slot] >> 32 == self.stamp:
                place = <int64_t>(self.table[slot] & 0xFFFFFFFFULL)
                if ids[start + place] == ids[k]:
                    first[k] = <int32_t>place
                    break
                slot = (slot + 1) & mask
            else:
                self.table[slot] = stamp | <uint64_t>(k - start)
                first[k] = <int32_t>(k - start)
        return 0


cdef int64_t table_size(int64_t n) noexcept nogil:
    """The lowest power of two of at least 8 n. A failed probe costs a mispredicted branch, so 2 n was 5 % slower in
    all; and at n = 22 the table of 2 KB still fits the first-level cache."""
    cdef int64_t size = 16
    while size < 8 * n:
        size *= 2
    return size


cdef int fill_probabilities(Law law, FirstPlaces places, const int32_t[::1] ids, const int64_t[::1] bounds,
                            int64_t n_rows, int32_t[::1] first, double[::1] z, double[::1] p) except -1 nogil:
    """Fill first, z and p for `n_rows` rows, row i being ``ids[bounds[i]:bounds[i + 1]]``."""
    cdef int64_t row
    for row in range(n_rows):
        if bounds[row] < bounds[row + 1]:
            places.fill(ids, bounds[row], bounds[row + 1], first)
            row_tfidf(law, places, ids, bounds[row], bounds[row + 1], first, z, p)
            row_probabilities(law, bounds[row], bounds[row + 1], first, z, p)
    return 0


cdef int row_tfidf(Law law, FirstPlaces places, const int32_t[::1] ids, int64_t start, int64_t stop,
                   const int32_t[::1] first, double[::1] z, double[::1] count) except -1 nogil:
    """z = ln(1 + n_t / n) idf (equation 2) at each place of the row. Negative ids are unseen words. count: scratch.

    First every word as if it stood once, then the repeated ones: a test in one loop would be mispredicted for these.
    """
    cdef int64_t n = stop - start, k, i, n_repeats = 0
    cdef double once = law.tf(1, n)
    for k in range(n):
        z[start + k] = once * (law.idf[ids[start + k]] if ids[start + k] >= 0 else law.unseen_idf)
        count[start + k] = 1.0
        places.repeats[n_repeats] = <int32_t>k
        n_repeats += first[start + k] != k
    for i in range(n_repeats):
        count[start + first[start + places.repeats[i]]] += 1.0
    for i in range(n_repeats):
        k = start + first[start + places.repeats[i]]
        z[k] = law.tf(<int64_t>count[k], n) * (law.idf[ids[k]] if ids[k] >= 0 else law.unseen_idf)
        z[start + places.repeats[i]] = z[k]
    return 0


cdef int row_probabilities(Law law, int64_t start, int64_t stop, const int32_t[::1] first, const double[::1] z,
                           double[::1] p) except -1 nogil:
    """p from z. Paper: C is the mean over distinct terms, the first term of the highest z has p = 1.
    Released code: C is the mean over words, the first word of the highest p has p = 1 if none reaches 1."""
    cdef int64_t k, counts, n_averaged = 0, highest = start
    cdef double lowest = z[start], total = 0.0, scale
    for k in range(start, stop):
        lowest = min(lowest, z[k])
        if z[k] > z[highest]:
            highest = k
    for k in range(start, stop):
        counts = law.released or first[k] == k - start
        total += counts * (z[k] - lowest)
        n_averaged += counts
    if total == 0.0 or law.random_select:
        # all z equal, one distinct term included: equation 3 is 0 / 0, and each term has the mean probability
        for k in range(start, stop):
            p[k] = law.beta
    else:
        scale = law.beta / (total / n_averaged)
        for k in range(start, stop):
            p[k] = min(scale * (z[k] - lowest), 1.0)
    if not law.random_select:
        force_highest(law, start, stop, highest, first, p)
    return 0


cdef int force_highest(Law law, int64_t start, int64_t stop, int64_t highest, const int32_t[::1] first,
                       double[::1] p) except -1 nogil:
    """p = 1 for the term (paper) or for the word (released, unless another has p = 1) at `highest`."""
    cdef int64_t k
    if law.released:
        for k in range(start, stop):
            if p[k] >= 1.0:
                return 0
        p[highest] = 1.0
        return 0
    for k in range(highest, stop):
        if start + first[k] == highest:
            p[k] = 1.0
    return 0


def replacement_probabilities(Law law, const int32_t[::1] ids, const int64_t[::1] indptr, int32_t[::1] first,
                              double[::1] z, double[::1] p):
    """Fill `first` (int32), `z` and `p` (float64), all (T,), for rows ``ids[indptr[i]:indptr[i + 1]]``.

    first: where in its row each word stands first; z: tf-idf; p: replacement probability.
    """
    cdef FirstPlaces places = FirstPlaces(int(np.max(np.diff(indptr), initial=0)))
    with nogil:
        fill_probabilities(law, places, ids, indptr, indptr.shape[0] - 1, first, z, p)
