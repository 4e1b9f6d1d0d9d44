"""Folders of runs -> their settings, curves and scores -> groups that differ by seed alone -> paired differences."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from train.config.run import compared
from train.evaluation.tasks.registry import TASKS, suite
from train.record.folder import EVALUATION, METRICS, PAPER_RUNS, SCORES, SUMMARY, read_json
from una_fast.errors import InputError
from una_fast.storage.files import checksum_of, read_bytes

STS_AVERAGE = "STS average"
DEV_TITLES = {"stsb_dev": "dev, best", "stsb_dev_last": "dev, last"}  # at the head of a table
LARGEST = 1e9
MOST_NAMED = 3  # folders in the label of a group, at most
# what a file raises that another program changed: the run is then left out
UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


class Step(NamedTuple):
    """A line of metrics.jsonl about an optimiser step. Cosines are means over the batch, NaN if not recorded."""

    step: int
    loss: float
    negatives: bool
    sentences_per_second: float
    cosine_positive: float
    cosine_negative: float


@dataclass(frozen=True)
class RunRecord:
    """The results of a run. scores: by name, as fractions; an undefined one is absent. dev: (steps taken, score).

    note: what a reader has to know of the files; "" for files as the run wrote them.
    """

    name: str
    folder: Path
    settings: dict[str, Any]
    summary: dict[str, Any]
    steps: list[Step]
    dev: list[tuple[int, float]]
    scores: dict[str, float]
    note: str = ""

    @property
    def seed(self) -> Any:
        """The run's seed."""
        return self.settings.get("seed")

    @property
    def owner(self) -> Path:
        """The folder of the command that made the run."""
        return self.folder.parent if self.folder.name.startswith("seed-") else self.folder


def read_run(folder: Path, name: str | None = None) -> RunRecord:
    """The record of one run's folder.

    Raises:
        InputError: run.json is missing, or a file holds what no run writes.
    """
    summary = read_json(folder / SUMMARY)
    try:
        summary |= {name: dict(summary.get(name) or {}) for name in ("settings", "scores", "progress", "versions")}
        scores = _defined(summary["scores"])
        content = read_bytes(folder / METRICS) if (folder / METRICS).is_file() else b""
        written = (summary.get("metrics") or {}).get("xxh3_64")  # of a run that goes on, or of an earlier version: none
        steps, dev = _read_metrics(content)
    except UNREADABLE as error:
        raise InputError(f"{folder}: {SUMMARY} or {METRICS} cannot be read: {error!r:.200}") from error
    if (folder / EVALUATION).is_file():
        scores |= read_evaluation(folder / EVALUATION)
    changed = written not in (None, checksum_of([content]))
    note = f"{folder / METRICS}: was changed since the run wrote it: its figures may be wrong" if changed else ""
    return RunRecord(name or folder.name, folder, summary["settings"], summary, steps, dev, scores, note)


def _read_metrics(content: bytes) -> tuple[list[Step], list[tuple[int, float]]]:
    """Steps and dev scores in the order of steps. Damaged lines are left out: a kill cuts the last one short."""
    steps: dict[int, Step] = {}
    dev: dict[int, float] = {}
    for line in content.splitlines():
        try:
            record = json.loads(line)
            step = int(_number(record["step"]))
            if "loss" in record:
                rest = [_number(record.get(name, math.nan)) for name in Step._fields[3:]]
                steps[step] = Step(step, _number(record["loss"]), bool(record["negatives"]), *rest)
            elif record["stsb_dev"] is not None:
                dev[step] = _number(record["stsb_dev"])
        except UNREADABLE:
            continue
    return [steps[at] for at in sorted(steps)], sorted(dev.items())


def _defined(scores: Mapping[str, float | None]) -> dict[str, float]:
    """The scores that are numbers: one that is not defined is null."""
    found = {name: _number(score) for name, score in scores.items() if score is not None}
    return {name: score for name, score in found.items() if not math.isnan(score)}


def _number(value: Any) -> float:
    """`value` as a float; ValueError for one that no run writes and no figure shows."""
    if abs(found := float(value)) > LARGEST:
        raise ValueError(f"{found:g} is too large")
    return found


def read_evaluation(path: Path) -> dict[str, float]:
    """The scores of evaluation.json as fractions by name, averages included. InputError if it cannot be read."""
    content = read_json(path, SCORES)
    try:
        aggregate = content["protocol"]["aggregate"]
        accuracy = "dev_accuracy" if content["protocol"]["split"] == "dev" else "accuracy"
        sts = _defined({task: scores["spearman"][aggregate] for task, scores in content.get("sts", {}).items()})
        transfer = {task: _number(scores[accuracy]) / 100 for task, scores in content.get("transfer", {}).items()}
        near_misses = _defined(content.get("near-miss", {}))
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read: {error!r:.200}") from error
    averages = {**average(sts, "sts", STS_AVERAGE), **average(transfer, "transfer", "transfer average")}
    return {**sts, **transfer, **near_misses, **averages}


def average(scores: Mapping[str, float], kind: str, name: str) -> dict[str, float]:
    """The mean of a kind's scores, by name: `name` for the seven tasks that papers average, else one with all tasks.

    So a mean of two tasks is never in one column with a mean of seven, or with a mean of two other tasks.
    """
    if len(scores) < 2:
        return {}
    full = {*scores} == {*suite(kind)}
    return {name if full else f"mean of {', '.join(scores)}": sum(scores.values()) / len(scores)}


def title(score: str) -> str:
    """The name of a score at the head of a table."""
    if score.startswith("mean of "):
        return f"mean of {score.count(', ') + 1} tasks"
    return DEV_TITLES.get(score) or (TASKS[score].title if score in TASKS else score)


def kept_start(runs: Iterable[RunRecord]) -> str:
    """A sentence about the runs of which no step had a higher dev score than the model before training, or ""."""
    progress = {run.name: run.summary.get("progress", {}) for run in runs}
    names = [name for name, one in progress.items() if one.get("best_step") == 0 and one.get("step") != 0]
    if not names:
        return ""
    return (
        f"No step beat the dev score before training in {', '.join(names)}: best/ is the model that was given, and its "
        "scores on test tasks are that model's. Compare the dev score after the last step; last/ is the trained "
        "encoder."
    )


def find_runs(folders: Iterable[Path], notes: list[str] | None = None) -> list[RunRecord]:
    """The runs of `folders` and of the folders in them (seeds of one command) that hold run.json.

    A run that cannot be read is left out, with a sentence in `notes`, unless no run can be read.

    Raises:
        InputError: a folder does not exist or holds no run, or no run can be read.
    """
    found = list(dict.fromkeys(path.resolve() for folder in folders for path in _run_folders(folder)))
    runs, errors = [], []
    for path, name in zip(found, short_names(found), strict=True):
        try:
            runs.append(read_run(path, name))
        except InputError as error:
            errors.append(error)
    if errors and not runs:
        raise errors[0]
    if notes is not None:
        notes += [f"{error}; the run is left out" for error in errors]
        notes += [run.note for run in runs if run.note]
    return runs


def _run_folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    below = (*sorted(folder.glob(f"*/{SUMMARY}")), *sorted(folder.glob(f"{PAPER_RUNS}/*/*/{SUMMARY}")))
    found = [path.parent for path in (folder / SUMMARY, *below) if path.is_file()]
    if not found:
        raise InputError(f"{folder}: holds no run (no {SUMMARY} in it or in its folders)")
    return found


def short_names(folders: Sequence[Path]) -> list[str]:
    """The shortest end of each path that no other path ends with."""
    names = []
    for folder in folders:
        ends = (folder.parts[-depth:] for depth in range(1, len(folder.parts) + 1))
        alone = (end for end in ends if sum(other.parts[-len(end) :] == end for other in folders) == 1)
        names.append("/".join(next(alone, folder.parts)))
    return names


class Spread(NamedTuple):
    """Mean and standard deviation (of the sample, n - 1) of n values; the deviation of one value is NaN."""

    mean: float
    deviation: float
    n: int


@dataclass(frozen=True)
class Group:
    """Runs of equal settings, whatever their seeds. label: short names of their folders, different for each group."""

    label: str
    runs: list[RunRecord] = field(default_factory=list)

    def spreads(self) -> dict[str, Spread]:
        """Mean and deviation over seeds of every score that a run of the group has."""
        values: dict[str, list[float]] = {}
        for run in self.runs:
            for name, score in run.scores.items():
                values.setdefault(name, []).append(score)
        return {
            name: Spread(statistics.fmean(some), statistics.stdev(some) if len(some) > 1 else math.nan, len(some))
            for name, some in values.items()
        }

    @property
    def start(self) -> float | None:
        """The mean dev score before the first step, as a fraction; None if no run recorded it."""
        found = [score for run in self.runs for step, score in run.dev if step == 0]
        return statistics.fmean(found) if found else None


def group_runs(runs: Sequence[RunRecord]) -> list[Group]:
    """Runs with equal `compared` settings as groups, in order of appearance."""
    members: dict[str, list[RunRecord]] = {}
    for run in runs:
        members.setdefault(json.dumps(compared(run.settings), sort_keys=True, default=str), []).append(run)
    # a group is named by the folders of the commands that made it, or of its runs, where a command made others too
    shared = Counter(owner for group in members.values() for owner in {run.owner for run in group})
    folders = [
        [*dict.fromkeys(run.owner if shared[run.owner] == 1 else run.folder for run in group)]
        for group in members.values()
    ]
    names = iter(short_names([folder for some in folders for folder in some]))
    groups = []
    for some, group in zip(folders, members.values(), strict=True):
        own = [*islice(names, len(some))]
        more = f" and {len(own) - MOST_NAMED} more" if len(own) > MOST_NAMED else ""
        groups.append(Group(", ".join(own[:MOST_NAMED]) + more, group))
    return groups


def differing_settings(runs: Sequence[RunRecord]) -> list[str]:
    """Names of the `compared` settings that differ between these runs."""
    names = dict.fromkeys(name for run in runs for name in compared(run.settings))
    return [name for name in names if len({json.dumps(run.settings.get(name), default=str) for run in runs}) > 1]


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
    groups = group_runs(find_runs(dict.fromkeys([*(run.folder for run in runs), *sorted(theirs)])))
    marked = [group for group in groups if any(run.folder in theirs for run in group.runs)]
    if len(marked) > 1:
        names = "; ".join(group.label for group in marked)
        raise InputError(f"--baseline {baseline}: holds runs of {len(marked)} settings ({names}): name one of them")
    return [*marked, *(group for group in groups if group is not marked[0])], marked[0]


def differences(group: Group, baseline: Group) -> dict[str, Comparison]:
    """The paired comparison of every score with the baseline's, over the seeds that both groups have."""

    def by_seed(runs: Sequence[RunRecord], name: str) -> dict[str, float]:
        return {str(run.seed): run.scores[name] for run in runs if name in run.scores}

    found = {name: compare(by_seed(baseline.runs, name), by_seed(group.runs, name)) for name in group.spreads()}
    return {name: one for name, one in found.items() if one}


LEVEL = 0.95


class Comparison(NamedTuple):
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
    differences, deviation, low, high, p = second - first, *[math.nan] * 4
    if len(seeds) > 1:
        deviation, test = differences.std(ddof=1), stats.ttest_rel(second, first)
        p, (low, high) = test.pvalue, test.confidence_interval(LEVEL)
    figures = (first.mean(), second.mean(), differences.mean(), deviation, low, high, p)
    return Comparison(len(seeds), *map(float, figures))
