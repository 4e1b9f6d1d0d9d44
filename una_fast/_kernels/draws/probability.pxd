from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef enum:
    # A table of 4 KB contains tf for up to 3 occurrences in up to 127 words, because a logarithm takes 100 ns.
    TABLE_COUNTS = 4
    TABLE_LENGTHS = 128
    # One entry of `blocks` per 64 scores: at V = 700,000 these are 88 KB, which fit the second-level cache.
    BLOCK_BITS = 6
    # values of `SamplingConfig.groups`
    FIXED_GROUP = 254
    ANY_GROUP = 255


cdef struct Window:
    int64_t start
    int64_t stop


cdef class SamplingConfig:
    cdef const double[::1] idf, scores, blocks
    cdef double[:, ::1] tf_table
    cdef readonly const uint8_t[::1] groups
    cdef double unseen_idf
    cdef readonly double beta
    cdef readonly int64_t radius
    cdef readonly uint64_t seed
    cdef readonly bint released
    cdef readonly bint random_select
    cdef bint random_replace, has_groups
    cdef double tf(self, int64_t count, int64_t length) except? -1 nogil
    cdef int find_window(self, int64_t term, double score, Window *window) except -1 nogil
    cdef int reach_candidate(self, int64_t excluded, uint8_t group, Window *window) except -1 nogil


cdef inline uint8_t group_of(SamplingConfig config, int64_t id, const uint8_t[::1] unseen_groups) noexcept nogil:
    """Return the group of a term of the index, or of an unseen word (id >= n_terms)."""
    cdef int64_t n_terms = config.scores.shape[0]
    if not config.has_groups:
        return ANY_GROUP
    return config.groups[id] if id < n_terms else unseen_groups[id - n_terms]


cdef inline bint is_candidate(SamplingConfig config, int64_t term, int64_t excluded, uint8_t group) noexcept nogil:
    """Return whether `term` can replace a word of this group: it fits the group, and is neither fixed nor excluded."""
    return term != excluded and (not config.has_groups or (
        config.groups[term] != FIXED_GROUP and (group >= FIXED_GROUP or config.groups[term] == group)))


cdef int fill_probabilities(SamplingConfig config, int32_t* latest, int32_t* repeats, const int32_t* ids, int64_t n,
                            int32_t* first, double* z, double* p, const uint8_t[::1] unseen_groups) except -1 nogil
