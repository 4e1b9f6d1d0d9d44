"""Buffers of a text under rewriting, and UTF-8 in and out of them."""

import numpy as np


cdef class Rewriter:
    def __cinit__(self):
        self.rows = np.empty((2, 0), dtype=np.uint32)

    cdef int reserve(self, Py_ssize_t capacity) except -1:
        """Make room for texts of `capacity` code points; drops the text."""
        if self.rows.shape[1] < capacity:
            self.rows = np.empty((2, 2 * capacity), dtype=np.uint32)
        self.length = self.written = 0
        return 0


cdef int put_utf8(Rewriter text, const unsigned char[::1] utf8, Py_ssize_t start, Py_ssize_t stop) except -1 nogil:
    """Write utf8[start:stop], which is valid UTF-8, decoded."""
    cdef Py_ssize_t i = start
    cdef unsigned int byte, c
    cdef int n_more
    while i < stop:
        byte = utf8[i]
        n_more = (byte >= 0xc0) + (byte >= 0xe0) + (byte >= 0xf0)
        c = byte if n_more == 0 else byte & (0x3f >> n_more)
        for i in range(i + 1, i + 1 + n_more):
            c = c << 6 | (utf8[i] & 0x3f)
        i += 1
        put(text, c)
    return 0


cdef Py_ssize_t encode_utf8(unsigned int c, unsigned char[::1] out, Py_ssize_t at) except -1 nogil:
    """Write the code point `c` to out[at:]; returns where it ends."""
    if c < 0x80:
        out[at] = c
        return at + 1
    if c < 0x800:
        out[at] = 0xc0 | c >> 6
    else:
        if c < 0x10000:
            out[at] = 0xe0 | c >> 12
        else:
            out[at] = 0xf0 | c >> 18
            at += 1
            out[at] = 0x80 | (c >> 12 & 0x3f)
        at += 1
        out[at] = 0x80 | (c >> 6 & 0x3f)
    out[at + 1] = 0x80 | (c & 0x3f)
    return at + 2
