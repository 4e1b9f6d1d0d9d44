"""Entries -> words. Each entry is tokenised once, on a line of its own.

Where the entry has a neighbour in its document, the line has an "x" in place of the neighbour.
"""

import numpy as np

from libc.string cimport memcpy

from una_fast._kernels.words.characters cimport python_space
from una_fast._kernels.words.entries cimport FIRST, LAST
from una_fast._kernels.words.rewriter cimport Rewriter, at, flip, put, put_utf8, write_utf8
from una_fast._kernels.words.treebank cimport EXTRA, GROWTH, apply_treebank

ctypedef long long int64


cdef class WordWriter:
    """Collects words as UTF-8, one after the other. n_bytes: the number of bytes of text to be read."""

    cdef unsigned char[::1] utf8
    cdef int64[::1] offsets
    cdef Py_ssize_t count
    cdef Py_ssize_t used

    def __cinit__(self, Py_ssize_t n_bytes):
        # A word has at least one byte, and for one byte of text no rule writes more than two bytes of words, as from
        # '"' to "``".
        self.utf8 = np.empty(2 * n_bytes, dtype=np.uint8)
        self.offsets = np.empty(2 * n_bytes + 1, dtype=np.int64)  # only the part that is filled takes memory
        self.offsets[0] = 0

    cdef int end_word(self) except -1 nogil:
        self.count += 1
        self.offsets[self.count] = self.used
        return 0

    cdef int write_plain(self, const unsigned char[::1] utf8, Py_ssize_t start, Py_ssize_t stop) except -1 nogil:
        memcpy(&self.utf8[self.used], &utf8[start], stop - start)
        self.used += stop - start
        return self.end_word()

    cdef int write_split(self, Rewriter text, Py_ssize_t start, Py_ssize_t stop) except -1 nogil:
        """Write the words into which str.split would cut text[start:stop]."""
        cdef Py_ssize_t i
        cdef bint inside = False
        for i in range(start, stop):
            if not python_space(at(text, i)):
                self.used = write_utf8(at(text, i), self.utf8, self.used)
                inside = True
            elif inside:
                self.end_word()
                inside = False
        return self.end_word() if inside else 0


cdef Py_ssize_t plain_word(const unsigned char[::1] utf8, Py_ssize_t start, Py_ssize_t stop, int place) noexcept nogil:
    """Where the first word of a chunk ends, for the chunks that need no rule: the second word is the rest, if any.

    Such a chunk has only ASCII letters and digits, or one mark after them that every rule which names it makes a word
    of its own; a period is one at the end of the document alone. The contractions of letters, such as "gonna" and
    "cannot", have 5 or 6 letters, the first of them c, g, l or w. -1 for other chunks.
    """
    cdef Py_ssize_t i = start
    cdef unsigned char byte
    while i < stop and (c'a' <= utf8[i] | 0x20 <= c'z' or c'0' <= utf8[i] <= c'9'):
        i += 1
    if i == start or i < stop - 1:
        return -1
    byte = utf8[start] | 0x20
    if 5 <= i - start <= 6 and (byte == c'c' or byte == c'g' or byte == c'l' or byte == c'w'):
        return -1
    if i == stop:
        return stop
    byte = utf8[i]
    if byte == c'.':
        return i if place & LAST else stop
    return i if byte == c',' or byte == c':' or byte == c';' or byte == c'?' or byte == c'!' or byte == c')' else -1


def tokenize_entries(const unsigned char[::1] utf8, const int64[:, ::1] spans, const int[::1] chunks,
                     const int64[:, ::1] entries, bint treebank):
    """The words of `entries`, int64 (E, 3), and `chunks`, int32 (T,), both as in `number_entries`.

    Chunk i is ``utf8[spans[i, 0]:spans[i, 1]]``; spans: int64 (C, 2). treebank: whether to apply the rules of NLTK's
    tokenizer; otherwise entries are only cut at white space.

    Returns (utf8 of the words uint8, offsets int64 (W + 1,), indptr int64 (E + 1,)): entry i has the words indptr[i] to
    indptr[i + 1] - 1, and word j is ``utf8[offsets[j]:offsets[j + 1]]``.
    """
    cdef Py_ssize_t n = entries.shape[0], n_bytes = 0, longest = 0, e, word
    with nogil:
        measure(spans, chunks, entries, &n_bytes, &longest)
    cdef WordWriter out = WordWriter(n_bytes)
    cdef Rewriter text = Rewriter()
    text.reserve(GROWTH * (longest + 4) + EXTRA)
    indptr_array = np.zeros(n + 1, dtype=np.int64)
    cdef int64[::1] indptr = indptr_array
    cdef const int64[::1] span
    cdef int place
    with nogil:
        for e in range(n):
            span = spans[chunks[entries[e, 0]]]
            place = <int>entries[e, 2] if treebank else FIRST | LAST
            word = plain_word(utf8, span[0], span[1], place) if entries[e, 1] - entries[e, 0] == 1 else -1
            if word == span[1] or (word >= 0 and not treebank):
                out.write_plain(utf8, span[0], span[1])
            elif word >= 0:
                out.write_plain(utf8, span[0], word)
                out.write_plain(utf8, word, span[1])
            else:
                put_entry(text, utf8, spans, chunks[entries[e, 0] : entries[e, 1]], place)
                if treebank:
                    apply_treebank(text)
                write_entry(out, text, place)
            indptr[e + 1] = out.count
    return np.asarray(out.utf8)[: out.used], np.asarray(out.offsets)[: out.count + 1], indptr_array


cdef int measure(const int64[:, ::1] spans, const int[::1] chunks, const int64[:, ::1] entries,
                 Py_ssize_t* n_bytes, Py_ssize_t* longest) except -1 nogil:
    """Count the bytes: `n_bytes` of all entries, `longest` of the longest entry.

    Each chunk counts one byte more than it has, for the space after it.
    """
    cdef Py_ssize_t e, i, length
    for e in range(entries.shape[0]):
        length = 0
        for i in range(entries[e, 0], entries[e, 1]):
            length += spans[chunks[i], 1] - spans[chunks[i], 0] + 1
        n_bytes[0] += length
        longest[0] = max(longest[0], length)
    return 0


cdef int put_entry(Rewriter text, const unsigned char[::1] utf8, const int64[:, ::1] spans, const int[::1] chunks,
                   int place) except -1 nogil:
    """Make an entry the text of `text`, with an "x" in place of each neighbour that the entry has."""
    cdef Py_ssize_t i
    if not place & FIRST:
        put(text, c'x')
        put(text, c' ')
    for i in range(chunks.shape[0]):
        if i:
            put(text, c' ')
        put_utf8(text, utf8, spans[chunks[i], 0], spans[chunks[i], 1])
    if not place & LAST:
        put(text, c' ')
        put(text, c'x')
    return flip(text)


cdef int write_entry(WordWriter out, Rewriter text, int place) except -1 nogil:
    """Write the words of the entry: those into which str.split would cut the text without the "x" of neighbours."""
    cdef Py_ssize_t start = 0, stop = text.length
    if not place & FIRST:
        while at(text, start) != c'x':
            start += 1
        start += 1
    if not place & LAST:
        while at(text, stop - 1) != c'x':
            stop -= 1
        stop -= 1
    return out.write_split(text, start, stop)
