"""Comparisons paired by seed equal scipy's t-test."""

import math

import numpy as np
import pytest
from scipy import stats

from train.report.runs import compare


@pytest.mark.parametrize("n", [2, 3, 10])
def test_differences_are_paired_by_seed(n: int) -> None:
    first, second = np.random.default_rng(n).normal(size=(2, n))
    without, with_it = ({str(seed): float(x) for seed, x in enumerate(scores)} for scores in (first, second))
    pair = compare({**without, "of no use": 0.0}, dict(reversed(with_it.items())))
    test = stats.ttest_rel(second, first)
    assert pair is not None and pair.n == n
    assert (pair.without, pair.with_it) == (pytest.approx(first.mean()), pytest.approx(second.mean()))
    assert pair.difference == pytest.approx((second - first).mean())
    assert pair.deviation == pytest.approx((second - first).std(ddof=1))
    assert (pair.p, pair.low, pair.high) == pytest.approx((test.pvalue, *test.confidence_interval(0.95)))


def test_one_seed_has_no_interval_and_equal_differences_one_of_no_length() -> None:
    assert compare({"1": 0.5}, {"2": 0.5}) is None
    one = compare({"42": 70.0}, {"42": 70.5})
    assert one is not None and one.difference == 0.5 and math.isnan(one.p) and math.isnan(one.low)
    for step, p in ((0.25, 0.0), (0.0, 1.0)):
        pair = compare({"1": 0.5, "2": 0.25}, {"1": 0.5 + step, "2": 0.25 + step})
        assert pair is not None and (pair.low, pair.high, pair.p) == (step, step, p)
