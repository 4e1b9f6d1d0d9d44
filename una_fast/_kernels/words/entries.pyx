"""Splits sentences into words. A piece of text that occurs in many sentences is tokenised only once.

An entry (see una_fast/corpus/words.py) is a run of consecutive chunks of a sentence, nearly always a single chunk,
together with its edges: whether it starts the sentence, and whether it ends the sentence. It is tokenised as a line in
which one "x" replaces all text before the entry and another "x" replaces all text after the entry.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

from una_fast._kernels.prefetch cimport una_prefetch
from una_fast._kernels.words.treebank cimport (
    EXTRA, GROWTH, Py_UNICODE_ISSPACE, Rewriter, apply_treebank, at, flip, put, put_utf8, write_utf8,
)

cdef enum:
    FIRST = 1   # the entry starts the sentence
    LAST = 2    # the entry ends the sentence
    AHEAD = 24  # codes are prefetched this many chunks before they are looked up


def find_entries(const int32_t[::1] chunks, const int64_t[::1] indptr, const unsigned char[::1] closing):
    """Divide sentences into entries (runs of chunks), and list the distinct entries in order of first occurrence.

    Sentence i has the chunk ids ``chunks[indptr[i]:indptr[i + 1]]``, at least one.
    closing: 1 for each chunk id that may follow a final period, as a quotation mark does, else 0.

    Returns `entries`, int64 (n_entries, 3). Entry i is ``chunks[entries[i, 0]:entries[i, 1]]``. Its edges,
    ``entries[i, 2]``, are the sum of FIRST, if it starts a sentence, and LAST, if it ends a sentence.
    """
    cdef Py_ssize_t n = indptr.shape[0] - 1, row, i, tail, n_entries = 0
    capacity = min(indptr[n] - indptr[0], 4 * closing.shape[0]) + n
    entries_array = np.empty((capacity, 3), dtype=np.int64)  # only the part that is filled takes memory
    cdef int64_t[:, ::1] entries = entries_array
    cdef unsigned char[::1] seen = np.zeros(closing.shape[0], dtype=np.uint8)  # bit e: an entry with edges e was seen
    cdef unsigned char edges
    with nogil:
        for row in range(n):
            tail = last_entry(chunks, indptr[row], indptr[row + 1], closing)
            for i in range(indptr[row], tail + 1):
                edges = (FIRST if i == indptr[row] else 0) | (LAST if i == tail else 0)
                if i < tail or tail + 1 == indptr[row + 1]:  # entries of several chunks are rare, so they may repeat
                    if seen[chunks[i]] >> edges & 1:
                        continue
                    seen[chunks[i]] |= 1 << edges
                entries[n_entries, 0] = i
                entries[n_entries, 1] = indptr[row + 1] if i == tail else i + 1
                entries[n_entries, 2] = edges
                n_entries += 1
    return entries_array[:n_entries].copy()


cdef inline Py_ssize_t last_entry(const int32_t[::1] chunks, int64_t start, int64_t stop,
                                  const unsigned char[::1] closing) noexcept nogil:
    """Return where the last entry of the sentence ``chunks[start:stop]`` starts.

    The last entry contains the closing chunks at the end of the sentence, and the chunk before them.
    """
    cdef Py_ssize_t tail = stop - 1
    while tail > start and closing[chunks[tail]]:
        tail -= 1
    return tail


cdef class WordWriter:
    """Collects the words of a text of n_bytes."""

    cdef unsigned char[::1] utf8
    cdef int64_t[::1] offsets
    cdef Py_ssize_t count
    cdef Py_ssize_t used

    def __cinit__(self, Py_ssize_t n_bytes):
        # A word has at least one byte, and no rule writes more than two bytes of words per byte of text ('"' to "``").
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

    cdef int write_entry(self, Rewriter text, int edges) except -1 nogil:
        """Split the rewritten text of an entry at white space, and write its words.

        The letters "x" that `put_entry` added are left out.
        """
        cdef Py_ssize_t i, start = 0, stop = text.length
        cdef bint inside = False
        if not edges & FIRST:
            while at(text, start) != c'x':
                start += 1
            start += 1
        if not edges & LAST:
            while at(text, stop - 1) != c'x':
                stop -= 1
            stop -= 1
        for i in range(start, stop):
            if not Py_UNICODE_ISSPACE(at(text, i)):
                self.used = write_utf8(at(text, i), self.utf8, self.used)
                inside = True
            elif inside:
                self.end_word()
                inside = False
        return self.end_word() if inside else 0


cdef Py_ssize_t plain_word(const unsigned char[::1] utf8, Py_ssize_t start, Py_ssize_t stop, int edges) noexcept nogil:
    """Return the index in `utf8` at which the first word of a chunk ends, or -1 if the chunk may need NLTK's rules.

    A chunk of ASCII letters and digits, with or without a final . , : ; ? ! or ), needs rules only if it is a
    contraction such as "gonna" or "cannot". These contractions have 5 or 6 letters and start with c, g, l or w, so the
    result is -1 for every word with such a length and first letter. The final mark is a separate word, except a period
    that does not end the sentence.
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
        return i if edges & LAST else stop
    return i if byte == c',' or byte == c':' or byte == c';' or byte == c'?' or byte == c'!' or byte == c')' else -1


def tokenize_entries(const unsigned char[::1] utf8, const int64_t[::1] offsets, const int32_t[::1] chunks,
                     const int64_t[:, ::1] entries, bint treebank):
    """Split entries of `find_entries` into words, and return (word_utf8, word_offsets, indptr).

    Entry i has the words ``indptr[i] .. indptr[i + 1] - 1``. Word j is
    ``word_utf8[word_offsets[j]:word_offsets[j + 1]]``.
    utf8, offsets: the text of each chunk id; treebank: apply NLTK's rules instead of splitting only at white space.
    """
    cdef Py_ssize_t n = entries.shape[0], e, i, word, size, total = 0, longest = 0
    with nogil:
        for e in range(n):
            size = 0
            for i in range(entries[e, 0], entries[e, 1]):
                size += offsets[chunks[i] + 1] - offsets[chunks[i]] + 1  # in bytes, with a space after each chunk
            total, longest = total + size, max(longest, size)
    cdef WordWriter out = WordWriter(total)
    cdef Rewriter text = Rewriter(GROWTH * (longest + 4) + EXTRA)
    indptr_array = np.zeros(n + 1, dtype=np.int64)
    cdef int64_t[::1] indptr = indptr_array
    cdef int64_t start, stop
    cdef int edges
    with nogil:
        for e in range(n):
            start, stop = offsets[chunks[entries[e, 0]]], offsets[chunks[entries[e, 0]] + 1]
            edges = <int>entries[e, 2] if treebank else FIRST | LAST
            word = plain_word(utf8, start, stop, edges) if entries[e, 1] - entries[e, 0] == 1 else -1
            if word == stop or (word >= 0 and not treebank):
                out.write_plain(utf8, start, stop)
            elif word >= 0:
                out.write_plain(utf8, start, word)
                out.write_plain(utf8, word, stop)
            else:
                put_entry(text, utf8, offsets, chunks[entries[e, 0] : entries[e, 1]], edges)
                if treebank:
                    apply_treebank(text)
                out.write_entry(text, edges)
            indptr[e + 1] = out.count
    return np.asarray(out.utf8)[: out.used], np.asarray(out.offsets)[: out.count + 1], indptr_array


cdef int put_entry(Rewriter text, const unsigned char[::1] utf8, const int64_t[::1] offsets, const int32_t[::1] chunks,
                   int edges) except -1 nogil:
    """Set `text` to the chunks of an entry, joined by spaces.

    One letter "x" replaces all text before the entry in the sentence. Another "x" replaces all text after it.
    """
    cdef Py_ssize_t i
    if not edges & FIRST:
        put(text, c'x')
        put(text, c' ')
    for i in range(chunks.shape[0]):
        if i:
            put(text, c' ')
        put_utf8(text, utf8, offsets[chunks[i]], offsets[chunks[i] + 1])
    if not edges & LAST:
        put(text, c' ')
        put(text, c'x')
    return flip(text)


cdef class EntryWords:
    """Finds the word ids of sentences. A sentence's words are the words of its entries, which are looked up.

    chunks, closing: two of the arguments of `find_entries`. entries: the result of that call, for all sentences.
    words, indptr: entry e has the word ids ``words[indptr[e]:indptr[e + 1]]``.
    """

    cdef const unsigned char[::1] closing
    cdef const int32_t[::1] words
    cdef const int64_t[::1] indptr
    # codes[edges, chunk] is (word, -1), (word, word) or, if entry e has no word or more than two, (-1 - e, -1)
    cdef int32_t[:, :, ::1] codes
    cdef const int64_t[::1] runs  # the entries of several chunks, by their index in `entries`
    cdef const int64_t[::1] run_starts  # the index in `chunks` at which each of these entries starts

    def __init__(self, const int32_t[::1] chunks, const int64_t[:, ::1] entries, const unsigned char[::1] closing,
                 const int32_t[::1] words, const int64_t[::1] indptr):
        cdef Py_ssize_t e
        cdef int64_t n
        cdef int32_t* code
        self.closing, self.words, self.indptr = closing, words, indptr
        self.codes = np.empty((4, closing.shape[0], 2), dtype=np.int32)
        table = np.asarray(entries)
        runs = np.flatnonzero(table[:, 1] - table[:, 0] > 1)
        self.runs, self.run_starts = runs, np.ascontiguousarray(table[runs, 0])
        with nogil:
            for e in range(entries.shape[0]):
                if entries[e, 1] - entries[e, 0] == 1:
                    n = indptr[e + 1] - indptr[e]
                    code = &self.codes[entries[e, 2], chunks[entries[e, 0]], 0]
                    code[0] = words[indptr[e]] if 1 <= n <= 2 else <int32_t>(-1 - e)
                    code[1] = words[indptr[e] + 1] if n == 2 else -1

    def gather(self, const int32_t[::1] chunks, const int64_t[::1] indptr, int64_t[::1] lengths, int32_t[::1] out=None):
        """Set ``lengths[i]`` to the number of words of sentence i. Write the word ids to `out` until it is full."""
        cdef Py_ssize_t row, i, tail, run = np.searchsorted(self.run_starts, indptr[0]), last = chunks.shape[0] - 1
        cdef Py_ssize_t filled = 0, before, end = 0 if out is None else out.shape[0]
        cdef int32_t first, second
        cdef int64_t word
        cdef int edges
        with nogil:
            for row in range(lengths.shape[0]):
                tail, before = last_entry(chunks, indptr[row], indptr[row + 1], self.closing), filled
                for i in range(indptr[row], tail + 1):
                    una_prefetch(&self.codes[0, chunks[min(i + AHEAD, last)], 0])
                    if i < tail or tail + 1 == indptr[row + 1]:
                        edges = (FIRST if i == indptr[row] else 0) | (LAST if i == tail else 0)
                        first, second = self.codes[edges, chunks[i], 0], self.codes[edges, chunks[i], 1]
                    else:  # an entry of several chunks
                        first, second = <int32_t>(-1 - self.runs[run]), -1
                        run += 1
                    if first >= 0:
                        if filled < end:
                            out[filled] = first
                        if filled + 1 < end:  # without a second word, the next one overwrites this
                            out[filled + 1] = second
                        filled += 1 + (second >= 0)
                        continue
                    for word in range(self.indptr[-1 - first], self.indptr[-first]):
                        if filled < end:
                            out[filled] = self.words[word]
                        filled += 1
                lengths[row] = filled - before
