"""A text under rewriting: rules read the row that holds the text and write the other, so none sees its own output."""

cdef class Rewriter:
    cdef unsigned int[:, ::1] rows  # (2, capacity) code points
    cdef int current                # the row that holds the text
    cdef Py_ssize_t length          # of the text
    cdef Py_ssize_t written         # of what is being written

    cdef int reserve(self, Py_ssize_t capacity) except -1


cdef inline unsigned int at(Rewriter text, Py_ssize_t i) except? 0xffffffff nogil:
    return text.rows[text.current, i]


cdef inline int put(Rewriter text, unsigned int c) except -1 nogil:
    text.rows[1 - text.current, text.written] = c
    text.written += 1
    return 0


cdef inline int put_spaced(Rewriter text, unsigned int c) except -1 nogil:
    put(text, c' ')
    put(text, c)
    return put(text, c' ')


cdef inline int copy(Rewriter text, Py_ssize_t start, Py_ssize_t stop) except -1 nogil:
    """Write text[start:stop] as it is."""
    cdef Py_ssize_t i
    for i in range(start, stop):
        put(text, at(text, i))
    return 0


cdef inline int flip(Rewriter text) except -1 nogil:
    """What has been written is now the text."""
    text.current = 1 - text.current
    text.length = text.written
    text.written = 0
    return 0


cdef int put_utf8(Rewriter text, const unsigned char[::1] utf8, Py_ssize_t start, Py_ssize_t stop) except -1 nogil
cdef Py_ssize_t encode_utf8(unsigned int c, unsigned char[::1] out, Py_ssize_t at) except -1 nogil
