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
    cdef int32_t[::1] spelled
    cdef int64_t most_words


cdef class Respelled:
    cdef const unsigned char[::1] kinds
    cdef const int64_t[::1] places, lengths, ids, openings
    cdef bint parts_openings
    cdef int64_t spell(self, const int32_t* old, int64_t begin, const int32_t* drawn, int64_t n, int32_t* out,
                       bint* opened) noexcept nogil


cdef class RowKernel:
    cdef const int32_t[::1] values, read_first
    cdef const int64_t[::1] indptr
    cdef readonly uint64_t seed
    cdef readonly TermTokens tokens
    cdef Respelled respelled
    cdef bint is_spelled(self, int64_t row) noexcept nogil
    cdef int64_t spell(self, int64_t row, int64_t place, Workspace work, bint* is_left) noexcept nogil
    cdef bint has_exceptions
    cdef bint rewrite(self, int64_t row, int64_t place, Workspace work, int64_t* ids, int64_t* mask,
                      int64_t width) noexcept nogil
    cdef int draw_block(self, Workspace work, const int64_t[::1] rows, int64_t begin, int64_t stop) except -1 nogil
    cdef int gather(self, const int64_t[::1] rows, int64_t begin, int64_t stop, Workspace work) except -1 nogil
    cdef int block(self, const int64_t[::1] rows, int64_t begin, int64_t stop, uint64_t key,
                   Workspace work) except -1 nogil
    cdef int announce(self, const int64_t[::1] rows, int64_t begin, Workspace work) except -1 nogil
