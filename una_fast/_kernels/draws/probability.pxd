from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from una_fast._kernels.draws.sampling_config cimport SamplingConfig


cdef class FirstPlaces:
    cdef uint64_t[::1] table
    cdef int32_t[::1] repeats
    cdef uint32_t[::1] stamp
    cdef int fill(self, const int32_t* ids, int64_t n, int32_t* first) except -1 nogil


cdef int fill_probabilities(SamplingConfig config, FirstPlaces places, const int32_t* ids, int64_t n, int32_t* first,
                            double* z, double* p, const unsigned char[::1] fixed_unseen) except -1 nogil
