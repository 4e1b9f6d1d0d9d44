"""The law that one augmenter draws by: what is known of the terms, and its settings."""

from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from una_fast._kernels.draws.random cimport draw64, row_key, stream_key
from una_fast._kernels.logarithm cimport log1p_rounded


cdef class Law:
    """Scores of the terms and settings of the draws; read by the kernels, never changed.

    idf, scores: float64 (V,), scores never increasing (a term's id is its rank); starts, stops: int32 (V,), the window
    of each term when windows are a distance in score (`radius`, by_score), empty arrays when they are `radius` ranks.
    """

    def __init__(self, const double[::1] idf, const double[::1] scores, const int32_t[::1] starts,
                 const int32_t[::1] stops, *, double unseen_idf, double beta, double radius, uint64_t seed,
                 bint by_score, bint released, bint random_select, bint random_replace):
        cdef int64_t count, length
        self.idf, self.scores, self.starts, self.stops = idf, scores, starts, stops
        # scores[j] lies between blocks[j >> BLOCK_BITS] and blocks[(j >> BLOCK_BITS) + 1]
        self.blocks = np.append(np.asarray(scores)[:: 1 << BLOCK_BITS], 0.0)
        self.tf_table = np.zeros((TABLE_COUNTS, TABLE_LENGTHS))
        for count in range(TABLE_COUNTS):
            for length in range(1, TABLE_LENGTHS):
                self.tf_table[count, length] = log1p_rounded(count / <double>length)
        self.unseen_idf, self.beta, self.radius, self.seed = unseen_idf, beta, radius, seed
        self.by_score, self.released = by_score, released
        self.random_select, self.random_replace = random_select, random_replace

    cdef double tf(self, int64_t count, int64_t length) except? -1 nogil:
        """ln(1 + n_t / n), equation 2."""
        if count < TABLE_COUNTS and length < TABLE_LENGTHS:
            return self.tf_table[count, length]
        return log1p_rounded(count / <double>length)

    cdef int find_window(self, int64_t term, double score, Window *window) except -1 nogil:
        """Candidates for a term; an unseen one (term < 0) stands at the place of its score."""
        if self.random_replace:
            window.start, window.stop = 0, self.scores.shape[0]
        elif self.by_score and term >= 0:
            window.start, window.stop = self.starts[term], self.stops[term]
        elif self.by_score:
            self.score_window(score, window)
        elif term >= 0:
            self.rank_window(term, 1, window)
        else:
            self.rank_window(first_below(self.scores, score), 0, window)
        return 0

    cdef int rank_window(self, int64_t place, int64_t width, Window *window) except -1 nogil:
        """`radius` ranks on either side of the `width` terms at `place`, clipped at the ends."""
        cdef int64_t ranks = <int64_t>self.radius
        window.start = max(0, place - ranks)
        window.stop = min(self.scores.shape[0], place + width + ranks)
        return 0

    cdef int score_window(self, double score, Window *window) except -1 nogil:
        """Terms within `radius` of an unseen word's score, and the nearest term on either side."""
        cdef int64_t place = first_below(self.scores, score)
        window.start = min(first_below(self.scores, score + self.radius, True), max(0, place - 1))
        window.stop = max(first_below(self.scores, score - self.radius), min(self.scores.shape[0], place + 1))
        return 0

    def window(self, int64_t term, double score=0.0):
        """(start, stop) of the candidates of `term`, or of an unseen word (term -1) of that `score`."""
        cdef Window window
        self.find_window(term, score, &window)
        return window.start, window.stop

    def draw(self, uint64_t row, uint64_t epoch, int64_t position, int64_t number, uint64_t draw_set=0):
        """uint64, the bits that decide draw `number` at `position` of `row`."""
        return draw64(row_key(stream_key(self.seed, epoch, draw_set), row), position, number)


cdef int64_t first_below(const double[::1] scores, double score, bint or_equal=False) except -1 nogil:
    """The first place whose score is below `score` (or equal to it): binary search, log2(V) steps."""
    cdef int64_t low = 0, high = scores.shape[0], middle
    while low < high:
        middle = (low + high) // 2
        if scores[middle] < score or (or_equal and scores[middle] == score):
            high = middle
        else:
            low = middle + 1
    return low
