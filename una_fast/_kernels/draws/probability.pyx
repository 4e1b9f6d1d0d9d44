"""Stores the settings of an augmenter, and computes replacement probabilities (equations 3 and 4 of the paper)."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

import numpy as np

from una_fast._kernels.logarithm cimport rounded
from una_fast._kernels.prefetch cimport una_prefetch

FIXED, ANY = FIXED_GROUP, ANY_GROUP
cdef double NO_P = -1.0  # marks a fixed word while the p of the other words are computed


cdef class SamplingConfig:
    """The scores of the terms, and the settings of one augmenter. Kernels never change this object.

    scores: the highest tf-idf of each term, in descending order because a term's id is its rank.
    radius: in ranks.
    released: whether to draw like the released code instead of the paper.
    random_select: whether every term has the replacement probability `beta`. If this chooses no term of a row, one is
        replaced after all, unless `released` is True.
    random_replace: whether replacements are drawn uniformly from the whole vocabulary.
    groups: the group of each term. A FIXED term is neither replaced nor drawn. A term of group ANY can be replaced by
        every term that is not fixed. Other terms can be replaced by terms of their own group. None: all are ANY.
    """

    def __init__(self, const double[::1] idf, const double[::1] scores, *, int64_t n_documents, double beta,
                 int64_t radius, uint64_t seed, bint released, bint random_select, bint random_replace,
                 const uint8_t[::1] groups=None):
        cdef int64_t count, length
        self.idf, self.scores = idf, scores
        # Scores never increase, so blocks[j >> BLOCK_BITS] >= scores[j] >= blocks[(j >> BLOCK_BITS) + 1].
        self.blocks = np.append(np.asarray(scores)[:: 1 << BLOCK_BITS], 0.0)
        self.tf_table = np.zeros((TABLE_COUNTS, TABLE_LENGTHS))
        for count in range(TABLE_COUNTS):
            for length in range(1, TABLE_LENGTHS):
                self.tf_table[count, length] = rounded(count / <double>length, 1)
        self.unseen_idf = 0.0 - rounded(1.0 / n_documents, 0)  # an unseen word counts as a word of one sentence
        self.beta, self.radius, self.seed = beta, radius, seed
        self.released, self.random_select, self.random_replace = released, random_select, random_replace
        self.has_groups = groups is not None
        self.groups = groups if self.has_groups else np.empty(0, dtype=np.uint8)

    cdef double tf(self, int64_t count, int64_t length) except? -1 nogil:
        """Return ln(1 + count / length), the tf of equation 2."""
        if count < TABLE_COUNTS and length < TABLE_LENGTHS:
            return self.tf_table[count, length]
        return rounded(count / <double>length, 1)

    cdef int find_window(self, int64_t term, double score, Window *window) except -1 nogil:
        """Set `window` to the ids around `term`. An unseen word has no id: its tf-idf `score` determines its rank."""
        cdef int64_t n_terms = self.scores.shape[0], low = 0, high = n_terms, middle
        if self.random_replace:
            window.start, window.stop = 0, n_terms
        elif term < n_terms:
            window.start, window.stop = max(0, term - self.radius), min(n_terms, term + 1 + self.radius)
        else:
            while low < high:
                middle = (low + high) // 2
                if self.scores[middle] < score:
                    high = middle
                else:
                    low = middle + 1
            window.start, window.stop = max(0, low - self.radius), min(n_terms, low + self.radius)
        return 0

    cdef int reach_candidate(self, int64_t excluded, uint8_t group, Window *window) except -1 nogil:
        """Widen `window` on both sides, one rank at a time, until it contains a candidate, which must exist."""
        cdef int64_t j
        for j in range(window.start, window.stop):
            if is_candidate(self, j, excluded, group):
                return 0
        while True:
            window.start, window.stop = max(0, window.start - 1), min(self.scores.shape[0], window.stop + 1)
            if (is_candidate(self, window.start, excluded, group)
                    or is_candidate(self, window.stop - 1, excluded, group)):
                return 0

    def window(self, int64_t term, double score=0.0, const uint8_t[::1] unseen_groups=None):
        """Return (start, stop): a replacement of `term` is drawn from the ids ``start .. stop - 1``.

        score: the tf-idf of `term`, needed only for an unseen word. unseen_groups: as in `UnaRows`.
        """
        cdef Window window
        self.find_window(term, score, &window)
        if self.has_groups:
            self.reach_candidate(term, group_of(self, term, unseen_groups), &window)
        return window.start, window.stop

    def candidates(self, window, int64_t term, const uint8_t[::1] unseen_groups=None):
        """Return the ids that can replace `term`, int64. window: the pair (start, stop) that bounds the ids."""
        cdef int64_t j, start = window[0], stop = window[1], excluded = -1 if self.released else term
        cdef uint8_t group = group_of(self, term, unseen_groups)
        return np.array([j for j in range(start, stop) if is_candidate(self, j, excluded, group)], dtype=np.int64)


cdef void find_first(int32_t* latest, const int32_t* ids, int64_t n, int32_t* first) noexcept nogil:
    """Set first[k] to the position at which the term ids[k] first occurs in a row of n words.

    latest: scratch, one position per id. Old positions need not be cleared between rows: position j is used only if
    j < k and ids[j] equals ids[k].
    """
    cdef int64_t k
    cdef int32_t place
    for k in range(n):
        place = latest[ids[k]]
        first[k] = place if 0 <= place < k and ids[place] == ids[k] else <int32_t>k
        latest[ids[k]] = first[k]


cdef int fill_probabilities(SamplingConfig config, int32_t* latest, int32_t* repeats, const int32_t* ids, int64_t n,
                            int32_t* first, double* z, double* p,
                            const uint8_t[::1] unseen_groups) except -1 nogil:
    """Fill `first`, `z` and `p` (see `replacement_probabilities`) for one row of n >= 1 words.

    Fixed words get p = 0, and neither the mean C in equation 3 nor the highest z includes them. In the paper's variant,
    C is over the distinct terms, and all occurrences of the first term with the highest z get p = 1. In the released
    code's variant, C is over all words, and only the first word with the highest z gets p = 1.
    latest, repeats: scratch.
    """
    cdef int64_t k, counts, n_averaged = 0, highest = -1
    cdef double lowest = INFINITY, top = -1.0, total = 0.0, scale
    cdef bint uniform, fixed
    for k in range(n):
        una_prefetch(&config.idf[0] + ids[k])
        una_prefetch(&latest[ids[k]])
    find_first(latest, ids, n, first)
    fill_tfidf(config, repeats, ids, n, first, z, p)
    for k in range(n):
        fixed = group_of(config, ids[k], unseen_groups) == FIXED_GROUP
        p[k] = NO_P if fixed else 0.0
        if not fixed:
            lowest = min(lowest, z[k])
            if z[k] > top:
                top, highest = z[k], k
    for k in range(n):
        if p[k] != NO_P:
            counts = config.released or first[k] == k
            total += counts * (z[k] - lowest)
            n_averaged += counts
    # If all z are equal, as in a row of one distinct term, equation 3 is 0 / 0: each term gets the mean, beta.
    uniform = total == 0.0 or config.random_select
    scale = 0.0 if uniform else config.beta / (total / n_averaged)
    for k in range(n):
        if p[k] == NO_P:
            p[k] = 0.0
        else:
            p[k] = config.beta if uniform else min(scale * (z[k] - lowest), 1.0)
    if highest >= 0 and not config.random_select:
        p[highest] = 1.0  # in the released code too: if another p reaches 1, the highest does
        for k in range(highest, highest if config.released else n):
            if first[k] == highest:
                p[k] = 1.0
    return 0


cdef int fill_tfidf(SamplingConfig config, int32_t* repeats, const int32_t* ids, int64_t n, const int32_t* first,
                    double* z, double* count) except -1 nogil:
    """Fill z with the tf-idf of each word of a row of n words (equation 2). repeats, count: scratch of n values.

    The first loop scores each word as if it occurred once. The other loops correct the scores of repeated words. A
    single loop would have a branch misprediction at each repeated word.
    """
    cdef int64_t k, i, n_repeats = 0, n_terms = config.idf.shape[0]
    cdef double once = config.tf(1, n)
    for k in range(n):
        z[k] = once * (config.idf[ids[k]] if ids[k] < n_terms else config.unseen_idf)
        count[k] = 1.0
        repeats[n_repeats] = <int32_t>k
        n_repeats += first[k] != k
    for i in range(n_repeats):
        count[first[repeats[i]]] += 1.0
    for i in range(n_repeats):
        k = first[repeats[i]]
        z[k] = config.tf(<int64_t>count[k], n) * (config.idf[ids[k]] if ids[k] < n_terms else config.unseen_idf)
        z[repeats[i]] = z[k]
    return 0


def replacement_probabilities(SamplingConfig config, words, const uint8_t[::1] unseen_groups=None):
    """Return the arrays `first`, `z` and `p`, each with one value for each word of all rows.

    first: int32, the position in the row at which the word's term first occurs.
    z: float64, tf-idf of the word (equation 2).
    p: float64, replacement probability of the word (equations 3 and 4).
    """
    cdef const int32_t[::1] ids = words.values
    cdef const int64_t[::1] indptr = words.indptr
    cdef int64_t row, at, n
    cdef int32_t[::1] latest = np.empty(max(config.idf.shape[0], np.max(ids, initial=0) + 1), dtype=np.int32)
    cdef int32_t[::1] repeats = np.empty(np.max(np.diff(indptr), initial=0) + 1, dtype=np.int32)
    cdef int32_t[::1] first = np.empty(ids.shape[0], dtype=np.int32)
    cdef double[:, ::1] weights = np.empty((2, ids.shape[0]))
    with nogil:
        for row in range(indptr.shape[0] - 1):
            at, n = indptr[row], indptr[row + 1] - indptr[row]
            if n > 0:
                fill_probabilities(config, &latest[0], &repeats[0], &ids[at], n, &first[at], &weights[0, at],
                                   &weights[1, at], unseen_groups)
    return np.asarray(first), *np.asarray(weights)


def id_bits(int64_t n_terms):
    """Return how many bits of a packed word (see `pack_words`) contain the term id."""
    return (n_terms - 1).bit_length()


def pack_words(SamplingConfig config, const int32_t[::1] ids, const int64_t[::1] indptr, const int32_t[::1] first,
               const double[::1] p, uint32_t[::1] out):
    """Fill `out` with packed words. A packed word is a term id with a rounded probability.

    From the lowest bit to the highest, a packed word contains, with b = `id_bits`:

    - b bits: the term id.
    - 1 bit: 1 for the first occurrence of a term that the row repeats (paper's variant only).
    - 31 - b bits: q = floor(2**(31 - b) * p), at most 2**(31 - b) - 1. `negatives.choose` compares q with the upper
      bits of a draw, and only needs the exact p if they are equal. In the paper's variant, later occurrences of a term
      have q = 0, because the first occurrence decides for all.
    """
    cdef int64_t row, k, at
    cdef int b = id_bits(config.scores.shape[0])
    cdef uint32_t most = (<uint32_t>1 << (31 - b)) - 1
    with nogil:
        for row in range(indptr.shape[0] - 1):
            for k in range(indptr[row], indptr[row + 1]):
                at = indptr[row] + first[k]
                out[k] = <uint32_t>ids[k]
                if config.released or at == k:
                    out[k] |= min(<uint32_t>(p[k] * (<double>most + 1.0)), most) << (b + 1)
                else:
                    out[at] |= <uint32_t>1 << b
