from libc.stdint cimport int32_t, int64_t, uint64_t

from una_fast._kernels.ids.emit cimport TermTokens

cdef enum:
    BLOCK = 16  # rows of a block; the times with 8 to 64 rows were within 5 %, 1 row is 1.5 times slower


cdef class Workspace:
    cdef int32_t[::1] ids
    cdef int64_t[::1] bounds
    cdef int32_t[::1] terms
    cdef int64_t[::1] ends
    cdef uint64_t[::1] keys
    cdef int32_t[::1] line
    cdef int64_t most_words


cdef class RowKernel:
    cdef const int32_t[::1] values, read_first
    cdef const int64_t[::1] indptr
    cdef readonly uint64_t seed
    cdef readonly TermTokens tokens
    cdef int draw_block(self, Workspace work, const int64_t[::1] rows, int64_t begin, int64_t stop) except -1 nogil
    cdef int gather(self, const int64_t[::1] rows, int64_t begin, int64_t stop, Workspace work) except -1 nogil
    cdef int block(self, const int64_t[::1] rows, int64_t begin, int64_t stop, uint64_t key,
                   Workspace work) except -1 nogil
    cdef int announce(self, const int64_t[::1] rows, int64_t begin, Workspace work) except -1 nogil
