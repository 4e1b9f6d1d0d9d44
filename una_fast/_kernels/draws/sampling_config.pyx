"""The scores of the terms and the settings of one augmenter, from which the probabilities of its draws follow."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import numpy as np

from una_fast._kernels.draws.random cimport draw64, row_key, stream_key
from una_fast._kernels.logarithm cimport log1p_rounded

ANY = ANY_SCRIPT


cdef class SamplingConfig:
    """Scores of the terms and settings of one augmenter. The kernels read this object and never change it.

    idf: float64 (V,), idf of each term (equation 2); scores: float64 (V,), highest tf-idf of each term, never
    increasing, because a term's id is its rank.
    by_score: whether `radius` is a distance in score instead of a number of ranks; starts, stops: int32 (V,), the
    window of term i is the ids ``starts[i] .. stops[i] - 1`` if `by_score`; otherwise both arrays are empty.
    unseen_idf: idf of a word that is not in the index; beta: mean replacement probability (equation 3); seed: of all
    draws; released: whether to draw as the released code does instead of as the paper says; random_select: every term
    is replaced with probability `beta`; random_replace: replacements are uniform over the vocabulary.
    fixed: uint64 (V // 64 + 1,), bit ``i % 64`` of number ``i // 64`` says that term i is neither replaced nor drawn;
    None if there is no such term. scripts: uint8 (V,), of each term; it is replaced by terms of its script alone, or by
    any where the number is ANY; None: by any.
    """

    def __init__(self, const double[::1] idf, const double[::1] scores, const int32_t[::1] starts,
                 const int32_t[::1] stops, *, double unseen_idf, double beta, double radius, uint64_t seed,
                 bint by_score, bint released, bint random_select, bint random_replace,
                 const uint64_t[::1] fixed=None, const uint8_t[::1] scripts=None):
        cdef int64_t count, length
        self.idf, self.scores, self.starts, self.stops = idf, scores, starts, stops
        # Scores never increase, so blocks[j >> BLOCK_BITS] >= scores[j] >= blocks[(j >> BLOCK_BITS) + 1].
        self.blocks = np.append(np.asarray(scores)[:: 1 << BLOCK_BITS], 0.0)
        self.tf_table = np.zeros((TABLE_COUNTS, TABLE_LENGTHS))
        for count in range(TABLE_COUNTS):
            for length in range(1, TABLE_LENGTHS):
                self.tf_table[count, length] = log1p_rounded(count / <double>length)
        self.unseen_idf, self.beta, self.radius, self.seed = unseen_idf, beta, radius, seed
        self.by_score, self.released = by_score, released
        self.random_select, self.random_replace = random_select, random_replace
        self.fixes = fixed is not None
        self.fixed = fixed if self.fixes else np.empty(0, dtype=np.uint64)
        self.by_script = scripts is not None
        self.known_scripts = frozenset(np.unique(scripts).tolist()) if self.by_script else frozenset()
        self.scripts = scripts if self.by_script else np.empty(0, dtype=np.uint8)

    cdef double tf(self, int64_t count, int64_t length) except? -1 nogil:
        """The tf of equation 2: ln(1 + n_t / n), where n_t is `count` and n is `length`."""
        if count < TABLE_COUNTS and length < TABLE_LENGTHS:
            return self.tf_table[count, length]
        return log1p_rounded(count / <double>length)

    cdef int find_window(self, int64_t term, double score, Window *window) except -1 nogil:
        """Set `window` to the ids of the candidates for `term`.

        The window of an unseen word (term < 0) lies around the place that its tf-idf, `score`, would have in the
        ranking. For other terms, `score` is not used.
        """
        cdef int64_t n_terms = self.scores.shape[0], ranks = <int64_t>self.radius, place
        if self.random_replace:
            window.start, window.stop = 0, n_terms
        elif term >= 0 and self.by_score:
            window.start, window.stop = self.starts[term], self.stops[term]
        elif term >= 0:
            window.start, window.stop = max(0, term - ranks), min(n_terms, term + 1 + ranks)
        else:
            place = first_below(self.scores, score)
            if self.by_score:  # the nearest term on either side is a candidate even if its score differs by more
                window.start = min(first_below(self.scores, score + self.radius, True), max(0, place - 1))
                window.stop = max(first_below(self.scores, score - self.radius), min(n_terms, place + 1))
            else:
                window.start, window.stop = max(0, place - ranks), min(n_terms, place + ranks)
        return 0

    cdef int reach_candidate(self, int64_t excluded, uint8_t script, Window *window) except -1 nogil:
        """Widen a window without a candidate by one rank on either side until it holds one; there is one somewhere."""
        cdef int64_t j
        for j in range(window.start, window.stop):
            if is_candidate(self, j, excluded, script):
                return 0
        while True:
            window.start, window.stop = max(0, window.start - 1), min(self.scores.shape[0], window.stop + 1)
            if (is_candidate(self, window.start, excluded, script)
                    or is_candidate(self, window.stop - 1, excluded, script)):
                return 0

    def script(self, int64_t term):
        """The script of a term; ANY if it is replaced by terms of any."""
        return self.scripts[term] if self.by_script else ANY

    def window(self, int64_t term, double score=0.0, uint8_t script=ANY):
        """(start, stop): the candidates of `term` are the ids ``start .. stop - 1``.

        For an unseen word, `term` is -1, `score` is its tf-idf, and `script` its script.
        """
        cdef Window window
        self.find_window(term, score, &window)
        if self.fixes or self.by_script:
            self.reach_candidate(term, self.script(term) if term >= 0 else script, &window)
        return window.start, window.stop

    def candidates(self, window, int64_t excluded, uint8_t script=ANY):
        """int64: the terms of `window`, (start, stop), of a script that may be drawn when `excluded` is replaced."""
        cdef int64_t j, start = window[0], stop = window[1]
        return np.array([j for j in range(start, stop) if is_candidate(self, j, excluded, script)], dtype=np.int64)

    def draw(self, uint64_t row, uint64_t epoch, int64_t position, int64_t number, uint64_t sample_index=0):
        """uint64, the random bits of draw `number` for the word at `position` of `row`."""
        return draw64(row_key(stream_key(self.seed, epoch, sample_index), row), position, number)


cdef int64_t first_below(const double[::1] scores, double score, bint or_equal=False) except -1 nogil:
    """The first place in the ranking whose score is below `score`, or with `or_equal` at most `score`; V if none is.

    Binary search, log2(V) steps.
    """
    cdef int64_t low = 0, high = scores.shape[0], middle
    while low < high:
        middle = (low + high) // 2
        if scores[middle] < score or (or_equal and scores[middle] == score):
            high = middle
        else:
            low = middle + 1
    return low
