"""Scans over rows of terms. Row i is ``values[indptr[i]:indptr[i + 1]]``, term ids in document order."""

from libc.stdint cimport int32_t, int64_t


def document_statistics(const int32_t[::1] values, const int64_t[::1] indptr, int32_t[::1] counts,
                        int64_t[::1] document_frequency, double[::1] highest_ratio):
    """Count the documents that contain each term, and find each term's highest n_t / n (as in equation 2).

    Inputs: values, int32 (T,); indptr, int64 (N + 1,); counts, int32 (V,), scratch that must contain zeros and contains
    zeros again at the end. Outputs: document_frequency, int64 (V,), is incremented; highest_ratio, float64 (V,), is
    raised to each higher n_t / n. This takes O(T) time.
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
    """Set ``out[k]`` to ``labels[values[k]]``; `out` may be `values`. values, out: int32 (T,); labels: int32 (V,)."""
    cdef Py_ssize_t k
    with nogil:
        for k in range(values.shape[0]):
            out[k] = labels[values[k]]
