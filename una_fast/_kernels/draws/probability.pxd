from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef enum:
    # A table of 4 KB holds tf for up to 3 occurrences in up to 127 words, because a logarithm costs 100 ns.
    TABLE_COUNTS = 4
    TABLE_LENGTHS = 128
    # 64 scores share one entry of `blocks`, so it has 88 KB at V = 700,000 and stays in the second-level cache.
    BLOCK_BITS = 6
    ANY_SCRIPT = 255


cdef struct Window:
    int64_t start
    int64_t stop


cdef class SamplingConfig:
    cdef const double[::1] idf, scores, blocks
    cdef double[:, ::1] tf_table
    cdef readonly const uint64_t[::1] fixed
    cdef const uint8_t[::1] scripts
    cdef readonly double unseen_idf
    cdef readonly double beta
    cdef readonly int64_t radius
    cdef readonly uint64_t seed
    cdef readonly bint released
    cdef readonly bint random_select
    cdef readonly bint random_replace
    cdef readonly bint fixes
    cdef readonly bint by_script
    cdef readonly object known_scripts
    cdef double tf(self, int64_t count, int64_t length) except? -1 nogil
    cdef int find_window(self, int64_t term, double score, Window *window) except -1 nogil
    cdef int reach_candidate(self, int64_t excluded, uint8_t script, Window *window) except -1 nogil


cdef inline bint is_fixed(SamplingConfig config, int64_t term) noexcept nogil:
    """Whether a term of the index is neither replaced nor drawn."""
    return config.fixes and config.fixed[term >> 6] >> (term & 63) & 1


cdef inline bint is_candidate(SamplingConfig config, int64_t term, int64_t excluded, uint8_t script) noexcept nogil:
    """Whether a term of the index may be drawn: it is neither `excluded` nor fixed, and of the script."""
    return (term != excluded and not is_fixed(config, term)
            and (not config.by_script or script == ANY_SCRIPT or config.scripts[term] == script))


cdef int fill_probabilities(SamplingConfig config, int32_t* latest, int32_t* repeats, const int32_t* ids, int64_t n,
                            int32_t* first, double* z, double* p, const unsigned char[::1] fixed_unseen) except -1 nogil
