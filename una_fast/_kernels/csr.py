"""Scans over rows of terms (Numba). A row is ``values[indptr[i]:indptr[i + 1]]``, term ids in document order.

Kernels are compiled once for fixed types by `warm_up`, which several processes and threads may call at the same time.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import config

from una_fast._kernels.one_process import one_process_at_a_time


def _compiled(function: Any) -> Any:
    """Mark a kernel that `warm_up` compiles; Numba caches the result if a folder for that can be written."""
    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # neither the package nor the home is writable, as in many containers
        return numba.njit(nogil=True)(function)


@_compiled
def document_statistics(values, indptr, counts, document_frequency, highest_ratio):
    """Documents that hold each term, and the highest n_t / n of each term.

    values: int32 (T,); indptr: int64 (N + 1,); counts: int32 (V,) scratch, zeros before and after;
    document_frequency: int64 (V,), to which these documents are added; highest_ratio: float64 (V,), raised where these
    documents have a higher one. O(T) time.
    """
    for row in range(indptr.size - 1):
        start, stop = indptr[row], indptr[row + 1]
        for k in range(start, stop):
            counts[values[k]] += 1
        for k in range(start, stop):
            term = values[k]
            if counts[term] > 0:
                ratio = counts[term] / (stop - start)
                document_frequency[term] += 1
                highest_ratio[term] = max(highest_ratio[term], ratio)
                counts[term] = 0


@_compiled
def count_terms(values, indptr, distinct_indptr, indices, counts):
    """Rows of (term, count), terms ascending: the CSR form of n_t. Returns how many pairs were written.

    values: int32 (T,); indptr: int64 (N + 1,); distinct_indptr: int64 (N + 1,); indices, counts: int32 (T,), of which
    the first ``distinct_indptr[-1]`` entries are filled. O(T log(longest row)) time.
    """
    end = 0
    distinct_indptr[0] = 0
    for row in range(indptr.size - 1):
        terms = np.sort(values[indptr[row] : indptr[row + 1]])
        for k in range(terms.size):
            if k > 0 and terms[k] == terms[k - 1]:
                counts[end - 1] += 1
            else:
                indices[end] = terms[k]
                counts[end] = 1
                end += 1
        distinct_indptr[row + 1] = end
    return end


@_compiled
def relabel(values, labels):
    """Replace every value v by ``labels[v]`` in place. values: int32 (T,); labels: int32 (V,)."""
    for k in range(values.size):
        values[k] = labels[values[k]]


@_compiled
def score_windows(scores, distance, start, stop):
    """Bounds of the terms whose score differs by at most `distance`, for every term.

    scores: float64 (V,), never increasing; start, stop: int32 (V,), filled so that exactly the terms j of
    ``start[i] <= j < stop[i]`` have ``|scores[i] - scores[j]| <= distance``. Both bounds only move forward: O(V).
    """
    low = high = 0
    for i in range(scores.size):
        while scores[low] - scores[i] > distance:
            low += 1
        while high < scores.size and scores[i] - scores[high] <= distance:
            high += 1
        start[i] = low
        stop[i] = high


def _readonly_vector(dtype: types.Type) -> types.Array:
    """A C-contiguous vector that a kernel only reads, so that memory-mapped arrays fit too."""
    return types.Array(dtype, 1, "C", readonly=True)


_I32, _I64, _F64 = types.int32[::1], types.int64[::1], types.float64[::1]
_SIGNATURES: dict[Any, tuple[Any, ...]] = {
    document_statistics: (_readonly_vector(types.int32), _readonly_vector(types.int64), _I32, _I64, _F64),
    count_terms: (_readonly_vector(types.int32), _readonly_vector(types.int64), _I64, _I32, _I32),
    relabel: (_I32, _readonly_vector(types.int32)),
    score_windows: (_readonly_vector(types.float64), types.float64, _I32, _I32),
}


def warm_up() -> None:
    """Compile every kernel of this file, or load it from Numba's cache (about 30 ms).

    With the lock, processes that start together compile once, and the others load the result. Numba's cache may be read
    while it is written, but two writers of its index file lose each other's entries. Threads wait for the lock too.
    """
    if config.DISABLE_JIT or all(kernel.signatures for kernel in _SIGNATURES):  # type: ignore[attr-defined]
        return
    with one_process_at_a_time("numba"):
        for kernel, signature in _SIGNATURES.items():
            if not kernel.signatures:  # another thread may have been faster
                _compile(kernel, signature)


def _compile(kernel: Any, signature: tuple[Any, ...]) -> None:
    try:
        kernel.compile(signature)
    except OSError:  # the cache's disk is full: what was compiled can be used all the same
        if not kernel.signatures:
            raise
    kernel.disable_compile()
