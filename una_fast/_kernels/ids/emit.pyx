"""Terms -> padded token ids.

The sub-words of a term lie in one record of 32 bytes if there are at most 7, so such a term costs one cache miss.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

import numpy as np

from una_fast._kernels.cache_lines import on_own_lines
from una_fast._kernels.ids.frame cimport Frame


cdef class TermTokens:
    """The sub-words of each of n terms, in records that the kernel copies from.

    terms: `RaggedArray` (int32), in row t the sub-words of term t after a space, and in row n + t those as the first
    word of a text, if there are 2n rows. A term without any has sub-words that depend on the words around it: the row
    of a text that holds it is not written whole.
    """

    def __init__(self, terms, int64_t n, Frame frame):
        self.records, self.values, self.first, self.frame = pack(terms), terms.values, len(terms) - n, frame
        self.some_are_empty = len(terms.empty_rows()) > 0

    cdef bint holds_empty(self, const int32_t* terms, int64_t n) noexcept nogil:
        """Whether one of the n terms of a text has no sub-words."""
        cdef int64_t k
        if self.some_are_empty:
            for k in range(n):
                if self.records[terms[k] + (self.first if k == 0 else 0), 0] == 0:
                    return True
        return False


cdef int64_t line_length(int64_t width) noexcept nogil:
    """The int32 that `line` of `write_rows` needs for `width` columns: a whole record may be copied to the end."""
    return width + RECORD


cdef void write_rows(TermTokens tokens, const int32_t* terms, const int64_t* bounds, int64_t n_rows, int32_t* line,
                     int64_t width, int64_t* input_ids, int64_t* attention_mask) noexcept nogil:
    """Write the token ids of text i, ``terms[bounds[i]:bounds[i + 1]]``, to row i of both outputs (n_rows, width).

    The sub-words are cut to fit, and the special tokens and the padding stand around them. line: scratch.
    """
    cdef int64_t row, n, room = width - tokens.frame.n_special
    for row in range(n_rows):
        n = join_terms(tokens, terms + bounds[row], bounds[row + 1] - bounds[row], line, room)
        tokens.frame.write(line, n, input_ids + row * width, attention_mask + row * width, width)


cdef inline int64_t join_terms(TermTokens tokens, const int32_t* terms, int64_t n_terms, int32_t* line,
                               int64_t room) noexcept nogil:
    """Write the sub-words of the terms to `line`, at most `room`; returns their number.

    A record of up to 7 sub-words is copied whole, and the next one over what was too much: a branch for their number
    would be mispredicted at every other word.
    """
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
    """Write the sub-words of a term to `line`, at most `room` if they are more than a record holds; their number."""
    if record[0] < RECORD:
        memcpy(line, record + 1, (RECORD - 1) * sizeof(int32_t))
    else:
        memcpy(line, values + record[1], min(<int64_t>record[0], room) * sizeof(int32_t))
    return record[0]


def pack(terms):
    """int32 (V, 8), a record for each of V terms: the number of its sub-words, then the sub-words.

    A term with 8 or more sub-words has in their place the index at which they begin in `terms.values`. terms:
    `RaggedArray`, int32 (V rows).
    """
    records = on_own_lines(len(terms) * RECORD, np.int32).reshape(-1, RECORD)
    records[:, 0] = counts = terms.lengths()
    for k in range(RECORD - 1):
        listed = np.flatnonzero((counts > k) & (counts < RECORD))
        records[listed, 1 + k] = terms.values[terms.indptr[listed] + k]
    long = np.flatnonzero(counts >= RECORD)
    records[long, 1] = terms.indptr[long]
    return records
