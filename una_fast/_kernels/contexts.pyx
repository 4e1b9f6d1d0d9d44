"""From chunks to words: each distinct chunk is tokenised once for each place in a line that can change its words.

An *entry* is a run of chunks of one document, with its place: nearly always one chunk. See una_fast/words.py for why
its words depend on nothing else.
"""

import numpy as np

from una_fast._kernels.characters cimport python_space
from una_fast._kernels.rewriter cimport Rewriter, at, encode_utf8, flip, put, put_utf8
from una_fast._kernels.treebank cimport EXTRA, GROWTH, apply_treebank, is_closing

ctypedef long long int64

cdef enum:
    FIRST = 1  # the entry starts its document
    LAST = 2   # the entry ends its document


def closing_chunks(const unsigned char[::1] utf8, const int64[:, ::1] spans):
    """uint8 (C,): 1 for strings that the final-period rules look through: only closers and white space, or empty."""
    cdef Py_ssize_t n = spans.shape[0], i, k
    cdef Rewriter text = Rewriter()
    text.reserve(np.diff(spans).max(initial=0))
    closing_array = np.ones(n, dtype=np.uint8)
    cdef unsigned char[::1] closing = closing_array
    with nogil:
        for i in range(n):
            text.written = 0
            put_utf8(text, utf8, spans[i, 0], spans[i, 1])
            flip(text)
            for k in range(text.length):
                if not is_closing(at(text, k)):
                    closing[i] = 0
                    break
    return closing_array


def number_entries(const int[::1] chunks, const int64[::1] indptr, const unsigned char[::1] closing):
    """Cut documents into entries, and number the distinct ones by first appearance.

    chunks: int32 (T,), indptr: int64 (N + 1,), the chunks of each document, at least one; closing: uint8 (C,), what
    `closing_chunks` gives. Returns (entry of each piece int32 (U,), indptr int64 (N + 1,), entries int64 (E, 3)):
    entry i is ``chunks[entries[i, 0]:entries[i, 1]]`` in the place entries[i, 2].
    """
    cdef Py_ssize_t n = indptr.shape[0] - 1, row, i, tail, n_pieces = 0, n_entries = 0
    capacity = min(chunks.shape[0], 4 * closing.shape[0]) + n
    pieces_array = np.empty(chunks.shape[0], dtype=np.int32)
    indptr_array = np.zeros(n + 1, dtype=np.int64)
    entries_array = np.empty((capacity, 3), dtype=np.int64)
    cdef int[::1] pieces = pieces_array
    cdef int64[::1] piece_indptr = indptr_array
    cdef int64[:, ::1] entries = entries_array
    cdef int[:, ::1] known = np.full((4, closing.shape[0]), -1, dtype=np.int32)
    cdef int place
    with nogil:
        for row in range(n):
            tail = indptr[row + 1] - 1
            while tail > indptr[row] and closing[chunks[tail]]:
                tail -= 1
            for i in range(indptr[row], tail + 1):
                place = (FIRST if i == indptr[row] else 0) | (LAST if i == tail else 0)
                if i == tail and tail + 1 < indptr[row + 1]:  # a run that ends in closers: rare, always a new entry
                    pieces[n_pieces] = n_entries
                elif known[place, chunks[i]] < 0:
                    known[place, chunks[i]] = pieces[n_pieces] = n_entries
                else:
                    pieces[n_pieces] = known[place, chunks[i]]
                if pieces[n_pieces] == n_entries:
                    entries[n_entries, 0] = i
                    entries[n_entries, 1] = indptr[row + 1] if i == tail else i + 1
                    entries[n_entries, 2] = place
                    n_entries += 1
                n_pieces += 1
            piece_indptr[row + 1] = n_pieces
    return pieces_array[:n_pieces], indptr_array, entries_array[:n_entries]


cdef class WordWriter:
    """Words as UTF-8, one after the other."""

    cdef unsigned char[::1] utf8
    cdef int64[::1] offsets
    cdef Py_ssize_t count
    cdef Py_ssize_t used

    def __cinit__(self, Py_ssize_t n_bytes):
        # a word has at least a byte, and no rule writes more bytes of words than two for one read ('"' to "``")
        self.utf8 = np.empty(2 * n_bytes, dtype=np.uint8)
        self.offsets = np.zeros(2 * n_bytes + 1, dtype=np.int64)

    cdef int end_word(self) except -1 nogil:
        self.count += 1
        self.offsets[self.count] = self.used
        return 0

    cdef int write_plain(self, const unsigned char[::1] utf8, Py_ssize_t start, Py_ssize_t stop) except -1 nogil:
        cdef Py_ssize_t i
        for i in range(start, stop):
            self.utf8[self.used] = utf8[i]
            self.used += 1
        return self.end_word()

    cdef int write_split(self, Rewriter text, Py_ssize_t start, Py_ssize_t stop) except -1 nogil:
        """Write the words that str.split finds in text[start:stop]."""
        cdef Py_ssize_t i
        cdef bint inside = False
        for i in range(start, stop):
            if not python_space(at(text, i)):
                self.used = encode_utf8(at(text, i), self.utf8, self.used)
                inside = True
            elif inside:
                self.end_word()
                inside = False
        return self.end_word() if inside else 0


cdef bint is_plain(const unsigned char[::1] utf8, Py_ssize_t start, Py_ssize_t stop) except? -1 nogil:
    """Whether the chunk is ASCII letters and digits and as short or long as no contraction: its own single word."""
    cdef Py_ssize_t i
    cdef unsigned char byte
    for i in range(start, stop):
        byte = utf8[i]
        if not (c'a' <= byte | 0x20 <= c'z' or c'0' <= byte <= c'9'):
            return False
    return stop > start and not 5 <= stop - start <= 6


cdef int write_treebank(WordWriter out, Rewriter text, int place) except -1 nogil:
    """Write the words of an entry that has been put into `text`, with an "x" put on each side that is not an end."""
    cdef Py_ssize_t start = 0, stop
    flip(text)
    apply_treebank(text)
    stop = text.length
    if not place & FIRST:
        while at(text, start) != c'x':
            start += 1
        start += 1
    if not place & LAST:
        while at(text, stop - 1) != c'x':
            stop -= 1
        stop -= 1
    return out.write_split(text, start, stop)


def tokenize_entries(const unsigned char[::1] utf8, const int64[:, ::1] spans, const int[::1] chunks,
                     const int64[:, ::1] entries, bint treebank):
    """The words of `entries` (see `number_entries`); chunk i is ``utf8[spans[i, 0]:spans[i, 1]]``.

    Returns (utf8 of the words, offsets int64 (W + 1,), indptr int64 (E + 1,)): entry i has the words indptr[i] to
    indptr[i + 1].
    """
    cdef Py_ssize_t n = entries.shape[0], e, i, n_bytes = 0, longest = 0, length
    cdef int64 start, stop
    for e in range(n):
        length = entries[e, 1] - entries[e, 0]
        for i in range(entries[e, 0], entries[e, 1]):
            length += spans[chunks[i], 1] - spans[chunks[i], 0]
        n_bytes += length
        longest = max(longest, length)
    cdef WordWriter out = WordWriter(n_bytes)
    cdef Rewriter text = Rewriter()
    text.reserve(GROWTH * (longest + 4) + EXTRA)
    indptr_array = np.zeros(n + 1, dtype=np.int64)
    cdef int64[::1] indptr = indptr_array
    cdef int place
    with nogil:
        for e in range(n):
            place = <int>entries[e, 2]
            start, stop = spans[chunks[entries[e, 0]], 0], spans[chunks[entries[e, 0]], 1]
            if entries[e, 1] - entries[e, 0] == 1 and is_plain(utf8, start, stop):
                out.write_plain(utf8, start, stop)
            else:
                put_entry(text, utf8, spans, chunks[entries[e, 0] : entries[e, 1]], place if treebank else FIRST | LAST)
                if treebank:
                    write_treebank(out, text, place)
                else:
                    flip(text)
                    out.write_split(text, 0, text.length)
            indptr[e + 1] = out.count
    return np.asarray(out.utf8)[: out.used], np.asarray(out.offsets)[: out.count + 1], indptr_array


cdef int put_entry(Rewriter text, const unsigned char[::1] utf8, const int64[:, ::1] spans, const int[::1] chunks,
                   int place) except -1 nogil:
    cdef Py_ssize_t i
    text.written = 0
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
    return 0


def count_words(const int[::1] pieces, const int64[::1] indptr, const int64[::1] entry_indptr, int64[::1] out):
    """Fill out (n,) with the number of words of each document of `indptr` (n + 1,)."""
    cdef Py_ssize_t row, i
    cdef int64 n
    with nogil:
        for row in range(out.shape[0]):
            n = 0
            for i in range(indptr[row], indptr[row + 1]):
                n += entry_indptr[pieces[i] + 1] - entry_indptr[pieces[i]]
            out[row] = n


def gather_words(const int[::1] pieces, const int64[::1] indptr, const int64[::1] entry_indptr,
                 const int[::1] entry_words, int[::1] out):
    """Fill `out` with the words of the documents of `indptr`, one after the other."""
    cdef Py_ssize_t i, word, filled = 0
    with nogil:
        for i in range(indptr[0], indptr[indptr.shape[0] - 1]):
            for word in range(entry_indptr[pieces[i]], entry_indptr[pieces[i] + 1]):
                out[filled] = entry_words[word]
                filled += 1
