"""Decodes valid UTF-8."""

from libc.stdint cimport int64_t, uint8_t, uint32_t


cdef inline int64_t length(const uint8_t* at) noexcept nogil:
    """Return the size in bytes of the character that starts at `at`."""
    return 1 + (at[0] >= 0xC0) + (at[0] >= 0xE0) + (at[0] >= 0xF0)


cdef inline uint32_t character(const uint8_t* at) noexcept nogil:
    """Return the character that starts at `at`."""
    cdef int64_t n = length(at), k
    cdef uint32_t c = at[0] if n == 1 else at[0] & (0x7F >> n)
    for k in range(1, n):
        c = c << 6 | (at[k] & 0x3F)
    return c
