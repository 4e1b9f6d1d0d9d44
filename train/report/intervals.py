"""Scores by seed -> means and 95 % intervals by Student's t, paired by seed; Holm's correction of many comparisons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

LEVEL = 0.95
MOST_UNCORRECTED = 10  # comparisons; of more, one below p = 0.05 is to be expected by chance


class Comparison(NamedTuple):
    """A score of n seeds under two conditions, in the unit of the scores.

    Attributes:
        without: mean of the reference.
        with_it: mean of the other condition.
        difference: mean over seeds of (with_it - without). All below are about it, and NaN for one seed.
        deviation: standard deviation of the sample (n - 1).
        low: lower end of the 95 % interval by Student's t, which is honest about few seeds.
        high: upper end.
        p: of the two-sided paired t-test.
    """

    n: int
    without: float
    with_it: float
    difference: float
    deviation: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan


def compare(without: Mapping[Any, float], with_it: Mapping[Any, float]) -> Comparison | None:
    """The comparison of two conditions' scores by seed, over the seeds that both have; None if there are none."""
    seeds = [seed for seed in with_it if seed in without]
    if not seeds:
        return None
    first, second = (np.array([scores[seed] for seed in seeds]) for scores in (without, with_it))
    n, difference, means = len(seeds), float((second - first).mean()), (float(first.mean()), float(second.mean()))
    if n == 1:
        return Comparison(n, *means, difference)
    from scipy.special import stdtr, stdtrit  # scipy.stats takes a second to import

    deviation = float((second - first).std(ddof=1))
    error = deviation / math.sqrt(n)
    reach = float(stdtrit(n - 1, (1 + LEVEL) / 2)) * error
    p = 2 * float(stdtr(n - 1, -abs(difference) / error)) if error else float(not difference)
    return Comparison(n, *means, difference, deviation, difference - reach, difference + reach, p)


def holm(values: Sequence[float]) -> np.ndarray:
    """The p values of one table as Holm's step-down method corrects them, where the table has more than ten.

    Args:
        values: p of each comparison; NaN of one with one seed.

    Returns:
        float64 (n,); NaN of one with one seed, and of all where there are no more than ten.
    """
    p = np.array(values, np.float64)
    known = np.flatnonzero(~np.isnan(p))
    if len(known) <= MOST_UNCORRECTED:
        return np.full(len(p), np.nan)
    order = known[np.argsort(p[known])]
    p[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1)
    return p
