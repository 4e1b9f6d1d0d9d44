"""Rows of the index -> augmented rows, as terms or as token ids.

Each block of BLOCK rows is gathered, drawn and written before the next block is read. So the output of one stage is
still in the first-level cache when the next stage reads it, and the cache misses of the rows of a block overlap.

For a new way to augment, derive a class from `RowKernel` and define `draw_block`, which draws the rows of one block.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from una_fast._kernels.cache_lines import on_own_lines

from una_fast._kernels.ids.emit cimport TermTokens, line_length, write_rows
from una_fast._kernels.prefetch cimport una_prefetch
from una_fast._kernels.draws.random cimport row_key, stream_key


cdef int64_t ALL_WORDS = np.iinfo(np.int64).max
cdef enum:
    MOST_ANNOUNCED = 64  # words of a row that are prefetched; the processor sees by itself that a longer row goes on


cdef class Workspace:
    """Buffers of one thread for a block of BLOCK rows.

    longest_row: the most words that a row has; growth: the most words that a word can become.

    ids, bounds: the term ids of the rows as they are in the index, row i being ``ids[bounds[i]:bounds[i + 1]]``; terms,
    ends: the same for the augmented rows (with growth 1 no row changes its length and its words are replaced in place,
    so these are the arrays `ids` and `bounds`); keys: `row_key` of each row; line: the sub-words of one row;
    most_words: the words of an augmented row that are needed, those after them are not.
    """

    def __init__(self, int64_t longest_row, int64_t growth=1):
        capacity = BLOCK * max(longest_row, 1)
        self.ids = on_own_lines(capacity, np.int32)
        self.terms = self.ids if growth == 1 else on_own_lines(growth * capacity, np.int32)
        self.bounds = on_own_lines(BLOCK + 1, np.int64)
        self.ends = self.bounds if growth == 1 else on_own_lines(BLOCK + 1, np.int64)
        self.keys = on_own_lines(BLOCK, np.uint64)
        self.line = on_own_lines(0, np.int32)
        self.most_words = ALL_WORDS


cdef class RowKernel:
    """Augments rows of an index; a subclass defines how. Threads may share one object, each with its own `Workspace`.

    words: `Ragged` int32, the term ids of each row; seed: of all draws; tokens: the sub-words of the terms, which
    `token_ids` alone needs. read_first: int32 (T,), what a subclass reads of each word first.
    """

    def __init__(self, words, uint64_t seed, TermTokens tokens=None):
        self.values, self.indptr, self.seed, self.tokens = words.values, words.indptr, seed, tokens
        self.read_first = self.values

    def token_ids(self, const int64_t[::1] rows, uint64_t epoch, Workspace work, int64_t[:, ::1] input_ids,
                  int64_t[:, ::1] attention_mask, uint64_t draw_set=0):
        """Fill `input_ids` and `attention_mask`, int64 (B, L), with the augmented rows of `rows`, int64 (B,)."""
        cdef int64_t begin = 0, stop, width = input_ids.shape[1]
        cdef uint64_t key = stream_key(self.seed, epoch, draw_set)
        if work.line.shape[0] != line_length(width):
            work.line = on_own_lines(line_length(width), np.int32)
        work.most_words = width if self.tokens.fills_rows else ALL_WORDS
        with nogil:
            while begin < rows.shape[0]:
                stop = min(begin + BLOCK, rows.shape[0])
                self.block(rows, begin, stop, key, work)
                write_rows(self.tokens, &work.terms[0], &work.ends[0], stop - begin, &work.line[0], width,
                           &input_ids[begin, 0], &attention_mask[begin, 0])
                begin = stop

    def terms(self, const int64_t[::1] rows, uint64_t epoch, Workspace work, int32_t[::1] out, uint64_t draw_set=0):
        """Fill `out`, int32, with the terms of the augmented rows of `rows`, int64 (B,), one row after the other.

        Returns their bounds, int64 (B + 1,). `out` has room for the most words that these rows can become.
        """
        cdef int64_t begin = 0, stop, k, end = 0
        cdef uint64_t key = stream_key(self.seed, epoch, draw_set)
        indptr = np.zeros(rows.shape[0] + 1, dtype=np.int64)
        cdef int64_t[::1] bounds = indptr
        work.most_words = ALL_WORDS
        with nogil:
            while begin < rows.shape[0]:
                stop = min(begin + BLOCK, rows.shape[0])
                self.block(rows, begin, stop, key, work)
                for k in range(work.ends[stop - begin]):
                    out[end + k] = work.terms[k]
                for k in range(stop - begin):
                    bounds[begin + k + 1] = end + work.ends[k + 1]
                end += work.ends[stop - begin]
                begin = stop
        return indptr

    cdef int block(self, const int64_t[::1] rows, int64_t begin, int64_t stop, uint64_t key,
                   Workspace work) except -1 nogil:
        """Fill work.terms and work.ends with the augmented rows of ``rows[begin:stop]``, at most BLOCK rows.

        key: `stream_key` of the seed, epoch and draw set.
        """
        cdef int64_t k
        self.gather(rows, begin, stop, work)
        self.announce(rows, stop, work)
        for k in range(stop - begin):
            work.keys[k] = row_key(key, <uint64_t>rows[begin + k])
        self.draw_block(work, rows, begin, stop)
        return 0

    cdef int draw_block(self, Workspace work, const int64_t[::1] rows, int64_t begin, int64_t stop) except -1 nogil:
        """Draw the augmented ``rows[begin:stop]``: work.terms and work.ends, from work.ids, work.bounds and work.keys.

        Each subclass defines this method.
        """
        return 0

    cdef int gather(self, const int64_t[::1] rows, int64_t begin, int64_t stop, Workspace work) except -1 nogil:
        """Fill work.ids and work.bounds with the term ids of ``rows[begin:stop]`` and the bounds of these rows."""
        cdef int64_t row, k, end = 0
        for row in range(begin, stop):
            for k in range(self.indptr[rows[row]], self.indptr[rows[row] + 1]):
                work.ids[end] = self.values[k]
                end += 1
            work.bounds[row - begin + 1] = end
        return 0

    cdef int announce(self, const int64_t[::1] rows, int64_t begin, Workspace work) except -1 nogil:
        """Prefetch the words of the block that starts at rows[begin], and the bounds of the block after that one.

        As many words for each row, whatever its length: a loop to the end of the row would be mispredicted.
        """
        cdef int64_t row, k, n = rows.shape[0], n_words = min(work.most_words, MOST_ANNOUNCED)
        for row in range(begin, min(begin + BLOCK, n)):
            for k in range(0, n_words + 15, 16):
                una_prefetch(&self.read_first[0] + self.indptr[rows[row]] + min(k, n_words - 1))
        for row in range(min(begin + BLOCK, n), min(begin + 2 * BLOCK, n)):
            una_prefetch(&self.indptr[rows[row]])
        return 0
