"""The settings of an augmenter, checked, and the law of its draws that they make with an index."""

from __future__ import annotations

import math
import operator

import numpy as np

from una_fast._kernels.draws.law import Law
from una_fast.arrays import ID
from una_fast.augment.windows import score_windows
from una_fast.errors import InputError
from una_fast.index.index import Index

CHOICES = {
    "select": ("tfidf", "random"),
    "replace": ("tfidf", "random"),
    "variant": ("paper", "released"),
    "window": ("rank", "score"),
}


def make_law(
    index: Index, *, beta: float, radius: float, seed: int, select: str, replace: str, variant: str, window: str
) -> Law:
    """The law of an augmenter, whose docstring says what each setting means.

    Raises:
        InputError: a setting out of its range, or an index in which nothing could be replaced.

    """
    for name, value in (("select", select), ("replace", replace), ("variant", variant), ("window", window)):
        _check_choice(name, value)
    _check_beta(beta)
    _check_radius(radius, window)
    _check_index(index)
    by_score = window == "score"
    bounds = score_windows(index.max_tfidf, radius) if by_score else (np.empty(0, ID),) * 2
    return Law(
        index.idf,
        index.max_tfidf,
        *bounds,
        unseen_idf=math.log(index.n_documents),
        beta=beta,
        radius=radius if by_score else min(radius, index.n_terms),  # ranks must fit an int64
        seed=operator.index(seed) % 2**64,
        by_score=by_score,
        released=variant == "released",
        random_select=select == "random",
        random_replace=replace == "random",
    )


def _check_choice(name: str, value: str) -> None:
    if value not in CHOICES[name]:
        raise InputError(f"{name}={value!r}: must be {' or '.join(map(repr, CHOICES[name]))}")


def _check_beta(beta: float) -> None:
    if not 0 <= beta <= 1:  # NaN fails too
        raise InputError(f"beta={beta}: it is a mean probability, so it must be in [0, 1]; the paper takes 0.5")


def _check_radius(radius: float, window: str) -> None:
    if window == "rank" and not (radius >= 1 and radius % 1 == 0):  # infinity and NaN fail too
        raise InputError(f"radius={radius}: a number of ranks must be an integer of at least 1; the paper takes 4000")
    if window == "score" and not 0 < radius < math.inf:
        raise InputError(f"radius={radius}: a distance in score must be finite and above 0")


def _check_index(index: Index) -> None:
    if not isinstance(index, Index):
        raise InputError(f"index: got {index!r}, and an Index is needed: una_fast.load_index(folder) opens a saved one")
    if index.n_terms < 2:
        raise InputError(
            f"the vocabulary has one term ({index.terms[0]!r}), and nothing to replace it by: give a larger corpus"
        )
