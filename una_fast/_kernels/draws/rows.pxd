from libc.stdint cimport int32_t, int64_t, uint64_t


cdef class Workspace:
    cdef int32_t[::1] terms, line, row, first, chosen, latest
    cdef const int32_t* records
    cdef int64_t[::1] ends
    cdef double[::1] z, p


cdef class RowKernel:
    cdef const int32_t[::1] values, prefetch_source
    cdef const int64_t[::1] indptr
    cdef const uint64_t[::1] streams
    cdef readonly uint64_t seed
    cdef int64_t longest_row, growth, n_ids
    cdef list workspaces
    cdef Workspace take_workspace(self)
    cdef int64_t draw_row(self, int64_t row, uint64_t key, int64_t n, int32_t* out, Workspace work) except -1 nogil
    cdef int draw_block(self, const int64_t[::1] rows, int64_t begin, int64_t stop, uint64_t key, int64_t most_words,
                        Workspace work) except -1 nogil
    cdef int prefetch_block(self, const int64_t[::1] rows, int64_t begin, int64_t most_words) except -1 nogil
