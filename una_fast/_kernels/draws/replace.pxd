from libc.stdint cimport int32_t, int64_t, uint64_t

from una_fast._kernels.draws.law cimport Law


cdef int fill_replacements(Law law, const uint64_t[::1] keys, const int32_t[::1] ids, const int64_t[::1] bounds,
                           int64_t n_rows, const int32_t[::1] first, const double[::1] z, const double[::1] p,
                           int32_t[::1] chosen, int32_t[::1] out) except -1 nogil
