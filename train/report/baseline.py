"""Differences to a baseline: score by score, paired by seed if both have the seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from train.report.runs import Group, RunRecord, Spread, find_runs, group_runs
from una_fast.errors import InputError


@dataclass(frozen=True)
class Difference:
    """Mean difference of a score to the baseline's, as a fraction.

    n_pairs: number of seeds that both have; 0: there is none, and `mean` is the difference of the means.
    """

    mean: float
    deviation: float  # of the pairs' differences (n - 1); NaN for fewer than two pairs
    n_pairs: int
    values: tuple[float, ...] = ()  # of each pair


def groups_with_baseline(
    runs: Sequence[RunRecord], baseline: Path | None, notes: list[str]
) -> tuple[list[Group], Group | None]:
    """The groups of all runs, the baseline's group first, and the baseline's group (None without a baseline).

    Raises:
        InputError: the baseline holds no run, or runs of several settings.
    """
    if baseline is None:
        return group_runs(runs), None
    theirs = {run.folder for run in find_runs([baseline], notes)}
    folders = list(dict.fromkeys([*(run.folder for run in runs), *sorted(theirs)]))
    groups = group_runs(find_runs(folders))
    marked = [group for group in groups if any(run.folder in theirs for run in group.runs)]
    if len(marked) > 1:
        names = "; ".join(group.label for group in marked)
        raise InputError(f"--baseline {baseline}: holds runs of {len(marked)} settings ({names}): name one of them")
    return [*marked, *(group for group in groups if group is not marked[0])], marked[0]


def differences(group: Group, baseline: Group) -> dict[str, Difference]:
    """The difference of every score that both groups have."""
    ours, theirs = group.spreads(), baseline.spreads()
    return {name: _difference(group, baseline, name) for name in ours if name in theirs}


def _difference(group: Group, baseline: Group, name: str) -> Difference:
    ours, theirs = _by_seed(group, name), _by_seed(baseline, name)
    values = tuple(ours[seed] - theirs[seed] for seed in ours if seed in theirs)
    if not values:
        mean = group.spreads()[name].mean - baseline.spreads()[name].mean
        return Difference(mean, math.nan, 0)
    spread = Spread.of(values)
    return Difference(spread.mean, spread.deviation, spread.n, values)


def _by_seed(group: Group, name: str) -> dict[str, float]:
    """The score of each seed; for a seed with several runs, that of the first."""
    found: dict[str, float] = {}
    for run in group.runs:
        if name in run.scores:
            found.setdefault(str(run.seed), run.scores[name])
    return found
