"""Writes terms or sentences of the index as padded token ids.

A record of 32 bytes contains up to 7 sub-words of a term, so most terms cost one cache miss.
"""

from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.string cimport memcpy, memmove

import numpy as np

from una_fast.arrays import cache_aligned_zeros

ctypedef fused small_id:  # uint16 if all ids fit, because most of the time is spent on reading them
    uint16_t
    int32_t


cdef class Frame:
    """What surrounds a text in a row of token ids: special tokens before and after it, and padding on one side."""

    def __init__(self, const int64_t[::1] prefix, const int64_t[::1] suffix, int64_t pad_id, bint pads_left=False):
        self.prefix, self.suffix, self.pad_id, self.pads_left = prefix, suffix, pad_id, pads_left
        self.n_special = prefix.shape[0] + suffix.shape[0]

    cdef void write(self, const int32_t* inner, int64_t n, int64_t* ids, int64_t* mask, int64_t width) noexcept nogil:
        """Fill one row of `ids` and `mask`, both of `width` columns, with special tokens, `n` sub-words and padding.

        `inner` has `width` items, and those after the first n are ignored: the loops run over all columns, because a
        loop end that differs from row to row would be mispredicted.
        """
        cdef int64_t n_prefix = self.prefix.shape[0]
        cdef int32_t pad_id = <int32_t>self.pad_id, keep, n_words = <int32_t>n, column
        for column in range(<int32_t>(width - n_prefix)):
            keep = -<int32_t>(column < n_words)
            ids[n_prefix + column] = (inner[column] & keep) | (pad_id & ~keep)
        self.close(n, ids, mask, width)

    cdef void close(self, int64_t n, int64_t* ids, int64_t* mask, int64_t width) noexcept nogil:
        """Add the special tokens and the attention mask to a row, and move the padding to the left if necessary.

        From column len(prefix) on, the row already contains `n` sub-words and then padding.
        """
        cdef int64_t n_prefix = self.prefix.shape[0], k, n_padding = width - n - self.n_special
        cdef int32_t count = <int32_t>(n + self.n_special), column
        for k in range(n_prefix):
            ids[k] = self.prefix[k]
        for k in range(self.suffix.shape[0]):
            ids[n_prefix + n + k] = self.suffix[k]
        for column in range(<int32_t>width):
            mask[column] = column < count
        if self.pads_left:
            memmove(ids + n_padding, ids, count * sizeof(int64_t))
            for k in range(width):
                ids[k] = ids[k] if k >= n_padding else self.pad_id
                mask[k] = k >= n_padding


cdef class TermTokens:
    """The sub-words of n_terms terms (`TokenIds.terms`), as records that the kernel copies."""

    def __init__(self, terms, int64_t n_terms, Frame frame):
        self.values, self.first, self.frame = terms.values, len(terms) - n_terms, frame
        self.some_are_empty = len(terms.empty_rows()) > 0
        records = cache_aligned_zeros(len(terms) * RECORD, np.int32).reshape(-1, RECORD)
        records[:, 0] = counts = terms.lengths()
        for k in range(RECORD - 1):
            listed = np.flatnonzero((counts > k) & (counts < RECORD))
            records[listed, 1 + k] = terms.values[terms.indptr[listed] + k]
        long = np.flatnonzero(counts >= RECORD)
        records[long, 1] = terms.indptr[long]
        self.records = records

    cdef bint has_empty(self, const int32_t* terms, int64_t n) noexcept nogil:
        """Return whether one of n terms has no sub-words in this table. Only the tokenizer can then encode the row."""
        cdef int64_t k
        if self.some_are_empty:
            for k in range(n):
                if self.records[terms[k] + (self.first if k == 0 else 0), 0] == 0:
                    return True
        return False


cdef void write_rows(TermTokens tokens, const int32_t* terms, const int64_t* bounds, int64_t n_rows, int32_t* line,
                     int64_t width, int64_t* input_ids, int64_t* attention_mask) noexcept nogil:
    """Write n_rows texts as token ids, truncated or padded to `width` columns.

    Text i has the terms ``terms[bounds[i]:bounds[i + 1]]`` and fills row i of both outputs. line: scratch memory for
    width + RECORD items, because the last copy may be a whole record.
    """
    cdef int64_t row, n, room = width - tokens.frame.n_special
    for row in range(n_rows):
        n = join_terms(tokens, terms + bounds[row], bounds[row + 1] - bounds[row], line, room)
        tokens.frame.write(line, n, input_ids + row * width, attention_mask + row * width, width)


cdef inline int64_t join_terms(TermTokens tokens, const int32_t* terms, int64_t n_terms, int32_t* line,
                               int64_t room) noexcept nogil:
    """Write the sub-words of the terms to `line`, at most `room` of them, and return how many were written."""
    cdef const int32_t* records = &tokens.records[0, 0]
    cdef const int32_t* values = &tokens.values[0] if tokens.values.shape[0] else NULL
    cdef int64_t k, end
    if n_terms == 0:
        return 0
    end = put(records + RECORD * (tokens.first + terms[0]), values, line, room)
    for k in range(1, n_terms):
        if end >= room:
            return room
        end += put(records + RECORD * <int64_t>terms[k], values, line + end, room - end)
    return min(end, room)


cdef inline int64_t put(const int32_t* record, const int32_t* values, int32_t* line, int64_t room) noexcept nogil:
    """Write the sub-words of a term to `line`. Return how many sub-words the term has.

    If the term has up to 7, all 7 places of the record are copied, and the next copy overwrites the excess: a branch on
    the number would be mispredicted at every second word. If the term has more, at most `room` sub-words are copied.
    """
    if record[0] < RECORD:
        memcpy(line, record + 1, (RECORD - 1) * sizeof(int32_t))
    else:
        memcpy(line, values + record[1], min(<int64_t>record[0], room) * sizeof(int32_t))
    return record[0]


def pad_rows(const small_id[::1] values, const int64_t[::1] bounds, const int64_t[::1] rows, Frame frame,
             int64_t[:, ::1] input_ids, int64_t[:, ::1] attention_mask):
    """Write sentence rows[i] to row i of `input_ids` and `attention_mask`, each int64 (n_rows, width).

    Sentences are truncated or padded to the width. Sentence r has the sub-words ``values[bounds[r]:bounds[r + 1]]``.
    The caller checks that all rows exist, and that the special tokens fit the width.
    """
    cdef int64_t i, k, start, n, n_prefix = frame.prefix.shape[0], width = input_ids.shape[1]
    with nogil:
        for i in range(rows.shape[0]):
            start = bounds[rows[i]]
            n = min(width - frame.n_special, bounds[rows[i] + 1] - start)
            for k in range(n):  # directly into the row takes 45 ns, through a buffer of int32 70 ns
                input_ids[i, n_prefix + k] = values[start + k]
            for k in range(n_prefix + n, width):
                input_ids[i, k] = frame.pad_id
            frame.close(n, &input_ids[i, 0], &attention_mask[i, 0], width)
