from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from una_fast._kernels.draws.law cimport Law


cdef class FirstPlaces:
    cdef uint64_t[::1] table
    cdef int32_t[::1] repeats
    cdef uint32_t[::1] stamp
    cdef int fill(self, const int32_t[::1] ids, int64_t start, int64_t stop, int32_t[::1] first) except -1 nogil


cdef int fill_probabilities(Law law, FirstPlaces places, const int32_t[::1] ids, const int64_t[::1] bounds,
                            int64_t n_rows, int32_t[::1] first, double[::1] z, double[::1] p,
                            const unsigned char[::1] fixed_unseen) except -1 nogil
