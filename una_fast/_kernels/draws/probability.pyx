"""Rows of terms -> replacement probabilities: equations 3 and 4 of the paper."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

import numpy as np

from una_fast._kernels.cache_lines import on_own_lines
from una_fast._kernels.draws.law cimport Law, is_fixed

cdef double FIXED = -1.0  # stands for p at a word that is not replaced until the row's other words have their p
cdef const unsigned char[::1] NONE_FIXED = np.empty(0, dtype=np.uint8)


cdef class FirstPlaces:
    """Finds the first place of each term in a row, with a hash table that is never cleared.

    Each entry of the table carries the stamp of the row that wrote it. Entries with another stamp count as empty.
    longest_row: the most words that a row can have.
    """

    def __init__(self, int64_t longest_row):
        self.table = on_own_lines(table_size(longest_row), np.uint64)
        self.repeats = on_own_lines(longest_row, np.int32)
        self.stamp = on_own_lines(1, np.uint32)

    cdef int fill(self, const int32_t[::1] ids, int64_t start, int64_t stop, int32_t[::1] first) except -1 nogil:
        """Set first[k], for k in start .. stop - 1, to the first place of the term ids[k], counted from `start`."""
        cdef uint64_t mask = <uint64_t>table_size(stop - start) - 1, slot, stamp
        cdef int64_t k, place
        self.stamp[0] += 1
        if self.stamp[0] == 0:  # after 2**32 rows the stamps begin again
            self.table[:] = 0
            self.stamp[0] = 1
        stamp = <uint64_t>self.stamp[0] << 32
        for k in range(start, stop):
            slot = ((<uint32_t>ids[k] * <uint64_t>0x9E3779B97F4A7C15ULL) >> 32) & mask
            while self.table[slot] >> 32 == stamp >> 32:
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
    """The number of entries of the table for n words: the lowest power of two that is at least 8 n and at least 16.

    A failed probe costs a mispredicted branch: with 2 n entries, all stages together were 5 % slower. At n = 22 the
    table has 2 KB and still fits the first-level cache.
    """
    cdef int64_t size = 16
    while size < 8 * n:
        size *= 2
    return size


cdef int fill_probabilities(Law law, FirstPlaces places, const int32_t[::1] ids, const int64_t[::1] bounds,
                            int64_t n_rows, int32_t[::1] first, double[::1] z, double[::1] p,
                            const unsigned char[::1] fixed_unseen) except -1 nogil:
    """Fill `first`, `z` and `p` (see `replacement_probabilities`) for `n_rows` rows.

    Row i is ``ids[bounds[i]:bounds[i + 1]]``.
    """
    cdef int64_t row
    for row in range(n_rows):
        if bounds[row] < bounds[row + 1]:
            places.fill(ids, bounds[row], bounds[row + 1], first)
            row_tfidf(law, places, ids, bounds[row], bounds[row + 1], first, z, p)
            if law.fixes:
                mark_fixed(law, ids, bounds[row], bounds[row + 1], fixed_unseen, p)
            row_probabilities(law, bounds[row], bounds[row + 1], first, z, p)
    return 0


cdef int row_tfidf(Law law, FirstPlaces places, const int32_t[::1] ids, int64_t start, int64_t stop,
                   const int32_t[::1] first, double[::1] z, double[::1] count) except -1 nogil:
    """Fill z with ln(1 + n_t / n) idf (equation 2) at each place of the row. Negative ids are unseen words.

    The first loop scores each word as if it occurred once; the other loops correct the words that occur several times.
    In one loop for both, the branch for repeated words would be mispredicted at each of them. count: scratch.
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
    """Fill p from z, equations 3 and 4.

    Paper: C is the mean over the distinct terms, and the first term with the highest z gets p = 1.
    Released code: C is the mean over the words, and the first word with the highest p gets p = 1 if no p reaches 1.
    If `law.fixes`, the words that `mark_fixed` marked get p = 0, and the equations are applied to the other words.
    """
    cdef bint fixes = law.fixes
    cdef int64_t k, counts, n_averaged = 0, highest = stop
    cdef double lowest = INFINITY, top = -1.0, total = 0.0, scale
    cdef bint uniform
    for k in range(start, stop):
        if fixes and p[k] == FIXED:
            continue
        lowest = min(lowest, z[k])
        if z[k] > top:
            top, highest = z[k], k
    for k in range(start, stop):
        if fixes and p[k] == FIXED:
            continue
        counts = law.released or first[k] == k - start
        total += counts * (z[k] - lowest)
        n_averaged += counts
    # If all z are equal, as in a row of one distinct term, equation 3 is 0 / 0: each term gets the mean, beta.
    uniform = total == 0.0 or law.random_select
    scale = 0.0 if uniform else law.beta / (total / n_averaged)
    for k in range(start, stop):
        if fixes and p[k] == FIXED:
            p[k] = 0.0
        else:
            p[k] = law.beta if uniform else min(scale * (z[k] - lowest), 1.0)
    if not law.random_select and highest < stop:
        force_highest(law, start, stop, highest, first, p)
    return 0


cdef int mark_fixed(Law law, const int32_t[::1] ids, int64_t start, int64_t stop,
                    const unsigned char[::1] fixed_unseen, double[::1] p) except -1 nogil:
    """Set p to FIXED at each word of the row that is never replaced, and to 0 at the others.

    fixed_unseen: uint8, 1 at index i if the unseen word with the id -1 - i is such a word.
    """
    cdef int64_t k
    cdef bint fixed
    for k in range(start, stop):
        fixed = is_fixed(law, ids[k]) if ids[k] >= 0 else fixed_unseen[-1 - ids[k]]
        p[k] = FIXED if fixed else 0.0
    return 0


cdef int force_highest(Law law, int64_t start, int64_t stop, int64_t highest, const int32_t[::1] first,
                       double[::1] p) except -1 nogil:
    """Set p = 1 for the term at `highest`, at all its places (paper).

    Released code: set p = 1 for the word at `highest` alone, unless a word of the row has p = 1 already.
    """
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
                              double[::1] z, double[::1] p, const unsigned char[::1] fixed_unseen=NONE_FIXED):
    """Fill `first` (int32), `z` and `p` (float64), all (T,), for the rows ``ids[indptr[i]:indptr[i + 1]]``.

    ids: int32 (T,), negative for unseen words; indptr: int64 (N + 1,); first: for each word the first place of its term
    in its row, counted from 0; z: tf-idf (equation 2); p: replacement probability (equations 3 and 4); fixed_unseen:
    uint8, for each unseen word 1 if it is never replaced, needed if the law has fixed terms.
    """
    cdef FirstPlaces places = FirstPlaces(int(np.max(np.diff(indptr), initial=0)))
    with nogil:
        fill_probabilities(law, places, ids, indptr, indptr.shape[0] - 1, first, z, p, fixed_unseen)


def id_bits(int64_t n_terms):
    """The bits of a weighted word that are its term, in an index of `n_terms` terms."""
    return (n_terms - 1).bit_length()


def fill_weighted(Law law, const int32_t[::1] ids, const int64_t[::1] indptr, const int32_t[::1] first,
                  const double[::1] p, uint32_t[::1] out):
    """Fill `out`, uint32 (T,), with each word and its probability, by which `negatives.choose` decides without p.

    The lowest b = `id_bits` bits are the term. The upper 31 - b bits are q = floor(2**(31 - b) p), at most
    2**(31 - b) - 1: a draw whose upper bits are below q is below p, and one whose upper bits are above q is not. The
    bit between says that the term stands at later places of the row too. In the paper's variant such later places have
    q = 0, because the first place decides for them. indptr: int64 (N + 1,), bounds of the rows; first, p: as
    `replacement_probabilities` fills them.
    """
    cdef int64_t row, k, at
    cdef int b = id_bits(law.scores.shape[0])
    cdef uint32_t most = (<uint32_t>1 << (31 - b)) - 1
    with nogil:
        for row in range(indptr.shape[0] - 1):
            for k in range(indptr[row], indptr[row + 1]):
                at = indptr[row] + first[k]
                out[k] = <uint32_t>ids[k]
                if law.released or at == k:
                    out[k] |= min(<uint32_t>(p[k] * (<double>most + 1.0)), most) << (b + 1)
                else:
                    out[at] |= <uint32_t>1 << b
