"""The buffers of a text that rules rewrite, the patterns that several rules share, UTF-8 to code points and back."""

import numpy as np


def _kinds():
    kinds = np.zeros(LAST_KIND + 1, dtype=np.uint16)
    members = {
        APOSTROPHE: "'", DOUBLE_QUOTE: '"', BACKTICK: "`", OPENING_QUOTE: "«“‘„", CLOSING_QUOTE: "»”’", DOT: ".",
        COMMA_COLON: ":,", SYMBOL_DASH: ";@#$%&\u2012\u2013\u2014\u2015", QUERY: "?!", STAR: "*",
        OPENING_BRACKET: "([{<", CLOSING_BRACKET: ")]}>", HYPHEN: "-", SPACE: " ", CONTRACTED: "cdglmwCDGLMW",
    }
    for bit, characters in members.items():
        kinds[[ord(c) for c in characters]] = bit
    return kinds


KINDS = _kinds()


cdef class Rewriter:
    def __cinit__(self):
        self.rows = np.empty((2, 0), dtype=np.uint32)
        self.kinds = KINDS

    cdef int reserve(self, Py_ssize_t capacity) except -1:
        """Make room for texts of `capacity` code points. The text that was there is lost."""
        self.rows = np.empty((2, capacity), dtype=np.uint32)
        self.length = self.written = 0
        return 0


cdef int pad(Rewriter text, unsigned int kinds) except -1 nogil:
    # [...] -> " \g<0> ", where ... are the characters of `kinds`
    cdef Py_ssize_t i
    for i in range(text.length):
        if kind(text, i) & kinds:
            put_spaced(text, at(text, i))
        else:
            put(text, at(text, i))
    return flip(text)


cdef int pad_repeats(Rewriter text, unsigned int c, Py_ssize_t least, Py_ssize_t most) except -1 nogil:
    # c{least,most} -> " \g<0> "
    cdef Py_ssize_t i = 0, stop
    while i < text.length:
        stop = i
        while stop - i < most and holds(text, stop, c):
            stop += 1
        if stop - i >= least:
            put(text, c' ')
            copy(text, i, stop)
            put(text, c' ')
            i = stop
        else:
            put(text, at(text, i))
            i += 1
    return flip(text)


cdef inline unsigned int fold(unsigned int c) noexcept nogil:
    """The lower-case ASCII letter that `c` matches under (?i), both in `re` and in `regex`; else `c` itself."""
    if c'A' <= c <= c'Z':
        return c + 32
    if c == 0x130 or c == 0x131:  # İ and ı
        return c'i'
    return c's' if c == 0x17f else c  # ſ


cdef Py_ssize_t after(Rewriter text, Py_ssize_t i, const char* letters) except -1 nogil:
    """The place after `letters` if the text has them at `i`, in upper or lower case; else 0. letters: in lower case."""
    while letters[0]:
        if i >= text.length or fold(at(text, i)) != <unsigned char>letters[0]:
            return 0
        i += 1
        letters += 1
    return i


cdef int put_utf8(Rewriter text, const unsigned char[::1] utf8, Py_ssize_t start, Py_ssize_t stop) except -1 nogil:
    """Write the code points of utf8[start:stop], which is valid UTF-8."""
    cdef Py_ssize_t i = start
    cdef unsigned int byte, c
    cdef int n_more
    while i < stop:
        byte = utf8[i]
        n_more = (byte >= 0xc0) + (byte >= 0xe0) + (byte >= 0xf0)
        c = byte & (0x3f >> n_more) if n_more else byte
        i += 1
        while n_more:
            c = c << 6 | (utf8[i] & 0x3f)
            i += 1
            n_more -= 1
        put(text, c)
    return 0


cdef Py_ssize_t write_utf8(unsigned int c, unsigned char[::1] out, Py_ssize_t place) except -1 nogil:
    """Write the code point `c` as UTF-8 from out[place] on; returns the place after its last byte."""
    cdef int shift = 0 if c < 0x80 else 6 if c < 0x800 else 12 if c < 0x10000 else 18
    out[place] = c >> shift | (0 if shift == 0 else 0xc0 if shift == 6 else 0xe0 if shift == 12 else 0xf0)
    while shift:
        place += 1
        shift -= 6
        out[place] = 0x80 | (c >> shift & 0x3f)
    return place + 1
