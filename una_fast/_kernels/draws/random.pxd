"""The random generator of all draws: SplitMix64 (Steele, Lea, Flood 2014, https://doi.org/10.1145/2660193.2660195).

Each row has its own stream, which starts at a hash of seed, epoch, sample index and row. Each position of a word has
NUMBERS consecutive outputs of the stream. In UNA, draw 0 decides whether the word is replaced, and each of the draws 1
to TRIES proposes a candidate. If all are rejected, draw LAST_NUMBER chooses by cumulative weights.
"""

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    TRIES = 64
    LAST_NUMBER = 65
    NUMBERS = 128

cdef inline uint64_t mix64(uint64_t x) noexcept nogil:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL
    return x ^ (x >> 31)


cdef inline uint64_t stream_key(uint64_t seed, uint64_t epoch, uint64_t sample_index) noexcept nogil:
    """Return the key of an epoch and sample index. `row_key` derives the key of each row from it."""
    cdef uint64_t key = mix64(mix64(seed) + (epoch + 1) * <uint64_t>0x9E3779B97F4A7C15ULL)
    return key if sample_index == 0 else mix64(key + sample_index * <uint64_t>0xD1B54A32D192ED03ULL)


cdef inline uint64_t row_key(uint64_t stream_key, uint64_t row) noexcept nogil:
    return mix64(stream_key + (row + 1) * <uint64_t>0x9E3779B97F4A7C15ULL)


cdef inline uint64_t draw64(uint64_t row_key, int64_t position, int64_t number) noexcept nogil:
    cdef uint64_t counter = <uint64_t>position * NUMBERS + <uint64_t>number + 1
    return mix64(row_key + counter * <uint64_t>0x9E3779B97F4A7C15ULL)


cdef inline double unit(uint64_t bits) noexcept nogil:
    """Return a number, uniform in [0, 1), from the highest 53 of 64 random bits."""
    return <double>(bits >> 11) * (1.0 / 9007199254740992.0)


cdef inline int64_t below(uint64_t bits, uint64_t n) noexcept nogil:
    """Return floor(bits * n / 2**64), for n < 2**32: uniform over 0 .. n - 1, with a bias below n / 2**64."""
    return <int64_t>(((bits >> 32) * n + (((bits & 0xFFFFFFFFULL) * n) >> 32)) >> 32)
