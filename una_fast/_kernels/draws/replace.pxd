from libc.stdint cimport int32_t, int64_t, uint64_t

from una_fast._kernels.draws.law cimport Law


cdef int64_t choose_exactly(bint released, uint64_t key, const int32_t* first, const double* p, int64_t n,
                            int32_t* chosen) noexcept nogil
cdef int replace_chosen(Law law, uint64_t key, const int32_t* ids, int64_t n, const double* z, const int32_t* chosen,
                        int64_t n_chosen, const int32_t* records, int32_t* out) except -1 nogil
cdef void copy_to_repeats(const int32_t* first, int64_t n, int32_t* out) noexcept nogil
