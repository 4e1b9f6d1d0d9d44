"""Easy data augmentation (Wei and Zou 2019, https://arxiv.org/abs/1901.11196) on rows of terms.

Step s of an operation takes the draws of position s of the row, so each draw is a function of (seed, epoch, sample
index, row, step, number).
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memmove

from una_fast._kernels.draws.random cimport below, draw64, unit
from una_fast._kernels.draws.rows cimport RowKernel, Workspace
from una_fast._kernels.ids.emit cimport TermTokens

cdef enum:
    SWAP = 0
    DELETE = 1
    SYNONYM = 2
    INSERT = 3

OPERATIONS = {"swap": SWAP, "delete": DELETE, "synonym": SYNONYM, "insert": INSERT}


cdef class EditedRows(RowKernel):
    """Edits rows of words with one operation of EDA.

    words, seed, tokens, numbers: of `RowKernel`; operation: a key of OPERATIONS; strength: the share of the words to
    edit, in (0, 1]; synonyms: `RaggedArray` int32, for each term the ids of its synonyms.
    """

    cdef int operation
    cdef double strength
    cdef const int32_t[::1] synonyms
    cdef const int64_t[::1] bounds

    def __init__(self, words, str operation, double strength, synonyms, uint64_t seed, TermTokens tokens=None,
                 numbers=None):
        RowKernel.__init__(self, words, seed, tokens, numbers, growth=2)
        self.operation, self.strength = OPERATIONS[operation], strength
        self.synonyms, self.bounds = synonyms.values, synonyms.indptr

    cdef int64_t draw_row(self, int64_t row, uint64_t key, int64_t n, int32_t* out, Workspace work) except -1 nogil:
        cdef const int32_t* ids = &self.values[self.indptr[row]]
        cdef int64_t steps
        n = self.indptr[row + 1] - self.indptr[row]  # of all words, whatever is needed of the result
        steps = max(1, <int64_t>(self.strength * n))
        if self.operation == DELETE:
            return self.delete(key, ids, n, out)
        memcpy(out, ids, n * sizeof(int32_t))
        if self.operation == INSERT:
            return self.insert(key, ids, n, steps, &work.chosen[0], out)
        if self.operation == SYNONYM:
            self.replace(key, ids, n, steps, &work.chosen[0], out)
        elif n > 1:
            swap(key, ids, n, steps, out)
        return n

    cdef int64_t delete(self, uint64_t key, const int32_t* ids, int64_t n, int32_t* out) noexcept nogil:
        """Delete each word with probability `strength`. A row of two or more words loses and keeps at least one."""
        cdef int64_t k, end = 0, chosen = below(draw64(key, n, 0), n)
        for k in range(n):
            if unit(draw64(key, k, 0)) >= self.strength or n == 1:
                out[end] = ids[k]
                end += 1
        if end == 0:
            out[0] = ids[chosen]
            return 1
        if end == n and n > 1:
            end -= 1
            memmove(out + chosen, out + chosen + 1, (end - chosen) * sizeof(int32_t))
        return end

    cdef int replace(self, uint64_t key, const int32_t* ids, int64_t n, int64_t steps, int32_t* places,
                     int32_t* out) except -1 nogil:
        """Replace at most `steps` distinct terms that have synonyms. All places of a term get the same synonym."""
        cdef int64_t n_places = self.first_places(ids, n, True, places), step, k, i
        cdef int32_t term, new
        for step in range(min(steps, n_places)):
            i = step + below(draw64(key, step, 0), n_places - step)
            places[step], places[i] = places[i], places[step]
            term = ids[places[step]]
            new = self.synonym(draw64(key, step, 1), term)
            for k in range(n):
                if ids[k] == term:
                    out[k] = new
        return 0

    cdef int64_t insert(self, uint64_t key, const int32_t* ids, int64_t n, int64_t steps, int32_t* places,
                        int32_t* out) except -1 nogil:
        """Insert a synonym of a random word of the original row at a random place, `steps` times."""
        cdef int64_t n_places = self.first_places(ids, n, False, places), step, place
        cdef int32_t new
        for step in range(steps if n_places else 0):
            new = self.synonym(draw64(key, step, 1), ids[places[below(draw64(key, step, 0), n_places)]])
            place = below(draw64(key, step, 2), n + 1)
            memmove(out + place + 1, out + place, (n - place) * sizeof(int32_t))
            out[place] = new
            n += 1
        return n

    cdef int64_t first_places(self, const int32_t* ids, int64_t n, bint distinct, int32_t* places) except -1 nogil:
        """Fill `places` with the places of the words that have synonyms; returns their number.

        distinct: whether to list only the first place of each term.
        """
        cdef int64_t k, i, n_places = 0
        cdef bint seen
        for k in range(n):
            seen = self.bounds[ids[k]] == self.bounds[ids[k] + 1]
            for i in range(n_places if distinct and not seen else 0):
                seen |= ids[places[i]] == ids[k]
            if not seen:
                places[n_places] = <int32_t>k
                n_places += 1
        return n_places

    cdef int32_t synonym(self, uint64_t bits, int32_t term) except? -1 nogil:
        return self.synonyms[self.bounds[term] + below(bits, self.bounds[term + 1] - self.bounds[term])]


cdef void swap(uint64_t key, const int32_t* ids, int64_t n, int64_t steps, int32_t* out) noexcept nogil:
    """Swap the words at two random places, `steps` times.

    If the swaps leave the row as it was, swap two places that hold different terms, if there are any.
    """
    cdef int64_t step, i, j, k, n_other = 0
    for step in range(steps):
        i = below(draw64(key, step, 0), n)
        j = below(draw64(key, step, 1), n - 1)
        j += j >= i
        out[i], out[j] = out[j], out[i]
    for k in range(n):
        if out[k] != ids[k]:
            return
    i = below(draw64(key, steps, 0), n)
    for k in range(n):
        n_other += out[k] != out[i]
    j = below(draw64(key, steps, 1), n_other)
    for k in range(n):
        if out[k] != out[i]:
            if j == 0:
                out[i], out[k] = out[k], out[i]
                return
            j -= 1
