"""How far the cosines of pairs that mean the same lie above the cosines of pairs that do not."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.floating]


def auc(same: Floats, other: Floats) -> float:
    """Chance that a pair of `same` has a higher cosine than a pair of `other`; equal cosines count half.

    same: (n,), other: (m,). NaN if either is empty.
    """
    n, m = len(same), len(other)
    if not n or not m:
        return math.nan
    ranks = rankdata(np.concatenate([same, other]))[:n]
    return float((ranks.sum() - n * (n + 1) / 2) / (n * m))


def recall(same: Floats, other: Floats, share: float) -> float:
    """Share of `same` above the lowest threshold that at most `share` of `other` lie above.

    The threshold is the (floor(share * m) + 1)-th highest of `other`; "above" is strict. same: (n,), other: (m,);
    share: a fraction below 1. NaN if either is empty.
    """
    if not len(same) or not len(other):
        return math.nan
    threshold = np.sort(other)[-(math.floor(share * len(other)) + 1)]
    return float(np.mean(same > threshold))
