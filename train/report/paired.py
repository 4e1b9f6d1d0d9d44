"""Paired differences of scores by seed: their mean, deviation, test and interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95


@dataclass(frozen=True)
class Comparison:
    """A score of n seeds under two conditions; all but p in the unit of the scores.

    difference: the mean over seeds of (with - without); deviation: of these differences (n - 1); low, high: the mean's
    95 % interval by Student's t, which is honest about few seeds; p: of the two-sided paired t-test.
    """

    n: int
    without: float
    with_it: float
    difference: float
    deviation: float
    low: float
    high: float
    p: float


def compare(without: Mapping[str, float], with_it: Mapping[str, float]) -> Comparison | None:
    """The comparison over the seeds that both have; None if there are none. Keys are seeds."""
    from scipy import stats  # takes a second, and reports without a baseline need none

    seeds = [seed for seed in with_it if seed in without]
    if not seeds:
        return None
    first, second = (np.array([scores[seed] for seed in seeds]) for scores in (without, with_it))
    differences = second - first
    n, mean = len(seeds), float(differences.mean())
    deviation = low = high = p = math.nan
    if n > 1:
        deviation = float(differences.std(ddof=1))
        p = float(stats.ttest_rel(second, first).pvalue)
        half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * deviation / math.sqrt(n)
        low, high = mean - half, mean + half
    return Comparison(n, float(first.mean()), float(second.mean()), mean, deviation, low, high, p)
