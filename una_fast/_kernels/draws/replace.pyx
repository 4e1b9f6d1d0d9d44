"""Replacement probabilities -> replaced terms: step 3 of the paper, drawn by rejection sampling.

A candidate j is drawn uniformly from the window and accepted with probability s_j / m, where s_j is its score (its
highest tf-idf) and m is an upper bound of all scores in the window. After a rejection, the next candidate is drawn
independently, so the probability of each term is exactly s_j divided by the sum of the window's scores (in the paper's
variant, neither the term to replace nor a term that the law fixes is a candidate, and the sum leaves them out).
Scores differ little inside a window, so the first candidate is nearly always accepted.

`Law.blocks` holds an upper and a lower bound of each score and stays in cache. The score itself is read only if neither
its lower bound accepts the candidate nor its upper bound rejects it. Binary search in cumulative weights takes 13 cache
misses a draw.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from una_fast._kernels.draws.law cimport BLOCK_BITS, Law, Window, is_candidate, is_fixed
from una_fast._kernels.draws.random cimport LAST_NUMBER, TRIES, below, draw64, row_key, stream_key, unit
from una_fast._kernels.ids.emit cimport RECORD
from una_fast._kernels.prefetch cimport una_prefetch


cdef int64_t choose_exactly(bint released, uint64_t key, const int32_t* first, const double* p, int64_t n,
                            int32_t* chosen) noexcept nogil:
    """As `negatives.choose`, from `first` and p of the row (see `fill_probabilities`); no entry tells of later places.

    In the paper's variant one draw decides for a term at all its places; in the released code's variant, for one word.
    """
    cdef int64_t k, n_chosen = 0
    for k in range(n):
        chosen[n_chosen] = <int32_t>(k << 1)
        n_chosen += (released or first[k] == k) and unit(draw64(key, k, 0)) < p[k]
    return n_chosen


cdef void copy_to_repeats(const int32_t* first, int64_t n, int32_t* out) noexcept nogil:
    """Set each of the n words of `out` to the word at the first place of its term."""
    cdef int64_t k
    for k in range(n):
        out[k] = out[first[k]]


cdef int replace_chosen(Law law, uint64_t key, const int32_t* ids, int64_t n, const double* z, const int32_t* chosen,
                        int64_t n_chosen, const int32_t* records, int32_t* out) except -1 nogil:
    """Replace the chosen words of the row `ids` of n words in its copy `out`.

    The positions in the draws count from the row's first word. z: tf-idf of each word, which only rows with unseen
    words (negative ids) need; NULL without. chosen: as `choose_exactly` fills it; records: of
    `TermTokens`, or NULL; the records that will be copied are prefetched.
    """
    cdef const double* blocks = &law.blocks[0]
    cdef const double* scores = &law.scores[0]
    cdef int64_t n_terms = law.scores.shape[0], radius = <int64_t>law.radius, i, j, k, start
    cdef bint by_rank = not (law.by_score or law.random_replace), released = law.released
    cdef int32_t new
    for i in range(n_chosen):
        k = chosen[i] >> 1
        new = -1
        if by_rank and ids[k] >= 0:  # the first candidate, which `draw_term` too would take
            start = max(0, ids[k] - radius)
            new = <int32_t>accepted(blocks, scores, draw64(key, k, 1), start, min(n_terms, ids[k] + 1 + radius) - start)
            if new >= 0 and ((new == ids[k] and not released) or is_fixed(law, new)):
                new = -1
        if new < 0:
            new = <int32_t>draw_term(law, key, k, ids[k], z[k] if z != NULL else 0.0)
        if records != NULL:
            una_prefetch(records + RECORD * <int64_t>new)
        out[k] = new
        if chosen[i] & 1:
            for j in range(k + 1, n):
                if ids[j] == ids[k]:
                    out[j] = new
    return 0


cdef inline int64_t accepted(const double* blocks, const double* scores, uint64_t bits, int64_t start,
                             uint64_t width) noexcept nogil:
    """The candidate that `bits` propose, one of the `width` terms from `start` on; -1 if they reject it."""
    cdef int64_t candidate = start + below(bits, width), block = candidate >> BLOCK_BITS
    # `below` took the upper 64 bits of the product bits * width. The lower 64 bits are uniform as well.
    cdef double height = unit(bits * width) * blocks[start >> BLOCK_BITS]
    if height < blocks[block + 1] or (height < blocks[block] and height < scores[candidate]):
        return candidate
    return -1


cdef int64_t draw_term(Law law, uint64_t key, int64_t position, int64_t term, double score) except -1 nogil:
    """Draw a replacement for `term` from its window, each candidate with a probability proportional to its score.

    The paper's variant never draws `term` itself; the released code's variant may. position: place of the word in its
    row; score: tf-idf of the word, from which an unseen word (term < 0) gets its window.
    """
    cdef Window window
    cdef int64_t excluded = -1 if law.released else term, number, candidate
    cdef uint64_t bits, width
    law.find_window(term, score, &window)
    width = window.stop - window.start
    cdef bint uniform = law.random_replace or law.blocks[window.start >> BLOCK_BITS] == 0.0  # all scores are 0
    for number in range(1, TRIES + 1):
        bits = draw64(key, position, number)
        if uniform:
            candidate = window.start + below(bits, width)
        else:
            candidate = accepted(&law.blocks[0], &law.scores[0], bits, window.start, width)
        if candidate >= 0 and is_candidate(law, candidate, excluded):
            return candidate
    return invert_weights(law, window, excluded, draw64(key, position, LAST_NUMBER))


cdef int64_t invert_weights(Law law, Window window, int64_t excluded, uint64_t bits) except -1 nogil:
    """Draw from `window` with the same probabilities as `draw_term`, by a search in the cumulative sum of its scores.

    It is for windows where one score is far above the others, or where nearly all terms are fixed, so that all TRIES
    candidates were rejected.
    """
    cdef int64_t j, n_candidates = 0, last = -1
    cdef double total = 0.0, target
    if law.fixes:
        law.reach_candidate(excluded, &window)
    for j in range(window.start, window.stop):
        if is_candidate(law, j, excluded):
            total += law.scores[j]
            n_candidates += 1
    if total == 0.0 or law.random_replace:
        n_candidates = below(bits, n_candidates)  # the candidate of this number
        for j in range(window.start, window.stop):
            if is_candidate(law, j, excluded):
                last = j
                n_candidates -= 1
                if n_candidates < 0:
                    break
        return last
    target = unit(bits) * total
    for j in range(window.start, window.stop):
        if law.scores[j] > 0.0 and is_candidate(law, j, excluded):
            last = j
            target -= law.scores[j]
            if target < 0.0:
                break
    return last


def replace_terms(Law law, const uint64_t[::1] rows, uint64_t epoch, const int32_t[::1] ids,
                  const int64_t[::1] indptr, const int32_t[::1] first, const double[::1] z, const double[::1] p,
                  int32_t[::1] out, uint64_t draw_set=0):
    """Fill `out`, int32 (T,), with the terms of the negatives of the rows ``ids[indptr[i]:indptr[i + 1]]``.

    rows: uint64 (N,), the number that stands for each row in its draws: its row in the index, or the hash of its words;
    ids: int32 (T,), negative for unseen words; indptr: int64 (N + 1,); first: int32 (T,), z, p: float64 (T,), as
    `replacement_probabilities` fills them.
    """
    cdef int32_t[::1] scratch = np.empty(np.max(np.diff(indptr), initial=1), dtype=np.int32)
    cdef uint64_t stream = stream_key(law.seed, epoch, draw_set), key
    cdef int32_t* chosen = &scratch[0]
    cdef int64_t row, start, n, n_chosen
    out[:] = ids
    with nogil:
        for row in range(rows.shape[0]):
            start, n = indptr[row], indptr[row + 1] - indptr[row]
            if n > 0:
                key = row_key(stream, rows[row])
                n_chosen = choose_exactly(law.released, key, &first[start], &p[start], n, chosen)
                replace_chosen(law, key, &ids[start], n, &z[start], chosen, n_chosen, NULL, &out[start])
                if not law.released:
                    copy_to_repeats(&first[start], n, &out[start])
