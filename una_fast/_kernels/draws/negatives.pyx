"""Draws negatives: chooses which words to replace (step 2 of the paper), and replacements (step 3).

A replacement is drawn by rejection sampling. A term j is drawn uniformly from the window and accepted with probability
s_j / m, where s_j is its score (its highest tf-idf) and m is an upper bound of all scores in the window. Some terms are
always rejected: those that `SamplingConfig.groups` excludes and, in the paper's variant, the replaced term itself. All
others are candidates, and candidate j has exactly the probability s_j divided by the sum of the candidates' scores.

Scores differ little inside a window, so the first draw is nearly always accepted. `SamplingConfig.blocks` contains an
upper and a lower bound of each score and stays in cache. The score itself is read only if these bounds cannot decide. A
binary search in cumulative weights would take 13 cache misses per draw.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from una_fast._kernels.draws.probability cimport BLOCK_BITS, FIXED_GROUP, SamplingConfig, Window
from una_fast._kernels.draws.probability cimport fill_probabilities, group_of, is_candidate
from una_fast._kernels.draws.probability import id_bits
from una_fast._kernels.draws.random cimport LAST_NUMBER, TRIES, below, draw64, unit
from una_fast._kernels.draws.rows cimport RowKernel, Workspace
from una_fast._kernels.ids.emit cimport RECORD
from una_fast._kernels.prefetch cimport una_prefetch

cdef enum:
    LONGEST_CHOICE = 4096  # `replace_chosen` scans the rest of a row for repetitions, too slow for a longer row


cdef class UnaRows(RowKernel):
    """Draws negatives of rows of words, with the scores and settings in `config`.

    words, streams: as in `RowKernel`. With n_terms terms in the index, the id n_terms + k is unseen word k.
    unseen_groups: the group of each unseen word. Required if `config` has groups.
    packed: the words with their probabilities, from `pack_words`. None draws the same negatives, but takes longer.
    """

    cdef readonly SamplingConfig config
    cdef const uint32_t[::1] packed
    cdef const uint8_t[::1] unseen_groups
    cdef int id_bits

    def __init__(self, words, SamplingConfig config, packed=None, streams=None, unseen_groups=None):
        n_ids = config.idf.shape[0]
        if streams is not None:  # the rows are a user's text, which can contain unseen words
            n_ids = max(n_ids, np.max(words.values, initial=0) + 1)
        RowKernel.__init__(self, words, config.seed, streams, n_ids=n_ids,
                           prefetch_source=None if packed is None else packed.view(np.int32))
        self.config, self.id_bits = config, id_bits(config.scores.shape[0])
        self.packed, self.unseen_groups = packed, unseen_groups

    cdef int64_t draw_row(self, int64_t row, uint64_t key, int64_t n, int32_t* out, Workspace work) except -1 nogil:
        cdef const int32_t* ids = &self.values[self.indptr[row]]
        cdef int32_t* chosen = &work.chosen[0]
        cdef int64_t k, length, n_chosen = -1
        cdef bint one_at_least = self.config.random_select and not self.config.released
        if self.packed is not None and n <= LONGEST_CHOICE:
            n_chosen = choose(&self.packed[self.indptr[row]], self.id_bits, key, n, &work.row[0], out, chosen)
            if n_chosen >= one_at_least:
                replace_chosen(self.config, work.records, key, &work.row[0], n, &work.z[0], chosen, n_chosen, out, None)
                return n
        memcpy(out, ids, n * sizeof(int32_t))
        length = self.indptr[row + 1] - self.indptr[row]
        fill_probabilities(self.config, &work.latest[0], chosen, ids, length, &work.first[0], &work.z[0],
                           &work.p[0], self.unseen_groups)
        n_chosen = choose_exactly(self.config.released, key, &work.first[0], &work.p[0], n, chosen)
        if n_chosen == 0 and one_at_least:
            n_chosen = choose_one(self.config, key, ids, &work.first[0], &work.p[0], length, n, chosen,
                                  self.unseen_groups)
        replace_chosen(self.config, work.records, key, ids, n, &work.z[0], chosen, n_chosen, out, self.unseen_groups)
        if not self.config.released:
            for k in range(n):
                out[k] = out[work.first[k]]
        return n


cdef inline int64_t choose(const uint32_t* packed, int bits, uint64_t key, int64_t n, int32_t* ids, int32_t* out,
                           int32_t* chosen) noexcept nogil:
    """Choose which of the first n words of a row to replace. Return how many, or -1 if `packed` cannot decide.

    A word is chosen if its random number is below its replacement probability. A packed word contains only the first
    bits of the probability. If the random number starts with the same bits, `packed` cannot decide. With 523,000 terms,
    this happens for one word in 4,096.

    ids, out: outputs. Both are filled with the term ids of the row; `replace_chosen` then changes `out`.
    chosen: output. A chosen word at position k is stored as 2 k, or as 2 k + 1 if its term occurs again later in the
        row. All later occurrences get the same replacement.
    """
    cdef int64_t k, n_chosen = 0
    cdef uint32_t word, draw, p, id_mask = (<uint32_t>1 << bits) - 1
    cdef bint near = False
    # The loop body has no branch: half of the words are chosen, so a branch would be mispredicted half of the time.
    for k in range(n):
        word = packed[k]
        draw = <uint32_t>(draw64(key, k, 0) >> (33 + bits))
        p = word >> (bits + 1)
        ids[k] = out[k] = <int32_t>(word & id_mask)
        chosen[n_chosen] = <int32_t>(k << 1 | (word >> bits & 1))
        n_chosen += draw < p
        near |= draw == p
    return -1 if near else n_chosen


cdef int64_t choose_exactly(bint released, uint64_t key, const int32_t* first, const double* p, int64_t n,
                            int32_t* chosen) noexcept nogil:
    """Choose words as `choose` does, but with the exact probabilities. Return how many are chosen.

    In the paper's variant, one draw decides for all occurrences of a term, and only the first occurrence is stored. In
    the released code's variant, each occurrence has a separate draw. A position k is stored as 2 k.
    """
    cdef int64_t k, n_chosen = 0
    for k in range(n):
        chosen[n_chosen] = <int32_t>(k << 1)
        n_chosen += (released or first[k] == k) and unit(draw64(key, k, 0)) < p[k]
    return n_chosen


cdef int64_t choose_one(SamplingConfig config, uint64_t key, const int32_t* ids, const int32_t* first,
                        const double* p, int64_t length, int64_t n, int32_t* chosen,
                        const uint8_t[::1] unseen_groups) noexcept nogil:
    """Choose one term of a sentence of `length` words, after `choose_exactly` chose none of its first n words.

    If the probabilities of the other words choose none of them either, the term with the smallest random number is
    chosen, among the terms that are not fixed. Returns 1 if this happens and the term occurs in the first n words, else
    0.
    """
    cdef int64_t k, place = n
    cdef double draw, smallest = 1.0
    for k in range(length):
        if first[k] == k:
            draw = unit(draw64(key, k, 0))
            if draw < p[k]:
                return 0
            if draw < smallest and group_of(config, ids[k], unseen_groups) != FIXED_GROUP:
                smallest, place = draw, k
    chosen[0] = <int32_t>(place << 1)
    return place < n


cdef int replace_chosen(SamplingConfig config, const int32_t* records, uint64_t key, const int32_t* ids, int64_t n,
                        const double* z, const int32_t* chosen, int64_t n_chosen, int32_t* out,
                        const uint8_t[::1] unseen_groups) except -1 nogil:
    """Replace the chosen words of a row in `out`.

    ids: the first n words of the row. out: a copy of `ids`, which is changed. chosen: the output of `choose`.
    z: the tf-idf of each word, needed only for unseen words.
    records: the records of `TermTokens`, which are prefetched for the new terms, or NULL.
    """
    cdef const double* blocks = &config.blocks[0]
    cdef const double* scores = &config.scores[0]
    cdef int64_t n_terms = config.scores.shape[0], radius = config.radius, i, j, k, start
    cdef bint by_rank = not config.random_replace, released = config.released
    cdef int32_t new
    cdef uint8_t group
    for i in range(n_chosen):
        k = chosen[i] >> 1
        new = -1
        group = group_of(config, ids[k], unseen_groups)
        if by_rank and ids[k] < n_terms:  # a fast path: the first candidate that `draw_term` would draw
            start = max(0, ids[k] - radius)
            new = <int32_t>accepted(blocks, scores, draw64(key, k, 1), start, min(n_terms, ids[k] + 1 + radius) - start)
            if new >= 0 and not is_candidate(config, new, -1 if released else ids[k], group):
                new = -1
        if new < 0:
            new = <int32_t>draw_term(config, key, k, ids[k], z[k], group)
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
    """Draw one of the ids ``start .. start + width - 1``. Return it, or -1 if rejection sampling rejects it."""
    cdef int64_t candidate = start + below(bits, width), block = candidate >> BLOCK_BITS
    # `below` uses the upper 64 bits of the product bits * width. The lower 64 bits are uniform too.
    cdef double height = unit(bits * width) * blocks[start >> BLOCK_BITS]
    if height < blocks[block + 1] or (height < blocks[block] and height < scores[candidate]):
        return candidate
    return -1


cdef int64_t draw_term(SamplingConfig config, uint64_t key, int64_t position, int64_t term, double score,
                       uint8_t group) except -1 nogil:
    """Draw a replacement for `term` from its window. The released code's variant can draw `term` itself.

    score: the tf-idf of `term`. If `term` is an unseen word, its tf-idf determines its window.
    """
    cdef Window window
    cdef int64_t excluded = -1 if config.released else term, number, candidate
    cdef uint64_t bits, width
    config.find_window(term, score, &window)
    width = window.stop - window.start
    cdef bint uniform = config.random_replace or config.blocks[window.start >> BLOCK_BITS] == 0.0  # all scores are 0
    for number in range(1, TRIES + 1):
        bits = draw64(key, position, number)
        if uniform:
            candidate = window.start + below(bits, width)
        else:
            candidate = accepted(&config.blocks[0], &config.scores[0], bits, window.start, width)
        if candidate >= 0 and is_candidate(config, candidate, excluded, group):
            return candidate
    return invert_weights(config, window, excluded, group, draw64(key, position, LAST_NUMBER))


cdef int64_t invert_weights(SamplingConfig config, Window window, int64_t excluded, uint8_t group,
                            uint64_t bits) except -1 nogil:
    """Draw from `window` with the same probabilities as `draw_term`, by inverting the cumulative sum of its scores.

    `draw_term` calls this after TRIES rejections, which happen if one score is far above the others, or if nearly all
    terms are fixed or in other groups.
    """
    cdef int64_t j, n_candidates = 0, last = -1
    cdef double total = 0.0, target, weight
    cdef bint uniform
    if config.has_groups:
        config.reach_candidate(excluded, group, &window)
    for j in range(window.start, window.stop):
        if is_candidate(config, j, excluded, group):
            total += config.scores[j]
            n_candidates += 1
    uniform = total == 0.0 or config.random_replace
    target = below(bits, n_candidates) if uniform else unit(bits) * total
    for j in range(window.start, window.stop):
        weight = 1.0 if uniform else config.scores[j]
        if weight > 0.0 and is_candidate(config, j, excluded, group):
            last = j
            target -= weight
            if target < 0.0:
                break
    return last
