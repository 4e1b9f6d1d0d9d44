"""Draws rows with a user's function, compiled by Numba (see una_fast/augment/numba.py)."""

from libc.stdint cimport int32_t, int64_t, uint64_t, uintptr_t

from una_fast.errors import InputError

from una_fast._kernels.draws.rows cimport RowKernel, Workspace
from una_fast._kernels.ids.emit cimport RECORD
from una_fast._kernels.prefetch cimport una_prefetch

ctypedef int64_t (*DrawRow)(const int32_t* ids, int64_t n, uint64_t key, const double* idf, const double* max_tfidf,
                            const int64_t* document_frequency, int64_t n_terms, int32_t* out) noexcept nogil

cdef enum:
    ROOM = 2  # how many ids the function may write per word of the row


cdef class CustomRows(RowKernel):
    """Augments rows with a user's function. Raises InputError if the function returns a wrong length or a wrong id.

    function: a Numba CFunc with the signature of `DrawRow`.
    keeps_length: whether the function must write exactly one id per word of the row.
    idf, max_tfidf, document_frequency: one value per id: the terms of the index, then the unseen words.
    """

    cdef object function
    cdef DrawRow draw
    cdef bint keeps_length
    cdef const double[::1] idf
    cdef const double[::1] max_tfidf
    cdef const int64_t[::1] document_frequency
    cdef int64_t n_terms

    def __init__(self, words, function, bint keeps_length, idf, max_tfidf, document_frequency, int64_t n_terms,
                 uint64_t seed, streams=None):
        RowKernel.__init__(self, words, seed, streams, growth=ROOM)
        self.function, self.draw = function, <DrawRow><uintptr_t>function.address
        self.keeps_length, self.n_terms = keeps_length, n_terms
        self.idf, self.max_tfidf, self.document_frequency = idf, max_tfidf, document_frequency

    cdef int64_t draw_row(self, int64_t row, uint64_t key, int64_t n, int32_t* out, Workspace work) except -1 nogil:
        cdef int64_t k, length
        n = self.indptr[row + 1] - self.indptr[row]  # the function gets all words, even if the result is truncated
        length = self.draw(&self.values[self.indptr[row]], n, key, &self.idf[0], &self.max_tfidf[0],
                           &self.document_frequency[0], self.n_terms, out)
        if length < (n if self.keeps_length else 1) or length > (n if self.keeps_length else ROOM * n):
            with gil:
                self.refuse(f"returned {length} for a row of {n} words: it must return "
                            + (f'{n} with surface="kept"' if self.keeps_length else f"1 to {ROOM * n}"))
        for k in range(length):
            if out[k] < 0 or (out[k] >= self.n_terms and not self.has(row, out[k])):
                with gil:
                    self.refuse(f"wrote the id {out[k]}: term ids are 0 to {self.n_terms - 1}")
            if work.records != NULL:
                una_prefetch(work.records + RECORD * <int64_t>out[k])
        return length

    cdef bint has(self, int64_t row, int32_t id) noexcept nogil:
        cdef int64_t k
        for k in range(self.indptr[row], self.indptr[row + 1]):
            if self.values[k] == id:
                return True
        return False

    cdef int refuse(self, str what) except -1:
        raise InputError(f"{self.function.__qualname__}, which draws the rows, {what}")
