"""Terms -> padded token ids.

The sub-words of a term lie in one record of 32 bytes if there are at most 7, so such a term costs one cache miss.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from una_fast._kernels.cache_lines import on_own_lines

from una_fast._kernels.ids.frame cimport Frame
from una_fast._kernels.prefetch cimport una_prefetch

cdef enum:
    # A record is 8 int32: the number of sub-words, then up to 7 sub-words; or, for more, their place in `values`.
    RECORD = 8


cdef class TermTokens:
    """The sub-words of each term, in records that the kernel copies from.

    terms, first_terms: `Ragged` (V rows, int32), the sub-words of each term after a space, and as the first word of a
    text (the same object if that makes no difference); frame: the special tokens and the padding around a text.
    """

    def __init__(self, terms, first_terms, Frame frame):
        self.records, self.values = pack(terms.values, terms.indptr), terms.values
        same = first_terms is terms
        self.first_records = self.records if same else pack(first_terms.values, first_terms.indptr)
        self.first_values = first_terms.values
        self.frame = frame


cdef int write_rows(TermTokens tokens, const int32_t[::1] terms, const int64_t[::1] bounds, int64_t n_rows,
                    int64_t[:, ::1] input_ids, int64_t[:, ::1] attention_mask, int64_t first_row) except -1 nogil:
    """Write the token ids of text i, ``terms[bounds[i]:bounds[i + 1]]``, to row ``first_row + i`` of both outputs."""
    cdef int64_t k
    for k in range(bounds[0], bounds[n_rows]):
        una_prefetch(&tokens.records[terms[k], 0])
    for k in range(n_rows):
        write_row(tokens, terms, bounds[k], bounds[k + 1], input_ids, attention_mask, first_row + k)
    return 0


cdef int write_row(TermTokens tokens, const int32_t[::1] terms, int64_t start, int64_t stop,
                   int64_t[:, ::1] input_ids, int64_t[:, ::1] attention_mask, int64_t row) except -1 nogil:
    """Write the sub-words of ``terms[start:stop]``, cut to fit, and the special tokens and padding around them."""
    cdef int64_t room = input_ids.shape[1] - tokens.frame.prefix.shape[0] - tokens.frame.suffix.shape[0]
    cdef int64_t n = count_tokens(tokens, terms, start, stop, room) if tokens.frame.pads_left else room
    cdef int64_t begin = tokens.frame.begin(n, input_ids.shape[1]), end = begin, k
    room = begin + n
    for k in range(start, stop):
        if end >= room:
            break
        if k == start:
            end = write_term(tokens.first_records, tokens.first_values, terms[k], input_ids, row, end, room)
        else:
            end = write_term(tokens.records, tokens.values, terms[k], input_ids, row, end, room)
    tokens.frame.write_around(&input_ids[row, 0], &attention_mask[row, 0], input_ids.shape[1], begin, end)
    return 0


cdef inline int64_t count_tokens(TermTokens tokens, const int32_t[::1] terms, int64_t start, int64_t stop,
                                 int64_t room) except -1 nogil:
    """The number of sub-words of ``terms[start:stop]``, or `room` if there are more.

    With padding on the left, the column of the first sub-word depends on it.
    """
    cdef int64_t n = 0, k
    for k in range(start, stop):
        if n >= room:
            break
        n += (tokens.first_records if k == start else tokens.records)[terms[k], 0]
    return min(n, room)


cdef inline int64_t write_term(const int32_t[:, ::1] records, const int32_t[::1] values, int32_t term,
                               int64_t[:, ::1] input_ids, int64_t row, int64_t end, int64_t room) except -1 nogil:
    cdef int64_t count = records[term, 0], k, begin, n = min(count, room - end)
    if count < RECORD:
        for k in range(n):
            input_ids[row, end + k] = records[term, 1 + k]
    else:
        begin = records[term, 1]
        for k in range(n):
            input_ids[row, end + k] = values[begin + k]
    return end + n


def pack(const int32_t[::1] values, const int64_t[::1] indptr):
    """int32 (V, 8), a record for each term: the number of its sub-words, then the sub-words.

    A term with 8 or more sub-words has in their place the index at which they begin in `values`. values: int32 (T,);
    indptr: int64 (V + 1,).
    """
    cdef int64_t n_terms = indptr.shape[0] - 1, term, k, count
    packed = on_own_lines(n_terms * RECORD, np.int32).reshape(n_terms, RECORD)
    cdef int32_t[:, ::1] records = packed
    with nogil:
        for term in range(n_terms):
            count = indptr[term + 1] - indptr[term]
            records[term, 0] = <int32_t>count
            if count < RECORD:
                for k in range(count):
                    records[term, 1 + k] = values[indptr[term] + k]
            else:
                records[term, 1] = <int32_t>indptr[term]
    return packed


def write_tokens(TermTokens tokens, const int32_t[::1] terms, const int64_t[::1] indptr, int64_t[:, ::1] input_ids,
                 int64_t[:, ::1] attention_mask):
    """Fill row i of `input_ids` and `attention_mask`, int64 (N, L), with the text ``terms[indptr[i]:indptr[i + 1]]``.

    terms: int32 (T,); indptr: int64 (N + 1,).
    """
    with nogil:
        write_rows(tokens, terms, indptr, indptr.shape[0] - 1, input_ids, attention_mask, 0)
