"""Replacement probabilities -> replaced terms: step 3 of the paper, drawn by rejection sampling.

A candidate j is drawn uniformly from the window and accepted with probability s_j / m, where s_j is its score (its
highest tf-idf) and m is an upper bound of all scores in the window. After a rejection, the next candidate is drawn
independently, so the probability of each term is exactly s_j divided by the sum of the window's scores (in the paper's
variant, the term to replace is no candidate, and its score is not in the sum; terms that the law fixes are no candidates
either). Scores differ little inside a window, so the first candidate is nearly always accepted.

`Law.blocks` holds an upper and a lower bound of each score and stays in cache. The score itself is read only if its
lower bound does not already accept the candidate. Binary search in cumulative weights takes 13 cache misses a draw.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from una_fast._kernels.draws.law cimport BLOCK_BITS, Law, Window, is_candidate
from una_fast._kernels.draws.random cimport LAST_NUMBER, TRIES, below, draw64, row_key, stream_key, unit


cdef int fill_replacements(Law law, const uint64_t[::1] keys, const int32_t[::1] ids, const int64_t[::1] bounds,
                           int64_t n_rows, const int32_t[::1] first, const double[::1] z, const double[::1] p,
                           int32_t[::1] chosen, int32_t[::1] out) except -1 nogil:
    """Fill `out` with the terms of the negatives of `n_rows` rows, row i being ``ids[bounds[i]:bounds[i + 1]]``.

    keys: `row_key` of each row; first, z, p: from `fill_probabilities`; chosen: scratch, as long as the longest row.
    """
    cdef int64_t row
    for row in range(n_rows):
        replace_row(law, keys[row], ids, bounds[row], bounds[row + 1], first, z, p, chosen, out)
    return 0


cdef int replace_row(Law law, uint64_t key, const int32_t[::1] ids, int64_t start, int64_t stop,
                     const int32_t[::1] first, const double[::1] z, const double[::1] p, int32_t[::1] chosen,
                     int32_t[::1] out) except -1 nogil:
    """Fill ``out[start:stop]`` with the terms of the negative of the row ``ids[start:stop]``.

    In the paper's variant one draw decides for a term at all its places; in the released code's variant, for one word.
    The positions in the draws count from the row's first word. chosen: (n,) scratch.
    """
    cdef int64_t k, n = stop - start, n_chosen = 0
    # The loop body has no branch: half of the words are chosen, so half of the predictions of a branch would be wrong.
    for k in range(n):
        chosen[n_chosen] = <int32_t>k
        n_chosen += (law.released or first[start + k] == k) and unit(draw64(key, k, 0)) < p[start + k]
        out[start + k] = ids[start + k]
    for k in range(n_chosen):
        out[start + chosen[k]] = <int32_t>draw_term(law, key, chosen[k], ids[start + chosen[k]], z[start + chosen[k]])
    if not law.released:
        for k in range(n):
            out[start + k] = out[start + first[start + k]]
    return 0


cdef int64_t draw_term(Law law, uint64_t key, int64_t position, int64_t term, double score) except -1 nogil:
    """Draw a replacement for `term` from its window, each candidate with a probability proportional to its score.

    The paper's variant never draws `term` itself; the released code's variant may. position: place of the word in its
    row; score: tf-idf of the word, from which an unseen word (term < 0) gets its window.
    """
    cdef Window window
    cdef int64_t excluded = -1 if law.released else term, number, candidate
    cdef double envelope, height
    cdef uint64_t bits, width
    law.find_window(term, score, &window)
    width = window.stop - window.start
    envelope = 0.0 if law.random_replace else law.blocks[window.start >> BLOCK_BITS]
    for number in range(1, TRIES + 1):
        bits = draw64(key, position, number)
        candidate = window.start + below(bits, width)
        if not is_candidate(law, candidate, excluded):
            continue
        if envelope == 0.0:  # the draw is uniform: all scores of the window are 0, or `random_replace` is set
            return candidate
        # `below` took the upper 64 bits of the product bits * width. The lower 64 bits are uniform as well.
        height = unit(bits * width) * envelope
        if height < law.blocks[(candidate >> BLOCK_BITS) + 1] or height < law.scores[candidate]:
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
    cdef uint64_t[::1] keys = np.empty(rows.shape[0], dtype=np.uint64)
    cdef int32_t[::1] chosen = np.empty(np.max(np.diff(indptr), initial=0), dtype=np.int32)
    cdef uint64_t key = stream_key(law.seed, epoch, draw_set)
    cdef int64_t row
    with nogil:
        for row in range(rows.shape[0]):
            keys[row] = row_key(key, rows[row])
        fill_replacements(law, keys, ids, indptr, rows.shape[0], first, z, p, chosen, out)
