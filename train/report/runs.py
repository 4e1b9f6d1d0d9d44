"""Reads the folders of runs, groups the runs that differ only in the seed, and compares the scores of the groups.

`score_table` makes the table that the report, `--seeds` and `una-fast compare` show.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from train.config import compared_settings
from train.evaluation.tasks.registry import KINDS, TASKS, measures, per_query, suite
from train.record.folder import DEV, DEV_LAST, DEV_START, EVALUATION, METRICS, RUN, SUMMARY, VERIFIER, dev_name, is_own
from una_fast.errors import InputError, warn_user
from una_fast.storage.files import read_json

STS_AVERAGE = KINDS["sts"].average
# where a folder contains runs: the folder itself, one run per seed, conditions and seeds, tables of the paper
PATTERNS = ("", "*/", "*/*/", "runs/*/*/")
LOSS_CURVES = ("loss without negatives", "loss with negatives")  # two curves: negatives double the candidates of a step
UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError)  # errors when a file is from another program
LEVEL = 0.95


@dataclass(frozen=True)
class RunRecord:
    """What the files of a run contain."""

    name: str
    folder: Path
    settings: dict[str, Any]  # its options, as in run.json
    summary: dict[str, Any]  # all of run.json
    curves: dict[str, dict[int, float]]  # name (a key of metrics.jsonl, "dev", or one of LOSS_CURVES) -> values by step
    scores: dict[str, float]  # by name, as fractions, without undefined ones
    queries: dict[str, dict[str, float]] = field(default_factory=dict)  # nDCG@10 by retrieval set and query

    @property
    def seed(self) -> Any:
        """The run's seed."""
        return self.settings.get("seed")


def read_run(folder: Path, name: str | None = None) -> RunRecord:
    """Read the folder of one run. name: the run's name in reports, by default the folder's name."""
    summary, evaluation = read_json(folder / SUMMARY), folder / EVALUATION
    try:
        settings = dict(summary["settings"])
        scores, dev = _defined(summary.get("scores", {})), dev_name(settings.get("dev"))
        scores |= _defined({DEV_START + dev: summary.get("progress", {}).get("start_score")})
        tests = read_json(evaluation) if evaluation.is_file() else {}
        scores |= read_scores(tests) if tests else {}
        curves, queries = _read_curves(folder / METRICS, dev), per_query(tests)
        return RunRecord(name or folder.name, folder, settings, summary, curves, scores, queries)
    except UNREADABLE as error:
        files = f"{SUMMARY}, {METRICS} or {EVALUATION}"
        raise InputError(f"{folder}: {files} cannot be read: {error!r:.200}") from error


def _read_curves(path: Path, dev: str) -> dict[str, dict[int, float]]:
    """Read the `curves` of a `RunRecord` from metrics.jsonl. dev: the name of the dev file."""
    curves: dict[str, dict[int, float]] = {}
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        with suppress(*UNREADABLE):  # a kill leaves an incomplete line
            record = json.loads(line)
            step, names = record.pop("step"), {DEV + dev: "dev", "loss": LOSS_CURVES[bool(record.get("negatives"))]}
            for name, value in _defined(record).items():
                curves.setdefault(names.get(name, name), {})[step] = value
    return curves


def _defined(scores: Mapping[str, float | None]) -> dict[str, float]:
    """Select the scores that are numbers; undefined ones are null or NaN."""
    return {name: float(score) for name, score in scores.items() if score is not None and not math.isnan(score)}


def read_scores(content: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores of evaluation.json, the `content`, as fractions, and the average of each complete suite."""
    scores: dict[str, float] = {}
    for kind, row in KINDS.items():
        of_kind = {task: score / row.unit for task, score in _defined(measures(kind, content)).items()}
        scores |= of_kind
        if row.average and {*of_kind} == {*suite(kind)}:
            scores[row.average] = sum(of_kind.values()) / len(of_kind)
    return scores


def title(score: str) -> str:
    """Return the column title of a score. "STSBenchmark" gives "STS-B", and "dev/sts-dev" gives "sts-dev, best"."""
    for prefix, when in ((DEV, "best"), (DEV_LAST, "last"), (DEV_START, "start")):
        if score.startswith(prefix):
            return f"{score.removeprefix(prefix)}, {when}"
    return TASKS[score].title if score in TASKS else score


def unimproved_note(runs: Iterable[RunRecord]) -> str:
    """Return a note about the runs whose dev score never exceeded the initial encoder's, or ""."""
    ended = ((run.name, run.summary.get("progress", {})) for run in runs)
    names = ", ".join(name for name, progress in ended if progress.get("best_step") == 0 and progress["step"])
    return names and (
        f"No step beat the dev score before training in {names}: best/ is the model before training, so its scores on "
        "test tasks do not measure the training. Compare the dev score after the last step; last/ is the trained "
        "encoder."
    )


def find_runs(folders: Iterable[Path]) -> list[RunRecord]:
    """Read all runs in `folders`, except runs of `train.verifier`.

    A folder may be one run, or contain runs at the places that PATTERNS lists.
    """
    paths: dict[Path, None] = {}
    for folder in folders:
        inside = [path.parent.resolve() for pattern in PATTERNS for path in sorted(folder.glob(f"{pattern}{SUMMARY}"))]
        if not inside:
            what = f"contains no run (no {SUMMARY} in it or in its folders)" if folder.is_dir() else "no such folder"
            raise InputError(f"{folder}: {what}")
        paths |= dict.fromkeys(inside)
    for path in [path for path in paths if is_own(path, VERIFIER)]:
        del paths[path]
        what = f"{path}: is a run of {VERIFIER}, which is not comparable with training runs"
        if not paths:
            raise InputError(f"{what}: its scores are in {SUMMARY}; give folders of {RUN}")
        warn_user(f"{what}: left out")
    root = os.path.commonpath([path.parent for path in paths])
    return [read_run(path, os.path.relpath(path, root)) for path in paths]


class Comparison(NamedTuple):
    """The comparison of a score between two conditions, paired by seed, or by query in retrieval sets.

    With one seed or query, the last four fields are NaN.
    """

    n: int  # number of seeds or queries
    without: float  # mean of the reference
    with_it: float  # mean of the other condition
    difference: float  # mean over seeds or queries of with_it - without
    deviation: float = math.nan  # sample standard deviation (n - 1) of the differences
    low: float = math.nan  # ends of the 95% interval of the difference by Student's t
    high: float = math.nan
    p: float = math.nan  # p-value of the two-sided paired t-test


def compare(without: Mapping[Any, float], with_it: Mapping[Any, float]) -> Comparison | None:
    """Compare two conditions by their scores, {seed or query: score}. Return None if they have none in common."""
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
    """One or more runs whose settings differ only in the seed."""

    label: str  # unique among the groups
    runs: list[RunRecord]

    def by_seed(self, name: str) -> dict[str, float]:
        """Return a score by seed, for the seeds that have it. Runs with the same seed are averaged."""
        return _means({str(run.seed): run.scores[name]} for run in self.runs if name in run.scores)

    def by_query(self, name: str) -> dict[str, float]:
        """Return a retrieval set's nDCG@10 by query, as the mean over the runs; {} for another score."""
        return _means(run.queries[name] for run in self.runs if name in run.queries)

    def compared(self, reference: Group | None = None) -> dict[str, Comparison]:
        """Compare each score with the same score of `reference` (if None, with 0). Return {score name: comparison}.

        Retrieval sets are compared query by query, because their queries differ more than the seeds of one training.
        """
        pairs = {}
        for name in dict.fromkeys(name for run in self.runs for name in run.scores):
            scores = self.by_seed(name)
            pair = compare(reference.by_query(name), self.by_query(name)) if reference else None
            pair = pair or compare(reference.by_seed(name) if reference else dict.fromkeys(scores, 0.0), scores)
            if pair:
                pairs[name] = pair
        return pairs


def _means(scores: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each key over the mappings that have it."""
    found: dict[str, list[float]] = {}
    for one in scores:
        for key, value in one.items():
            found.setdefault(key, []).append(value)
    return {key: fmean(values) for key, values in found.items()}


def group_runs(runs: Sequence[RunRecord]) -> list[Group]:
    """Group the runs whose `train.config.compared_settings` are equal.

    A group's label is the folder that contains its runs, or the names of its runs if another group has the same folder.
    """
    members: dict[str, list[RunRecord]] = {}
    for run in runs:
        members.setdefault(json.dumps(compared_settings(run.settings), sort_keys=True, default=str), []).append(run)
    folders = [Path(os.path.commonpath([run.folder for run in group])) for group in members.values()]
    root = os.path.commonpath([folder.parent for folder in folders])
    return [
        Group(os.path.relpath(at, root) if folders.count(at) == 1 else ", ".join(run.name for run in group), group)
        for at, group in zip(folders, members.values(), strict=True)
    ]


def differing_settings(groups: Sequence[Group]) -> list[str]:
    """Return the names of the compared settings that differ between groups."""
    settings = [group.runs[0].settings for group in groups]
    names = dict.fromkeys(name for of in settings for name in compared_settings(of))
    return [name for name in names if len({json.dumps(of.get(name), default=str) for of in settings}) > 1]


class TableRow(NamedTuple):
    """A row of the table of scores."""

    group: int
    kind: str  # "run", "mean" of the group's runs, or "difference" to the baseline
    cells: list[str]


def score_table(groups: Sequence[Group], baseline: Group | None = None) -> tuple[list[str], list[TableRow]]:
    """Return the column titles and the rows of the table of scores × 100.

    A group of several runs has one row per run. Each group has a row with means and standard deviations, and each group
    except the baseline also has a row with its differences to the baseline. The last columns are the settings that
    differ between groups.
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
            rows.append(TableRow(i, kind, [name, about, *cells, *(shown if kind == "mean" else [""] * len(shown))]))
    return ["", "runs", *map(title, names), *settings], rows


def _cell(kind: str, pair: Comparison) -> str:
    if kind == "difference":
        interval = f" ({100 * pair.low:+.2f} to {100 * pair.high:+.2f})" if pair.n > 1 else ""
        return f"{100 * pair.difference:+.2f}{interval}"
    return f"{100 * pair.with_it:.2f}" + (f" ± {100 * pair.deviation:.2f}" if pair.n > 1 else "")


def short(setting: Any) -> str:
    """Return a setting as short text. A path becomes its file name."""
    values = setting if isinstance(setting, list) else [setting]
    return ", ".join(Path(value).name if isinstance(value, str) else str(value) for value in values)
