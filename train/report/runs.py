"""Folders -> the records of their runs -> groups that differ by seed alone -> paired differences to a baseline."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from train.config.run import compared
from train.evaluation.tasks.registry import TASKS
from train.record.folder import PAPER_RUNS, SUMMARY
from train.report.records import RunRecord, read_run
from una_fast.errors import InputError

DEV_SCORES = {
    "stsb_dev": "dev, best",
    "stsb_dev_last": "dev, last",
}  # titles by name; for tasks, TASKS has them
MOST_NAMED = 3  # folders in the label of a group, at most


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation (of the sample, n - 1) of n values; the deviation of one value is NaN."""

    mean: float
    deviation: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of at least one value."""
        deviation = statistics.stdev(values) if len(values) > 1 else math.nan
        return cls(statistics.fmean(values), deviation, len(values))

    def __str__(self) -> str:
        text = f"{100 * self.mean:.2f}"
        return text if math.isnan(self.deviation) else f"{text} ± {100 * self.deviation:.2f}"


@dataclass(frozen=True)
class Group:
    """Runs of equal settings, whatever their seeds. label: short names of their folders, different for each group."""

    label: str
    runs: list[RunRecord] = field(default_factory=list)

    def spreads(self) -> dict[str, Spread]:
        """Mean and deviation over seeds of every score that a run of the group has."""
        names = dict.fromkeys(name for run in self.runs for name in run.scores)
        return {name: Spread.of([run.scores[name] for run in self.runs if name in run.scores]) for name in names}

    @property
    def start(self) -> float | None:
        """The mean dev score before the first step, as a fraction; None if no run recorded it."""
        found = [score for run in self.runs for step, score in run.dev if step == 0]
        return statistics.fmean(found) if found else None


def kept_start(runs: Iterable[RunRecord]) -> str:
    """A sentence about the runs of which no step beat the start; "" if there is none."""
    if names := [run.name for run in runs if run.kept_start]:
        return (
            f"No step beat the dev score before training in {', '.join(names)}: best/ is the model that was given, and "
            "its scores on test tasks are that model's. Compare the dev score after the last step; last/ is the "
            "trained encoder."
        )
    return ""


def score_names(groups: Sequence[Group]) -> list[str]:
    """Names of all scores, in order of appearance."""
    return list(dict.fromkeys(name for group in groups for name in group.spreads()))


def title(score: str) -> str:
    """The name of a score at the head of a table."""
    if score.startswith("mean of "):
        return f"mean of {score.count(', ') + 1} tasks"
    return DEV_SCORES.get(score) or (TASKS[score].title if score in TASKS else score)


def find_runs(folders: Iterable[Path], notes: list[str] | None = None) -> list[RunRecord]:
    """The runs of `folders` and of the folders in them (seeds of one command) that hold run.json.

    A run that cannot be read is left out, with a sentence in `notes`, unless no run can be read.

    Raises:
        InputError: a folder does not exist or holds no run, or no run can be read.
    """
    found = [run for folder in folders for run in _run_folders(folder)]
    folders_once = list(dict.fromkeys(path.resolve() for path in found))
    runs, errors = [], []
    for path, name in zip(folders_once, short_names(folders_once), strict=True):
        try:
            runs.append(read_run(path, name))
        except InputError as error:
            errors.append(error)
    if errors and not runs:
        raise errors[0]
    if notes is not None:
        notes += [f"{error}; the run is left out" for error in errors]
    return runs


def _run_folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    below = (*sorted(folder.glob(f"*/{SUMMARY}")), *sorted(folder.glob(f"{PAPER_RUNS}/*/*/{SUMMARY}")))
    found = [path.parent for path in (folder / SUMMARY, *below) if path.is_file()]
    if not found:
        raise InputError(f"{folder}: holds no run (no {SUMMARY} in it or in its folders)")
    return found


def group_runs(runs: Sequence[RunRecord]) -> list[Group]:
    """Runs with equal `compared` settings as groups, in order of appearance."""
    members: dict[str, list[RunRecord]] = {}
    for run in runs:
        members.setdefault(json.dumps(compared(run.settings), sort_keys=True, default=str), []).append(run)
    groups = list(members.values())
    return [Group(label, group) for label, group in zip(_labels(groups), groups, strict=True)]


def _labels(groups: Sequence[Sequence[RunRecord]]) -> list[str]:
    """The label of each group: its runs' folders, or for the seeds of one command the folder that holds them."""
    parents = [{run.folder.parent for run in group} for group in groups]
    owners = Counter(parent for found in parents for parent in found)
    folders = []
    for group, found in zip(groups, parents, strict=True):
        (parent, *others) = found
        one_command = not others and owners[parent] == 1 and all(run.folder.name.startswith("seed-") for run in group)
        folders.append([parent] if one_command else [run.folder for run in group])
    flat = [folder for each in folders for folder in each]
    names = dict(zip(flat, short_names(flat), strict=True))
    return [_listed([names[folder] for folder in each]) for each in folders]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def differing_settings(runs: Sequence[RunRecord]) -> list[str]:
    """Names of the `compared` settings that differ between these runs."""
    names = dict.fromkeys(name for run in runs for name in compared(run.settings))
    return [name for name in names if len({json.dumps(run.settings.get(name), default=str) for run in runs}) > 1]


def short_names(folders: Sequence[Path]) -> list[str]:
    """The shortest end of each path that no other path ends with."""
    names = []
    for folder in folders:
        for depth in range(1, len(folder.parts) + 1):
            end = folder.parts[-depth:]
            if sum(other.parts[-depth:] == end for other in folders) == 1:
                break
        names.append("/".join(end))
    return names


# --- differences to a baseline ---


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


def differences(group: Group, baseline: Group) -> dict[str, Comparison]:
    """The paired comparison of every score with the baseline's, over the seeds that both groups have."""
    found = {name: compare(_by_seed(baseline, name), _by_seed(group, name)) for name in group.spreads()}
    return {name: one for name, one in found.items() if one}


def _by_seed(group: Group, name: str) -> dict[str, float]:
    """The score of each seed; of several runs with one seed, the first counts."""
    found: dict[str, float] = {}
    for run in group.runs:
        if name in run.scores:
            found.setdefault(str(run.seed), run.scores[name])
    return found


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
