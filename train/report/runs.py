"""Folders of runs -> their settings, curves and scores -> groups over seeds -> differences paired by seed, with 95%
intervals by Student's t -> the table of scores that the report, `--seeds` and `una-fast compare` show.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from train.config import compared
from train.evaluation.tasks.registry import KINDS, TASKS, measures, suite
from train.record.folder import DEV, DEV_LAST, EVALUATION, METRICS, SUMMARY, dev_name, read_json
from una_fast.errors import InputError

STS_AVERAGE = KINDS["sts"].average
DEV_START = "dev_start/"  # before the name of the dev file: the score before training
BELOW = ("", "*/", "*/*/", "runs/*/*/")  # where a folder has runs: itself, seeds, a comparison, tables of the paper
LOSSES = ("loss without negatives", "loss with negatives")  # curves: a step with negatives has twice the candidates
UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError)  # from a file of another program
LEVEL = 0.95


@dataclass(frozen=True)
class RunRecord:
    """The results of a run."""

    name: str
    folder: Path
    settings: dict[str, Any]  # its options, as in run.json
    summary: dict[str, Any]  # all of run.json
    # value by step of what metrics.jsonl records, the loss by LOSSES, and "dev" (a fraction)
    curves: dict[str, dict[int, float]]
    scores: dict[str, float]  # by name, as fractions; an undefined one is absent

    @property
    def seed(self) -> Any:
        """The run's seed."""
        return self.settings.get("seed")


def read_run(folder: Path, name: str | None = None) -> RunRecord:
    """Read one run's folder. Raises InputError if run.json is missing, or a file has the wrong format."""
    summary, evaluation = read_json(folder / SUMMARY), folder / EVALUATION
    try:
        settings = dict(summary["settings"])
        scores, dev = _defined(summary.get("scores", {})), dev_name(settings.get("dev"))
        scores |= _defined({DEV_START + dev: summary.get("progress", {}).get("start_score")})
        scores |= read_evaluation(evaluation) if evaluation.is_file() else {}
        return RunRecord(name or folder.name, folder, settings, summary, _read_curves(folder / METRICS, dev), scores)
    except UNREADABLE as error:
        files = f"{SUMMARY}, {METRICS} or {EVALUATION}"
        raise InputError(f"{folder}: {files} cannot be read: {error!r:.200}") from error


def _read_curves(path: Path, dev: str) -> dict[str, dict[int, float]]:
    """Read the curves of metrics.jsonl, except lines that a kill has cut short. dev: the name of the dev file."""
    curves: dict[str, dict[int, float]] = {}
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        with suppress(*UNREADABLE):
            record = json.loads(line)
            step, names = record.pop("step"), {DEV + dev: "dev", "loss": LOSSES[bool(record.get("negatives"))]}
            for name, value in _defined(record).items():
                curves.setdefault(names.get(name, name), {})[step] = value
    return curves


def _defined(scores: Mapping[str, float | None]) -> dict[str, float]:
    """The scores that are numbers; an undefined one is null."""
    return {name: float(score) for name, score in scores.items() if score is not None and not math.isnan(score)}


def read_evaluation(path: Path) -> dict[str, float]:
    """Read the scores of evaluation.json, as fractions by name, and the average of each complete suite."""
    content = read_json(path)
    scores: dict[str, float] = {}
    for kind, row in KINDS.items():
        of_kind = {task: score / row.unit for task, score in _defined(measures(kind, content)).items()}
        scores |= of_kind
        if row.average and {*of_kind} == {*suite(kind)}:
            scores[row.average] = sum(of_kind.values()) / len(of_kind)
    return scores


def title(score: str) -> str:
    """The name of a score at the head of a table."""
    for prefix, when in ((DEV, "best"), (DEV_LAST, "last"), (DEV_START, "start")):
        if score.startswith(prefix):
            return f"{score.removeprefix(prefix)}, {when}"
    return TASKS[score].title if score in TASKS else score


def unimproved_note(runs: Iterable[RunRecord]) -> str:
    """A sentence about the runs whose dev score never exceeded that of the initial encoder, or ""."""
    ended = ((run.name, run.summary.get("progress", {})) for run in runs)
    names = ", ".join(name for name, progress in ended if progress.get("best_step") == 0 and progress["step"])
    return names and (
        f"No step beat the dev score before training in {names}: best/ is the model that was given, and its scores on "
        "test tasks are that model's. Compare the dev score after the last step; last/ is the trained encoder."
    )


def find_runs(folders: Iterable[Path]) -> list[RunRecord]:
    """Find the runs in `folders` and, by BELOW, in folders inside. Raises InputError for a folder without a run."""
    paths: dict[Path, None] = {}
    for folder in folders:
        inside = [path.parent.resolve() for below in BELOW for path in sorted(folder.glob(f"{below}{SUMMARY}"))]
        if not inside:
            what = f"contains no run (no {SUMMARY} in it or in its folders)" if folder.is_dir() else "no such folder"
            raise InputError(f"{folder}: {what}")
        paths |= dict.fromkeys(inside)
    root = os.path.commonpath([path.parent for path in paths])
    return [read_run(path, os.path.relpath(path, root)) for path in paths]


class Comparison(NamedTuple):
    """A score of n seeds under two conditions, in the unit of the scores."""

    n: int
    without: float  # mean of the reference
    with_it: float  # mean of the other condition
    difference: float  # mean over seeds of with_it - without; all below are about it, and NaN for one seed
    deviation: float = math.nan  # standard deviation of the sample (n - 1)
    low: float = math.nan  # ends of the 95 % interval by Student's t
    high: float = math.nan
    p: float = math.nan  # of the two-sided paired t-test


def compare(without: Mapping[Any, float], with_it: Mapping[Any, float]) -> Comparison | None:
    """Compare the scores of two conditions by seed, over the seeds that both have; None if there are none."""
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


@dataclass(frozen=True)
class Group:
    """One or more runs with equal settings except the seed. label: a unique name."""

    label: str
    runs: list[RunRecord]

    def by_seed(self, name: str) -> dict[str, float]:
        """A score by seed, of the runs that have it; runs with the same seed are averaged."""
        scores: dict[str, list[float]] = {}
        for run in self.runs:
            if name in run.scores:
                scores.setdefault(str(run.seed), []).append(run.scores[name])
        return {seed: fmean(of_seed) for seed, of_seed in scores.items()}

    def compared(self, reference: Group | None = None) -> dict[str, Comparison]:
        """Compare every score with the reference's, paired by seed; without a reference, with 0."""
        pairs = {}
        for name in dict.fromkeys(name for run in self.runs for name in run.scores):
            scores = self.by_seed(name)
            if pair := compare(reference.by_seed(name) if reference else dict.fromkeys(scores, 0.0), scores):
                pairs[name] = pair
        return pairs


def group_runs(runs: Sequence[RunRecord]) -> list[Group]:
    """Group runs with equal `compared` settings, in order of appearance.

    A group is named after the folder of its runs, or after its runs if other groups have the same folder.
    """
    members: dict[str, list[RunRecord]] = {}
    for run in runs:
        members.setdefault(json.dumps(compared(run.settings), sort_keys=True, default=str), []).append(run)
    places = [Path(os.path.commonpath([run.folder for run in group])) for group in members.values()]
    root = os.path.commonpath([place.parent for place in places])
    return [
        Group(os.path.relpath(place, root) if places.count(place) == 1 else ", ".join(run.name for run in group), group)
        for place, group in zip(places, members.values(), strict=True)
    ]


def differing_settings(groups: Sequence[Group]) -> list[str]:
    """Names of the `compared` settings that differ between groups."""
    settings = [group.runs[0].settings for group in groups]
    names = dict.fromkeys(name for of in settings for name in compared(of))
    return [name for name in names if len({json.dumps(of.get(name), default=str) for of in settings}) > 1]


class Row(NamedTuple):
    """A row of the table: the number of its group, "run", "mean" (of the runs) or "difference", and its cells."""

    group: int
    kind: str
    cells: list[str]


def score_table(groups: Sequence[Group], baseline: Group | None = None) -> tuple[list[str], list[Row]]:
    """The head and the rows of the table; scores × 100.

    Columns are a name, the seed or the number of runs, all scores, and the settings in which groups differ. Rows are a
    group's runs, their mean ± deviation, and the differences to the baseline, with 95 % intervals.
    """
    settings = differing_settings(groups)
    names = list(dict.fromkeys(name for group in groups for run in group.runs for name in run.scores))
    rows = []
    for i, group in enumerate(groups):
        lines = [("run", run.name, f"seed {run.seed}", Group("", [run]).compared()) for run in group.runs]
        label = f"{len(lines)} runs" if len(lines) > 1 else lines.pop()[2]
        lines.append(("mean", group.label, label, group.compared()))
        if baseline and group is not baseline and (pairs := group.compared(baseline)):
            lines.append(("difference", f"difference to {baseline.label}", "", pairs))
        shown = [short(group.runs[0].settings.get(name, "-")) for name in settings]
        for kind, name, about, pairs in lines:
            cells = [_cell(kind, pairs[score]) if score in pairs else "-" for score in names]
            rows.append(Row(i, kind, [name, about, *cells, *(shown if kind == "mean" else [""] * len(shown))]))
    return ["", "runs", *map(title, names), *settings], rows


def _cell(kind: str, pair: Comparison) -> str:
    if kind == "difference":
        interval = f" ({100 * pair.low:+.2f} to {100 * pair.high:+.2f})" if pair.n > 1 else ""
        return f"{100 * pair.difference:+.2f}{interval}"
    return f"{100 * pair.with_it:.2f}" + (f" ± {100 * pair.deviation:.2f}" if pair.n > 1 else "")


def short(setting: Any) -> str:
    """A setting in short form: the file name of a path."""
    values = setting if isinstance(setting, list) else [setting]
    return ", ".join(Path(value).name if isinstance(value, str) else str(value) for value in values)
