"""Scans over the words of sentences. Sentence i has the term ids ``values[indptr[i]:indptr[i + 1]]``, in order."""

from libc.stdint cimport int32_t, int64_t


def document_statistics(const int32_t[::1] values, const int64_t[::1] indptr, int32_t[::1] counts,
                        int64_t[::1] document_frequency, double[::1] highest_ratio):
    """Count the sentences that contain each term, and find each term's highest n_t / n (as in equation 2).

    n_t is how often the term occurs in a sentence of n words. The outputs `document_frequency` and
    `highest_ratio` are not cleared first, so several calls can share them. counts: scratch of n_terms zeros, which are
    zeros again at the end.
    """
    cdef Py_ssize_t row, k
    cdef int64_t start, stop
    cdef int32_t term
    cdef double ratio
    with nogil:
        for row in range(indptr.shape[0] - 1):
            start, stop = indptr[row], indptr[row + 1]
            for k in range(start, stop):
                counts[values[k]] += 1
            for k in range(start, stop):
                term = values[k]
                if counts[term] > 0:
                    ratio = <double>counts[term] / <double>(stop - start)
                    document_frequency[term] += 1
                    if ratio > highest_ratio[term]:
                        highest_ratio[term] = ratio
                    counts[term] = 0


def relabel(const int32_t[::1] values, const int32_t[::1] labels, int32_t[::1] out):
    """Set ``out[k]`` to ``labels[values[k]]`` for every k. `out` may be the same array as `values`."""
    cdef Py_ssize_t k
    with nogil:
        for k in range(values.shape[0]):
            out[k] = labels[values[k]]
