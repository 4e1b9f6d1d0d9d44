"""The replacement probabilities of all words of an index, kept beside the index together with the words."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import xxhash

from una_fast._kernels.draws.probability import fill_weighted, id_bits, replacement_probabilities
from una_fast._kernels.draws.sampling_config import SamplingConfig
from una_fast.arrays import ID, SCORE
from una_fast.index.index import Index
from una_fast.memory import free_memory

VERSION = 4  # of the layout of a weighted word
MOST_ID_BITS = 24  # with 7 bits of the probability, a fifth of the sentences has a word that they cannot decide
ROWS_A_TASK = 2**13  # whose probabilities, 4 MB, stay in the second-level cache
LARGE_SHARE = 0.5  # of the free memory: a larger table would take the memory of the arrays that it saves reading


def kept_probabilities(index: Index, config: SamplingConfig, n_jobs: int) -> np.ndarray | None:
    """uint32 (T,), the words of each row with their probabilities (see `fill_weighted`).

    None if memory is short, or the index has more than 2**24 terms. They are mapped from the index's folder, where they
    are written when they are first made: 0.2 s of processor time for a million sentences.
    """
    n_words, free = len(index.word_ids.values), free_memory()
    is_large = free is not None and np.dtype(np.uint32).itemsize * n_words > LARGE_SHARE * free
    if is_large or id_bits(index.n_terms) > MOST_ID_BITS:
        return None
    fixed = config.fixes and xxhash.xxh3_128_hexdigest(np.asarray(config.fixed).tobytes())
    settings = (config.beta, config.random_select, config.released, fixed)  # all that change a probability
    name = f"probabilities-{VERSION}-{xxhash.xxh3_128_hexdigest(repr(settings).encode())}"
    return index.cached(name, VERSION, lambda: {"words": weighted_words(index, config, n_jobs)})["words"]


def weighted_words(index: Index, config: SamplingConfig, n_jobs: int) -> np.ndarray:
    """All words of an index with their probabilities: uint32 (T,)."""
    values, indptr = index.word_ids.values, index.word_ids.indptr
    out = np.empty(len(values), dtype=np.uint32)

    def fill(start: int) -> None:
        bounds = indptr[start : start + ROWS_A_TASK + 1]
        words, bounds = slice(bounds[0], bounds[-1]), bounds - bounds[0]
        first, (z, p) = np.empty(bounds[-1], dtype=ID), np.empty((2, bounds[-1]), dtype=SCORE)
        replacement_probabilities(config, values[words], bounds, first, z, p)
        fill_weighted(config, values[words], bounds, first, p, out[words])

    with ThreadPoolExecutor(n_jobs) as threads:
        list(threads.map(fill, range(0, index.n_documents, ROWS_A_TASK)))
    return out
