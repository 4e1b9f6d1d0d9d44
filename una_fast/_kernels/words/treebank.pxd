"""NLTK's word tokenizer, callable without the GIL.

A rule reads the text in one buffer of a `Rewriter` and writes the new text to the other, so it never reads its output.
"""

from libc.stdint cimport uint16_t, uint32_t

cdef extern from "Python.h" nogil:
    bint Py_UNICODE_ISSPACE(Py_UCS4 c)

cdef enum:
    # A text of n characters never becomes longer than GROWTH * n + EXTRA: the rules add at most 5 characters for each
    # quote and fewer for any other character. The rules that match once in a text (its ends, the final periods, the
    # last comma) add at most 16 characters together.
    GROWTH = 6
    EXTRA = 16

cdef enum:  # kinds of characters that the rules name, as bits
    APOSTROPHE = 1
    DOUBLE_QUOTE = 2
    BACKTICK = 4
    OPENING_QUOTE = 8
    CLOSING_QUOTE = 16
    DOT = 32
    COMMA_COLON = 64
    SYMBOL_DASH = 128
    QUERY = 256
    STAR = 512
    OPENING_BRACKET = 1024
    CLOSING_BRACKET = 2048
    HYPHEN = 4096
    SPACE = 8192
    CONTRACTED = 16384  # a letter that a contraction starts with
    LETTER_N = 32768    # what "n't" starts with
    LAST_KIND = 0x201e  # the highest code point that a rule names


cdef class Rewriter:
    cdef uint32_t[:, ::1] buffers           # (2, capacity) code points
    cdef const uint16_t[::1] kinds          # the kind of each code point up to LAST_KIND
    cdef int current                        # which buffer contains the text, 0 or 1
    cdef uint32_t has                       # the kinds of the characters of the original text, as bits
    cdef Py_ssize_t length                  # code points of the text
    cdef Py_ssize_t written                 # code points that the current rule has written


cdef inline uint32_t at(Rewriter text, Py_ssize_t i) except? 0xffffffff nogil:
    return text.buffers[text.current, i]


cdef inline uint32_t kind(Rewriter text, Py_ssize_t i) except? 0xffffffff nogil:
    cdef uint32_t c = at(text, i)
    return text.kinds[c] if c <= LAST_KIND else 0


cdef inline bint holds(Rewriter text, Py_ssize_t i, uint32_t c) except? -1 nogil:
    """Return whether character `i` of the text exists and is `c`."""
    return i < text.length and at(text, i) == c


cdef inline int put(Rewriter text, uint32_t c) except -1 nogil:
    text.buffers[1 - text.current, text.written] = c
    text.written += 1
    return 0


cdef inline int flip(Rewriter text) except -1 nogil:
    """End a rule: its output becomes the text."""
    text.current = 1 - text.current
    text.length = text.written
    text.written = 0
    return 0


cdef int put_utf8(Rewriter text, const unsigned char[::1] utf8, Py_ssize_t start, Py_ssize_t stop) except -1 nogil
cdef Py_ssize_t write_utf8(uint32_t c, unsigned char[::1] out, Py_ssize_t i) except -1 nogil
cdef int apply_treebank(Rewriter text) except -1 nogil
