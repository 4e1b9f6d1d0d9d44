"""Words without a letter or digit, which `keep_punctuation` keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from una_fast.arrays import StringTable
from una_fast.index.index import Index


def is_punctuation(words: Sequence[str]) -> np.ndarray:
    """True for each word that holds no letter and no digit of any script (`str.isalnum`): bool (n,)."""
    return np.array([not any(map(str.isalnum, word)) for word in words], dtype=bool)


def punctuation_terms(terms: StringTable) -> np.ndarray:
    """`is_punctuation` of each term, bool (V,). Only terms without an ASCII letter or digit are decoded."""
    alphanumeric = np.array([byte < 0x80 and chr(byte).isalnum() for byte in range(256)])[terms.utf8]
    found = np.ones(len(terms), dtype=bool)
    found[np.searchsorted(terms.offsets, np.flatnonzero(alphanumeric), side="right") - 1] = False
    rest = np.flatnonzero(found)
    found[rest] = is_punctuation([terms[i] for i in rest.tolist()])
    return found


def rows_of_punctuation(index: Index) -> np.ndarray:
    """int64, ascending: the documents of an index whose words, if it has any, are all punctuation."""
    others = np.flatnonzero(~punctuation_terms(index.terms)[index.word_ids.values])
    bounds = index.word_ids.indptr
    return np.flatnonzero(np.searchsorted(others, bounds[1:]) == np.searchsorted(others, bounds[:-1]))


def as_bits(flags: np.ndarray) -> np.ndarray:
    """uint64 (n // 64 + 1,): bit ``i % 64`` of number ``i // 64`` is ``flags[i]``, bool (n,)."""
    padded = np.zeros(64 * (len(flags) // 64 + 1), dtype=bool)
    padded[: len(flags)] = flags
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)
