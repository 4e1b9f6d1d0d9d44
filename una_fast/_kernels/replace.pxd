from libc.stdint cimport int32_t, int64_t, uint64_t

from una_fast._kernels.law cimport Law


cdef int replace_row(Law law, uint64_t key, const int32_t[::1] ids, int64_t start, int64_t stop,
                     const int32_t[::1] first, const double[::1] z, const double[::1] p, int32_t[::1] chosen,
                     int32_t[::1] out) except -1 nogil
