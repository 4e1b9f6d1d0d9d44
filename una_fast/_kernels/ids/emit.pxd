from libc.stdint cimport int32_t, int64_t


cdef enum:
    # A record is 8 int32: the number of sub-words, then the sub-words themselves. If there are more than 7, the second
    # int32 is where they start in `values`.
    RECORD = 8


cdef class Frame:
    cdef const int64_t[::1] prefix
    cdef const int64_t[::1] suffix
    cdef readonly int64_t n_special
    cdef readonly int64_t pad_id
    cdef readonly bint pads_left
    cdef void write(self, const int32_t* inner, int64_t n, int64_t* ids, int64_t* mask, int64_t width) noexcept nogil
    cdef void close(self, int64_t n, int64_t* ids, int64_t* mask, int64_t width) noexcept nogil


cdef class TermTokens:
    cdef const int32_t[:, ::1] records
    cdef const int32_t[::1] values
    cdef int64_t first  # index of the record that term 0 has at the start of a text
    cdef bint some_are_empty
    cdef readonly Frame frame
    cdef bint has_empty(self, const int32_t* terms, int64_t n) noexcept nogil


cdef void write_rows(TermTokens tokens, const int32_t* terms, const int64_t* bounds, int64_t n_rows, int32_t* line,
                     int64_t width, int64_t* input_ids, int64_t* attention_mask) noexcept nogil
