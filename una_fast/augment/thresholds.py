"""The replacement probabilities of all words of an index as thresholds of 32 bits, kept beside the index."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import xxhash

from una_fast._kernels.draws.law import Law
from una_fast._kernels.draws.probability import fill_thresholds, replacement_probabilities
from una_fast.arrays import ID, SCORE
from una_fast.errors import InputError
from una_fast.index.beside import Arrays, Part, kept_beside
from una_fast.index.index import Index
from una_fast.index.layout import THRESHOLDS
from una_fast.memory import free_memory

VERSION = 1  # of what a threshold says
ROWS_A_TASK = 2**13  # whose probabilities, 4 MB, stay in the second-level cache
LARGE_SHARE = 0.5  # of the free memory: a larger table would take the memory of the arrays that it saves reading


def kept_thresholds(index: Index, law: Law, n_jobs: int) -> np.ndarray | None:
    """uint32 (T,), the threshold of each word of each row (see `fill_thresholds`); None if memory is short.

    They are mapped from the index's folder, where they are written when they are first made: 0.2 s of processor time
    for a million sentences.

    Raises:
        InputError: kept thresholds that are damaged.
    """
    n_words = len(index.word_ids.values)
    free = free_memory()
    if free is not None and np.dtype(np.uint32).itemsize * n_words > LARGE_SHARE * free:
        return None

    def check(folder: Path, arrays: Arrays) -> None:
        found = {name: (array.dtype, array.shape) for name, array in arrays.items()}
        if found != {"thresholds": (np.uint32, (n_words,))}:
            raise InputError(f"{folder}: damaged, or not written by una_fast: holds {found}; delete it")

    settings = (law.beta, law.random_select, law.released, law.fixes)  # all that change a probability
    name = f"thresholds-{xxhash.xxh3_128_hexdigest(repr(settings).encode())}"
    part = Part(name, THRESHOLDS, VERSION, check, str(n_words))
    return kept_beside(index, part, lambda: {"thresholds": make_thresholds(index, law, n_jobs)})["thresholds"]


def make_thresholds(index: Index, law: Law, n_jobs: int) -> np.ndarray:
    """The thresholds of all words of an index: uint32 (T,)."""
    values, indptr = index.word_ids.values, index.word_ids.indptr
    out = np.empty(len(values), dtype=np.uint32)

    def fill(start: int) -> None:
        bounds = indptr[start : start + ROWS_A_TASK + 1]
        words, bounds = slice(bounds[0], bounds[-1]), bounds - bounds[0]
        first, (z, p) = np.empty(bounds[-1], dtype=ID), np.empty((2, bounds[-1]), dtype=SCORE)
        replacement_probabilities(law, values[words], bounds, first, z, p)
        fill_thresholds(law, bounds, first, p, out[words])

    with ThreadPoolExecutor(n_jobs) as threads:
        list(threads.map(fill, range(0, index.n_documents, ROWS_A_TASK)))
    return out
