"""Series of points -> smoothed, averaged, thinned and binned series."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from train.report.records import Point
from train.report.runs import Spread

MOST_POINTS = 300  # of a line: more cannot be seen, and would enlarge the page by megabytes
WINDOW_SHARE = 1 / 25  # share of a curve's points that are averaged for a smoothed point
LEAST_WINDOW = 5
GOLD_BINS = 5


def smooth(points: Sequence[Point]) -> list[Point]:
    """Means of the finite values in a window centred on each point; values outside the window have no influence.

    The window is cut at the ends, so the first and the last point average half as many values.
    """
    finite = [(x, y) for x, y in points if math.isfinite(y)]
    half = max(LEAST_WINDOW, round(len(finite) * WINDOW_SHARE)) // 2
    sums = np.cumsum([0.0, *(y for _, y in finite)])
    at = np.arange(len(finite))
    low, high = np.maximum(at - half, 0), np.minimum(at + half + 1, len(finite))
    means = (sums[high] - sums[low]) / np.maximum(high - low, 1)
    return [(x, float(mean)) for (x, _), mean in zip(finite, means, strict=True)]


def mean_and_band(curves: Sequence[Sequence[Point]]) -> tuple[list[Point], list[tuple[float, float, float]]]:
    """Mean and mean ± deviation of several curves, at the x that all of them have."""
    by_x = [dict(curve) for curve in curves]
    common = sorted(set(by_x[0]).intersection(*by_x[1:]))
    spreads = [(x, Spread.of([curve[x] for curve in by_x])) for x in common]
    return (
        [(x, spread.mean) for x, spread in spreads],
        [(x, spread.mean - spread.deviation, spread.mean + spread.deviation) for x, spread in spreads],
    )


def thin(points: Sequence[tuple[float, ...]], most: int = MOST_POINTS) -> list[tuple[float, ...]]:
    """At most `most` points: the means of consecutive parts of nearly equal size."""
    if len(points) <= most:
        return list(points)
    bounds = [len(points) * i // most for i in range(most + 1)]
    parts = [points[start:stop] for start, stop in itertools.pairwise(bounds)]
    return [tuple(sum(values) / len(part) for values in zip(*part, strict=True)) for part in parts]


def binned_means(points: Sequence[Point], bins: int = GOLD_BINS) -> list[Point]:
    """Means of the points in each of `bins` equal parts of the range of x; parts without points are left out."""
    low, high = min(x for x, _ in points), max(x for x, _ in points)
    width = high / bins - low / bins or 1.0
    parts: dict[int, list[Point]] = {}
    for x, y in points:
        if math.isfinite(y):
            parts.setdefault(min(int((x - low) / width), bins - 1), []).append((x, y))
    return [
        (sum(x for x, _ in part) / len(part), sum(y for _, y in part) / len(part)) for _, part in sorted(parts.items())
    ]
