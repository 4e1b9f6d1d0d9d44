"""Chunks -> entries, and words of entries -> words of documents.

An *entry* is a run of chunks of one document, nearly always a single chunk, together with its place: whether it starts
and whether it ends the document. The words of an entry depend on nothing else; una_fast/corpus/words.py gives the
reasons.
"""

import numpy as np

from una_fast._kernels.words.punctuation cimport is_closing
from una_fast._kernels.words.rewriter cimport Rewriter, flip, put_utf8

ctypedef long long int64


def closing_chunks(const unsigned char[::1] utf8, const int64[:, ::1] spans):
    """uint8 (C,): 1 for each chunk that may stand between a final period and the end of its document, else 0.

    Such a chunk is empty, or holds only closing brackets, quotes and white space. Chunk i is
    ``utf8[spans[i, 0]:spans[i, 1]]``; spans: int64 (C, 2).
    """
    cdef Py_ssize_t n = spans.shape[0], i, k
    cdef Rewriter text = Rewriter()
    text.reserve(np.diff(spans).max(initial=0))
    closing_array = np.ones(n, dtype=np.uint8)
    cdef unsigned char[::1] closing = closing_array
    with nogil:
        for i in range(n):
            put_utf8(text, utf8, spans[i, 0], spans[i, 1])
            flip(text)
            for k in range(text.length):
                closing[i] &= is_closing(text, k) != 0
    return closing_array


def number_entries(const int[::1] chunks, const int64[::1] indptr, const unsigned char[::1] closing):
    """Cut documents into pieces, each of which is an entry, and number the distinct entries by first appearance.

    chunks: int32 (T,), indptr: int64 (N + 1,): the chunks of each document, which has at least one; closing: uint8
    (C,), as `closing_chunks` gives it.

    Returns (the entry of each piece int32 (U,), the bounds of each document's pieces int64 (N + 1,), entries int64
    (E, 3)): entry i is ``chunks[entries[i, 0]:entries[i, 1]]`` in the place entries[i, 2], the bits FIRST and LAST.
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
                if i == tail and tail + 1 < indptr[row + 1]:  # a run with closing chunks: rare, always a new entry
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


def count_words(const int[::1] pieces, const int64[::1] indptr, const int64[::1] entry_indptr, int64[::1] out):
    """Fill `out`, int64 (n,), with the number of words of each of n documents.

    pieces: int32, indptr: int64 (n + 1,): document i has the entries ``pieces[indptr[i]:indptr[i + 1]]``; entry_indptr:
    int64 (E + 1,): entry e has the words entry_indptr[e] to entry_indptr[e + 1] - 1.
    """
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
    """Fill `out`, int32, with the words of the documents, one document after the other.

    pieces, indptr, entry_indptr: as in `count_words`; entry_words: int32, the words of all entries.
    """
    cdef Py_ssize_t i, word, filled = 0
    with nogil:
        for i in range(indptr[0], indptr[indptr.shape[0] - 1]):
            for word in range(entry_indptr[pieces[i]], entry_indptr[pieces[i] + 1]):
                out[filled] = entry_words[word]
                filled += 1
