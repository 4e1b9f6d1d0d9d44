from libc.stdint cimport int32_t, int64_t


cdef class Frame:
    cdef const int64_t[::1] prefix
    cdef const int64_t[::1] suffix
    cdef readonly int64_t n_special
    cdef readonly int64_t pad_id
    cdef readonly bint pads_left

    cdef void write(self, const int32_t* inner, int64_t n, int64_t* ids, int64_t* mask, int64_t width) noexcept nogil
    cdef void close(self, int64_t n, int64_t* ids, int64_t* mask, int64_t width) noexcept nogil
