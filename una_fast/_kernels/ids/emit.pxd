from libc.stdint cimport int32_t, int64_t

from una_fast._kernels.ids.frame cimport Frame


cdef class TermTokens:
    cdef const int32_t[:, ::1] records
    cdef const int32_t[:, ::1] first_records
    cdef const int32_t[::1] values
    cdef const int32_t[::1] first_values
    cdef readonly Frame frame


cdef int write_rows(TermTokens tokens, const int32_t[::1] terms, const int64_t[::1] bounds, int64_t n_rows,
                    int64_t[:, ::1] input_ids, int64_t[:, ::1] attention_mask, int64_t first_row) except -1 nogil
