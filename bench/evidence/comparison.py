"""Paired differences of scores by seed: their mean, deviation, test and interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

BOOTSTRAPS = 10_000
BOOTSTRAP_SEED = 0
LEVEL = 0.95


@dataclass(frozen=True)
class Comparison:
    """A score of n seeds under two conditions; all but p in the unit of the scores.

    difference: the mean over seeds of (with - without); deviation: of these differences (n - 1); low, high: their
    mean's 95 % bootstrap interval (percentiles); p: of the two-sided paired t-test.
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
        rng = np.random.default_rng(BOOTSTRAP_SEED)
        found = stats.bootstrap(
            (differences,), np.mean, n_resamples=BOOTSTRAPS, confidence_level=LEVEL, method="percentile", rng=rng
        ).confidence_interval
        low, high = float(found.low), float(found.high)
    return Comparison(n, float(first.mean()), float(second.mean()), mean, deviation, low, high, p)
