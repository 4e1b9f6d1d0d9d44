"""Easy data augmentation (Wei and Zou 2019, https://arxiv.org/abs/1901.11196) on rows of terms.

Step s of an operation takes the draws of position s of the row, so each draw is a function of (seed, epoch, draw set,
row, step, number).
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from una_fast._kernels.cache_lines import on_own_lines

from una_fast._kernels.draws.random cimport below, draw64, row_key, stream_key, unit
from una_fast._kernels.draws.rows cimport RowKernel, Workspace
from una_fast._kernels.ids.emit cimport TermTokens

cdef enum:
    SWAP = 0
    DELETE = 1
    SYNONYM = 2
    INSERT = 3

OPERATIONS = {"swap": SWAP, "delete": DELETE, "synonym": SYNONYM, "insert": INSERT}


cdef class Edits:
    """One operation of EDA, its strength and its synonyms.

    operation: a key of OPERATIONS; strength: the share of the words to edit, in (0, 1]; synonyms: `Ragged` int32, for
    each term the ids of its synonyms, which are here ``synonyms[bounds[t]:bounds[t + 1]]`` for term t.
    """

    cdef int operation
    cdef double strength
    cdef const int32_t[::1] synonyms
    cdef const int64_t[::1] bounds

    def __init__(self, str operation, double strength, synonyms):
        self.operation, self.strength = OPERATIONS[operation], strength
        self.synonyms, self.bounds = synonyms.values, synonyms.indptr

    cdef int64_t draw(self, uint64_t key, const int32_t[::1] ids, int64_t start, int64_t stop, int32_t[::1] places,
                      int32_t[::1] out, int64_t at) except -1 nogil:
        """Edit the row ``ids[start:stop]`` of n words, and write the edited row to `out` from place `at` on.

        Returns the place after its last word. places: int32 (n,), scratch.
        """
        cdef int64_t n = stop - start, k, steps = max(1, <int64_t>(self.strength * n))
        if self.operation == DELETE:
            return self.delete(key, ids, start, n, out, at)
        for k in range(n):
            out[at + k] = ids[start + k]
        if self.operation == SWAP and n > 1:
            self.swap(key, ids, start, n, steps, out, at)
        elif self.operation == SYNONYM:
            self.replace(key, ids, start, n, steps, places, out, at)
        elif self.operation == INSERT:
            return self.insert(key, ids, start, n, steps, places, out, at)
        return at + n

    cdef int64_t delete(self, uint64_t key, const int32_t[::1] ids, int64_t start, int64_t n, int32_t[::1] out,
                        int64_t at) except -1 nogil:
        """Delete each word with probability `strength`. A row of two or more words loses and keeps at least one."""
        cdef int64_t k, end = at, chosen
        if n == 0:
            return at
        for k in range(n):
            if unit(draw64(key, k, 0)) >= self.strength or n == 1:
                out[end] = ids[start + k]
                end += 1
        chosen = below(draw64(key, n, 0), n)
        if end == at:
            out[at] = ids[start + chosen]
            return at + 1
        if end == at + n and n > 1:
            for k in range(chosen, n - 1):
                out[at + k] = ids[start + k + 1]
            end -= 1
        return end

    cdef int swap(self, uint64_t key, const int32_t[::1] ids, int64_t start, int64_t n, int64_t steps,
                  int32_t[::1] out, int64_t at) except -1 nogil:
        """Swap the words at two random places, `steps` times.

        If the swaps leave the row as it was, swap two places that hold different terms, if there are any.
        """
        cdef int64_t step, i, j, k, n_other = 0
        for step in range(steps):
            i = below(draw64(key, step, 0), n)
            j = below(draw64(key, step, 1), n - 1)
            j += j >= i
            out[at + i], out[at + j] = out[at + j], out[at + i]
        for k in range(n):
            if out[at + k] != ids[start + k]:
                return 0
        i = below(draw64(key, steps, 0), n)
        for k in range(n):
            n_other += out[at + k] != out[at + i]
        if n_other == 0:
            return 0
        j = below(draw64(key, steps, 1), n_other)
        for k in range(n):
            if out[at + k] != out[at + i]:
                if j == 0:
                    out[at + i], out[at + k] = out[at + k], out[at + i]
                    return 0
                j -= 1
        return 0

    cdef int replace(self, uint64_t key, const int32_t[::1] ids, int64_t start, int64_t n, int64_t steps,
                     int32_t[::1] places, int32_t[::1] out, int64_t at) except -1 nogil:
        """Replace at most `steps` distinct terms that have synonyms. All places of a term get the same synonym."""
        cdef int64_t n_places = self.first_places(ids, start, n, True, places), step, k, i
        cdef int32_t term, new
        for step in range(min(steps, n_places)):
            i = step + below(draw64(key, step, 0), n_places - step)
            places[step], places[i] = places[i], places[step]
            term = ids[start + places[step]]
            new = self.synonym(draw64(key, step, 1), term)
            for k in range(n):
                if ids[start + k] == term:
                    out[at + k] = new
        return 0

    cdef int64_t insert(self, uint64_t key, const int32_t[::1] ids, int64_t start, int64_t n, int64_t steps,
                        int32_t[::1] places, int32_t[::1] out, int64_t at) except -1 nogil:
        """Insert a synonym of a random word of the original row at a random place, `steps` times."""
        cdef int64_t n_places = self.first_places(ids, start, n, False, places), step, k, place, end = at + n
        cdef int32_t new
        if n_places == 0:
            return end
        for step in range(steps):
            new = self.synonym(draw64(key, step, 1), ids[start + places[below(draw64(key, step, 0), n_places)]])
            place = at + below(draw64(key, step, 2), end - at + 1)
            for k in range(end, place, -1):
                out[k] = out[k - 1]
            out[place] = new
            end += 1
        return end

    cdef int64_t first_places(self, const int32_t[::1] ids, int64_t start, int64_t n, bint distinct,
                              int32_t[::1] places) except -1 nogil:
        """Fill `places` with the places, counted from 0, of the words that have synonyms; returns their number.

        distinct: whether to list only the first place of each term.
        """
        cdef int64_t k, i, n_places = 0
        cdef bint seen
        for k in range(n):
            if self.bounds[ids[start + k]] == self.bounds[ids[start + k] + 1]:
                continue
            seen = False
            if distinct:
                for i in range(n_places):
                    seen |= ids[start + places[i]] == ids[start + k]
            if not seen:
                places[n_places] = <int32_t>k
                n_places += 1
        return n_places

    cdef int32_t synonym(self, uint64_t bits, int32_t term) except? -1 nogil:
        return self.synonyms[self.bounds[term] + below(bits, self.bounds[term + 1] - self.bounds[term])]


cdef class EditWorkspace(Workspace):
    """Buffers of one thread to edit a block of rows of at most `longest_row` words. A word becomes at most two."""

    cdef int32_t[::1] places

    def __init__(self, int64_t longest_row):
        Workspace.__init__(self, longest_row, 2)
        self.places = on_own_lines(max(longest_row, 1), np.int32)

    cdef int draw(self, Edits edits, int64_t n_rows) except -1 nogil:
        cdef int64_t k, end = 0
        for k in range(n_rows):
            end = edits.draw(self.keys[k], self.ids, self.bounds[k], self.bounds[k + 1], self.places, self.terms, end)
            self.ends[k + 1] = end
        return 0


cdef class EditedRows(RowKernel):
    """Edits rows of an index with the operation of `edits`."""

    cdef readonly Edits edits

    def __init__(self, words, Edits edits, uint64_t seed, TermTokens tokens=None):
        RowKernel.__init__(self, words, seed, tokens)
        self.edits = edits

    cdef int draw_block(self, Workspace work, const int64_t[::1] rows, int64_t begin, int64_t stop) except -1 nogil:
        return (<EditWorkspace>work).draw(self.edits, stop - begin)


def edit_rows(Edits edits, uint64_t seed, const uint64_t[::1] rows, uint64_t epoch, uint64_t draw_set,
              const int32_t[::1] ids, const int64_t[::1] indptr, int32_t[::1] out):
    """Edit the rows ``ids[indptr[i]:indptr[i + 1]]``, and write them to `out`, int32 (2 T,), one after the other.

    Returns the bounds of the edited rows, int64 (N + 1,). rows: uint64 (N,), the number that stands for each row in its
    draws: its row in the index, or the hash of its words; ids: int32 (T,); indptr: int64 (N + 1,).
    """
    cdef int32_t[::1] places = np.empty(max(1, np.max(np.diff(indptr), initial=0)), dtype=np.int32)
    ends = np.zeros(rows.shape[0] + 1, dtype=np.int64)
    cdef int64_t[::1] bounds = ends
    cdef uint64_t key = stream_key(seed, epoch, draw_set)
    cdef int64_t row
    with nogil:
        for row in range(rows.shape[0]):
            bounds[row + 1] = edits.draw(row_key(key, rows[row]), ids, indptr[row], indptr[row + 1], places, out,
                                         bounds[row])
    return ends
