"""User-defined augmentations: functions that Numba compiles, so that they run without the GIL.

`draw64` returns the same random bits as una_fast/_kernels/draws/random.pxd. Its constants are 64-bit unsigned integers,
because Numba converts a mix of signed and unsigned integers to floats.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from una_fast._kernels.draws.custom import CustomRows
from una_fast.augment.base import KernelAugmentation, check_choices
from una_fast.augment.split_sentences import SplitSentences
from una_fast.errors import InputError, integer
from una_fast.imports import import_object, naming_extras
from una_fast.index.index import Index
from una_fast.index.scores import inverse_document_frequency

with naming_extras():
    from numba import njit, types
    from numba.core.ccallback import CFunc

TRIES = 64  # how many candidates rejection sampling proposes, before one is drawn by cumulative weights
LOW_32 = np.uint64(2**32 - 1)
GAMMA, NUMBERS = np.uint64(0x9E3779B97F4A7C15), np.uint64(128)  # 128 draws for each position
ONE, N11, N27, N30, N31, N32 = (np.uint64(n) for n in (1, 11, 27, 30, 31, 32))
FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

ROW = types.int64(
    types.CPointer(types.int32),  # ids
    types.int64,  # n
    types.uint64,  # key
    types.CPointer(types.float64),  # idf
    types.CPointer(types.float64),  # max_tfidf
    types.CPointer(types.int64),  # document_frequency
    types.int64,  # n_terms
    types.CPointer(types.int32),  # out
)


@njit
def draw64(key: np.uint64, position: int, number: int) -> np.uint64:
    """Return the 64 random bits of draw number `number` (0 to 127) at `position` in the row with the key `key`."""
    x = key + (np.uint64(position) * NUMBERS + np.uint64(number) + ONE) * GAMMA
    x = (x ^ (x >> N30)) * FACTORS[0]
    x = (x ^ (x >> N27)) * FACTORS[1]
    return x ^ (x >> N31)


@njit
def uniform(bits: np.uint64) -> float:
    """Turn 64 random bits into a number, uniform in [0, 1)."""
    return float(bits >> N11) * 2.0**-53


@njit
def below(bits: np.uint64, n: int) -> np.int64:
    """Turn 64 random bits into an integer, uniform over 0 .. n - 1, for n < 2**32."""
    width = np.uint64(n)
    return np.int64(((bits >> N32) * width + ((bits & LOW_32) * width >> N32)) >> N32)


@njit
def window(term: int, score: float, radius: int, max_tfidf: Any, n_terms: int) -> tuple[int, int]:
    """Return (start, stop): the ids ``start .. stop - 1`` are at most `radius` ranks away from the word `term`.

    An unseen word (``term >= n_terms``) gets the rank of a term with the tf-idf `score`. Other words need no `score`.
    max_tfidf, n_terms: as in `numba_augmentation`.
    """
    if term < n_terms:
        return max(0, term - radius), min(n_terms, term + 1 + radius)
    low, high = 0, n_terms
    while low < high:
        middle = (low + high) // 2
        if max_tfidf[middle] < score:
            high = middle
        else:
            low = middle + 1
    return max(0, low - radius), min(n_terms, low + radius)


@njit
def sample(key: np.uint64, position: int, weights: Any, start: int, stop: int, excluded: int) -> int:
    """Draw one of the ids ``start .. stop - 1`` except `excluded`, with a probability proportional to ``weights[id]``.

    Returns -1 if no id qualifies. `sample` uses the draws 1 to 65 at `position`: 64 for rejection sampling, and the
    last for a search in the cumulative weights.

    weights: one weight per id, at least 0, in descending order, such as `max_tfidf`. If all weights from `start` to
    ``stop - 1`` are 0, the draw is uniform.
    """
    if start >= stop:
        return -1
    highest = weights[start >> 6 << 6]  # an upper bound; the first candidate is nearly always accepted
    width = np.uint64(stop - start)
    for number in range(1, TRIES + 1):
        bits = draw64(key, position, number)
        candidate = start + int(below(bits, stop - start))
        if candidate != excluded and (highest == 0.0 or uniform(bits * width) * highest < weights[candidate]):
            return candidate
    return _search(draw64(key, position, TRIES + 1), weights, start, stop, excluded)


@njit
def _search(bits: np.uint64, weights: Any, start: int, stop: int, excluded: int) -> int:
    total, n_candidates, last = 0.0, 0, -1
    for j in range(start, stop):
        if j != excluded:
            total += weights[j]
            n_candidates += 1
    target = uniform(bits) * total if total > 0.0 else float(below(bits, n_candidates))
    for j in range(start, stop):
        weight = weights[j] if total > 0.0 else 1.0
        if j != excluded and weight > 0.0:
            last = j
            target -= weight
            if target < 0.0:
                break
    return last


def numba_augmentation(draw_row: CFunc) -> Callable[..., NumbaAugmentation]:
    """Make an augmentation from `draw_row`, a compiled function that augments one row.

    The augmentation calls it on several threads.

    Args:
        draw_row: a function decorated with ``@numba.cfunc(ROW)``, with these arguments:

            ids: int32 (n,), the ids of the row's words. A term's id is its rank by `max_tfidf`, highest first. An id of
                `n_terms` or more is an unseen word.
            n: the number of words in the row, at least 1.
            key: uint64, the row's key for `draw64`. It depends only on the seed, epoch, sample index and row.
            idf, max_tfidf, document_frequency: float64, float64 and int64, each indexed by id. An unseen word has
                document frequency 1, the corresponding idf, and the median `max_tfidf` of the rarest terms.
            n_terms: the number of terms in the index.
            out: int32 (2 n,), receives the new ids. Each must be the id of a term, or one of `ids`.

            The function returns how many ids it wrote: 1 to 2 n, or exactly n if surface="kept".

    Returns:
        A function with the arguments of `NumbaAugmentation`. The training option --augment accepts it as MODULE:NAME.

    Raises:
        InputError: `draw_row` is not decorated with ``@numba.cfunc(ROW)``.
    """
    if not isinstance(draw_row, CFunc) or draw_row._sig != ROW:  # type: ignore[attr-defined]
        raise InputError(
            f"numba_augmentation: got {draw_row!r}: decorate the function with @numba.cfunc(ROW), where ROW is "
            "una_fast.augment.numba.ROW"
        )
    return partial(NumbaAugmentation, draw_row=draw_row)


class NumbaAugmentation(KernelAugmentation):
    """An augmentation that runs a user-defined compiled function. Use `numba_augmentation` to make one.

    All arguments except `draw_row` are as in `Augmenter`, which draws the same random numbers with the same seed. With
    surface="paper", a row may become longer or shorter.

    Raises:
        InputError: a setting is out of range, or `draw_row` writes an invalid id or too few or too many ids.
    """

    training_options = ("surface",)

    def __init__(
        self,
        index: Index,
        *,
        draw_row: CFunc,
        seed: int = 42,
        tokenizer: Any = None,
        surface: Literal["kept", "paper"] = "kept",
        n_jobs: int | None = None,
    ):
        check_choices(NumbaAugmentation.__init__, locals())
        make_kernel = partial(custom_rows, index, draw_row, integer("seed", seed) % 2**64, surface == "kept")
        settings: dict[str, Any] = {"seed": seed, "tokenizer": tokenizer, "surface": surface, "n_jobs": n_jobs}
        super().__init__(index, make_kernel, **settings, draw_row=draw_row)


def custom_rows(index: Index, draw_row: CFunc, seed: int, keeps_length: bool, source: SplitSentences) -> CustomRows:
    """Make the kernel that augments the rows of `source` with `draw_row`. keeps_length: see `CustomRows`."""
    tables = [index.idf, index.max_tfidf, index.document_frequency]
    if n_unseen := len(source.unseen):
        rarest = index.max_tfidf[index.document_frequency == index.document_frequency.min()]
        of_unseen = float(inverse_document_frequency(1, index.n_documents)), np.median(rarest), 1
        tables = [np.append(table, [value] * n_unseen) for table, value in zip(tables, of_unseen, strict=True)]
    (idf, max_tfidf, frequency), streams = tables, None if source.are_documents else source.hashes
    return CustomRows(source.words, draw_row, keeps_length, idf, max_tfidf, frequency, index.n_terms, seed, streams)


def _compiled(path: str) -> CFunc:
    """Import a compiled function. path: "module:name", of a function or of what `numba_augmentation` made."""
    named: Any = import_object(path)
    compiled: CFunc = named.keywords["draw_row"] if isinstance(named, partial) else named
    return compiled


# Spawned DataLoader workers unpickle the augmentation. Its compiled function is pickled by name.
copyreg.pickle(CFunc, lambda function: (_compiled, (f"{function.__wrapped__.__module__}:{function.__qualname__}",)))
