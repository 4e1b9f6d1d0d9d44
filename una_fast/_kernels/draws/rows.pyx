"""Augments rows of words, and returns terms or token ids.

Rows are processed in blocks: first all rows of a block are augmented, then its output is written. So the augmented rows
are still in the first-level cache, and the cache misses of different rows overlap.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from una_fast.arrays import cache_aligned_zeros

from una_fast._kernels.ids.emit cimport RECORD, TermTokens, write_rows
from una_fast._kernels.prefetch cimport una_prefetch
from una_fast._kernels.draws.random cimport row_key, stream_key


cdef int64_t ALL_WORDS = np.iinfo(np.int64).max
cdef enum:
    BLOCK = 16  # rows per block; with 8 to 64 the time per row differs by at most 5%, with 1 it is 1.5 times as long
    MOST_PREFETCHED = 64  # words per row that are prefetched; the processor itself prefetches the rest of a longer row


cdef class Workspace:
    """Buffers in which one thread augments a block of up to BLOCK rows.

    terms, ends: the result. Row i of the augmented block is ``terms[ends[i]:ends[i + 1]]``.
    line: the sub-words of one row.
    records: the records of `TermTokens`, which `draw_row` prefetches, or NULL if only terms are needed.
    The other buffers are scratch of `draw_row`; `latest` has one entry per id.
    """

    def __init__(self, int64_t longest_row, int64_t growth, int64_t n_ids):
        longest_row = max(longest_row, 1)
        self.terms = cache_aligned_zeros(growth * longest_row * BLOCK + 1, np.int32)
        self.ends = cache_aligned_zeros(BLOCK + 1, np.int64)
        self.line = cache_aligned_zeros(0, np.int32)
        self.row = cache_aligned_zeros(growth * longest_row, np.int32)
        self.first, self.chosen = (cache_aligned_zeros(longest_row, np.int32) for _ in range(2))
        self.z, self.p = (cache_aligned_zeros(longest_row, np.float64) for _ in range(2))
        self.latest = cache_aligned_zeros(n_ids, np.int32)


cdef class RowKernel:
    """Augments rows of words; a subclass defines `draw_row`. Threads may share one object.

    words: `RaggedArray` int32, the term ids of each row of an index or of a user's text.
    streams: uint64 (n_rows,), the number of each row's random stream. None means that row i uses stream i.
    growth: after augmentation, a row of n words has at most growth * n words.
    n_ids: the number of ids that `draw_row` looks up in `Workspace.latest`.
    prefetch_source: int32 (n_words,), the array that `draw_row` reads; None means the words.
    """

    def __init__(self, words, uint64_t seed, streams=None, int64_t growth=1, int64_t n_ids=0, prefetch_source=None):
        cdef int64_t row
        self.values, self.indptr, self.seed, self.streams = words.values, words.indptr, seed, streams
        self.growth, self.n_ids, self.workspaces = growth, n_ids, []
        self.prefetch_source = words.values if prefetch_source is None else prefetch_source
        for row in range(self.indptr.shape[0] - 1):
            self.longest_row = max(self.longest_row, self.indptr[row + 1] - self.indptr[row])

    cdef Workspace take_workspace(self):
        """Return a `Workspace` that no other thread uses. This needs no lock, because `pop` of a list is atomic."""
        try:
            return self.workspaces.pop()
        except IndexError:
            return Workspace(self.longest_row, self.growth, self.n_ids)

    def token_ids(self, const int64_t[::1] rows, uint64_t epoch, uint64_t sample_index, TermTokens tokens,
                  int64_t[:, ::1] input_ids, int64_t[:, ::1] attention_mask):
        """Augment the sentences in `rows`, and write their token ids, truncated or padded to ``input_ids.shape[1]``.

        Returns bool (n_rows,): True for a row that only the tokenizer can encode, because one of its terms has no
        sub-words in `tokens`.
        """
        cdef int64_t begin = 0, stop, k, n_terms, width = input_ids.shape[1]
        cdef uint64_t key = stream_key(self.seed, epoch, sample_index)
        cdef Workspace work = self.take_workspace()
        if work.line.shape[0] != width + RECORD:
            work.line = cache_aligned_zeros(width + RECORD, np.int32)
        work.records = &tokens.records[0, 0]
        needs_tokenizer = np.empty(rows.shape[0], dtype=bool)
        cdef uint8_t[::1] flags = needs_tokenizer.view(np.uint8)
        with nogil:
            while begin < rows.shape[0]:
                stop = min(begin + BLOCK, rows.shape[0])
                self.draw_block(rows, begin, stop, key, width, work)  # `width` terms fill the row
                write_rows(tokens, &work.terms[0], &work.ends[0], stop - begin, &work.line[0], width,
                           &input_ids[begin, 0], &attention_mask[begin, 0])
                for k in range(stop - begin):
                    n_terms = work.ends[k + 1] - work.ends[k]
                    flags[begin + k] = tokens.has_empty(&work.terms[work.ends[k]], n_terms)
                begin = stop
        self.workspaces.append(work)
        return needs_tokenizer

    def terms(self, const int64_t[::1] rows, uint64_t epoch, uint64_t sample_index=0):
        """Augment the sentences in `rows`. Return their term ids as two arrays: int32 values and int64 indptr."""
        cdef int64_t begin = 0, stop, k, end = 0, capacity = 1
        cdef uint64_t key = stream_key(self.seed, epoch, sample_index)
        cdef Workspace work = self.take_workspace()
        work.records = NULL
        for k in range(rows.shape[0]):
            capacity += self.growth * (self.indptr[rows[k] + 1] - self.indptr[rows[k]])
        values, indptr = np.empty(capacity, dtype=np.int32), np.zeros(rows.shape[0] + 1, dtype=np.int64)
        cdef int32_t[::1] out = values
        cdef int64_t[::1] bounds = indptr
        with nogil:
            while begin < rows.shape[0]:
                stop = min(begin + BLOCK, rows.shape[0])
                self.draw_block(rows, begin, stop, key, ALL_WORDS, work)
                memcpy(&out[end], &work.terms[0], work.ends[stop - begin] * sizeof(int32_t))
                for k in range(stop - begin):
                    bounds[begin + k + 1] = end + work.ends[k + 1]
                begin, end = stop, bounds[stop]
        self.workspaces.append(work)
        return values[:end], indptr

    cdef int64_t draw_row(self, int64_t row, uint64_t key, int64_t n, int32_t* out, Workspace work) except -1 nogil:
        """Write the augmented row to `out` and return its length.

        n: the number of words of the row, or fewer if only the first n words of the result are needed.
        """
        memcpy(out, &self.values[self.indptr[row]], n * sizeof(int32_t))
        return n

    cdef int draw_block(self, const int64_t[::1] rows, int64_t begin, int64_t stop, uint64_t key, int64_t most_words,
                        Workspace work) except -1 nogil:
        """Fill work.terms and work.ends with the first `most_words` words of each augmented row of a block."""
        cdef int64_t k, row, n, end = 0
        self.prefetch_block(rows, stop, most_words)
        for k in range(stop - begin):
            row = rows[begin + k]
            n = min(self.indptr[row + 1] - self.indptr[row], most_words)
            if n > 0:
                n = self.draw_row(row, row_key(key, row if self.streams is None else self.streams[row]), n,
                                  &work.terms[end], work)
            end += n
            work.ends[k + 1] = end
        return 0

    cdef int prefetch_block(self, const int64_t[::1] rows, int64_t begin, int64_t most_words) except -1 nogil:
        """Prefetch the words of the block that starts at rows[begin], and the bounds of the next block.

        It prefetches the same number of words of every row, because loops of different lengths are mispredicted.
        """
        cdef int64_t row, k, n = rows.shape[0], n_words = min(most_words, MOST_PREFETCHED)
        if self.values.shape[0] == 0:
            return 0
        for row in range(begin, min(begin + BLOCK, n)):
            for k in range(0, n_words + 15, 16):
                una_prefetch(&self.prefetch_source[0] + self.indptr[rows[row]] + min(k, n_words - 1))
        for row in range(min(begin + BLOCK, n), min(begin + 2 * BLOCK, n)):
            una_prefetch(&self.indptr[rows[row]])
        return 0
