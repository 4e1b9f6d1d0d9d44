"""Terms -> padded token ids. A term's sub-words lie in one record of 32 bytes, so a term costs one cache miss."""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from una_fast._kernels.ids.frame cimport Frame
from una_fast._kernels.prefetch cimport una_prefetch

cdef enum:
    RECORD = 8  # int32: how many sub-words, then up to 7 of them, or where more of them begin


cdef class TermTokens:
    """Sub-words of each term, laid out for the write loop.

    terms, first_terms: `Ragged` (V rows, int32), a term after a space and a term as the first word of a text (the same
    object where that makes no difference); frame: what stands around a text.
    """

    def __init__(self, terms, first_terms, Frame frame):
        self.records, self.values = pack(terms.values, terms.indptr), terms.values
        same = first_terms is terms
        self.first_records = self.records if same else pack(first_terms.values, first_terms.indptr)
        self.first_values = first_terms.values
        self.frame = frame


cdef int write_rows(TermTokens tokens, const int32_t[::1] terms, const int64_t[::1] bounds, int64_t n_rows,
                    int64_t[:, ::1] input_ids, int64_t[:, ::1] attention_mask, int64_t first_row) except -1 nogil:
    """Write the texts ``terms[bounds[i]:bounds[i + 1]]`` to the rows from `first_row` on."""
    cdef int64_t k
    for k in range(bounds[0], bounds[n_rows]):
        una_prefetch(&tokens.records[terms[k], 0])
    for k in range(n_rows):
        write_row(tokens, terms, bounds[k], bounds[k + 1], input_ids, attention_mask, first_row + k)
    return 0


cdef int write_row(TermTokens tokens, const int32_t[::1] terms, int64_t start, int64_t stop,
                   int64_t[:, ::1] input_ids, int64_t[:, ::1] attention_mask, int64_t row) except -1 nogil:
    """The sub-words of ``terms[start:stop]``, cut to fit, in their frame."""
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
    """The number of sub-words of ``terms[start:stop]``, at most `room`; padding on the left depends on it."""
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
    """int32 (V, 8): the number of sub-words of each term, then the sub-words, or where they begin in `values`."""
    cdef int64_t n_terms = indptr.shape[0] - 1, term, k, count
    packed = aligned_records(n_terms)
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


def aligned_records(int64_t n):
    """int32 (n, 8) zeros from an address that is a multiple of 64: a record never straddles two cache lines."""
    buffer = np.zeros(n * RECORD + 16, dtype=np.int32)
    skip = (-buffer.ctypes.data % 64) // buffer.itemsize
    return buffer[skip : skip + n * RECORD].reshape(n, RECORD)


def write_tokens(TermTokens tokens, const int32_t[::1] terms, const int64_t[::1] indptr, int64_t[:, ::1] input_ids,
                 int64_t[:, ::1] attention_mask):
    """Fill `input_ids` and `attention_mask` (int64 (N, L)) with the texts of ``terms[indptr[i]:indptr[i + 1]]``."""
    with nogil:
        write_rows(tokens, terms, indptr, indptr.shape[0] - 1, input_ids, attention_mask, 0)
