"""Folders of runs -> records; runs that differ by their seed alone -> groups with mean and deviation."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from train.config.run import compared
from train.record.folder import EVALUATION, METRICS, SUMMARY
from una_fast.errors import InputError

TITLES = {"stsb_dev": "dev, best", "stsb_dev_last": "dev, last", "STSBenchmark": "STS-B", "SICKRelatedness": "SICK-R"}


@dataclass(frozen=True)
class Step:
    """A line of metrics.jsonl about an optimiser step."""

    step: int
    loss: float
    negatives: bool
    sentences_per_second: float


@dataclass(frozen=True)
class RunRecord:
    """What a run left behind. scores: by name, as fractions; an undefined one is absent."""

    name: str
    folder: Path
    settings: dict[str, Any]
    summary: dict[str, Any]
    steps: list[Step]
    dev: list[tuple[int, float]]  # (steps taken, Spearman)
    scores: dict[str, float]
    evaluation: dict[str, Any] | None

    @property
    def seed(self) -> Any:
        """The run's seed."""
        return self.settings.get("seed")


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
    """Runs of equal settings, whatever their seeds. label: the settings by which the groups differ."""

    label: str
    runs: list[RunRecord] = field(default_factory=list)

    def spreads(self) -> dict[str, Spread]:
        """Mean and deviation over seeds of every score that a run of the group has."""
        names = dict.fromkeys(name for run in self.runs for name in run.scores)
        return {name: Spread.of([run.scores[name] for run in self.runs if name in run.scores]) for name in names}


def title(score: str) -> str:
    """What a score is called at the head of a table."""
    return TITLES.get(score, score)


def find_runs(folders: Iterable[Path]) -> list[RunRecord]:
    """The runs of folders that hold run.json, or whose folders do (the seeds of one command)."""
    found = []
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder")
        summaries = [folder / SUMMARY] if (folder / SUMMARY).is_file() else sorted(folder.glob(f"*/{SUMMARY}"))
        if not summaries:
            raise InputError(f"{folder}: holds no run (no {SUMMARY} in it or in its folders)")
        found += [path.parent for path in summaries]
    folders_once = list(dict.fromkeys(path.resolve() for path in found))
    return [read_run(path, name) for path, name in zip(folders_once, _short_names(folders_once), strict=True)]


def read_run(folder: Path, name: str | None = None) -> RunRecord:
    """The record of one run's folder; InputError names the file that cannot be read."""
    summary = _read_json(folder / SUMMARY)
    steps, dev = _read_metrics(folder / METRICS)
    path = folder / EVALUATION
    evaluation = _read_json(path) if path.is_file() else None
    scores = {key: value for key, value in summary.get("scores", {}).items() if isinstance(value, int | float)}
    if evaluation:
        scores.update(_evaluation_scores(evaluation))
    return RunRecord(name or folder.name, folder, summary.get("settings", {}), summary, steps, dev, scores, evaluation)


def group_runs(runs: Sequence[RunRecord]) -> list[Group]:
    """Runs gathered by the settings that runs are compared by, in order of appearance."""
    members: dict[str, list[RunRecord]] = {}
    for run in runs:
        members.setdefault(json.dumps(compared(run.settings), sort_keys=True, default=str), []).append(run)
    differing = differing_settings([group[0] for group in members.values()])
    groups = []
    for group in members.values():
        label = ", ".join(f"{name} {group[0].settings.get(name)}" for name in differing)
        groups.append(Group(label or group[0].name, group))
    return groups


def differing_settings(runs: Sequence[RunRecord]) -> list[str]:
    """Names of the settings that runs are compared by and that are not the same in all of these."""
    names = dict.fromkeys(name for run in runs for name in compared(run.settings))
    return [name for name in names if len({json.dumps(run.settings.get(name), default=str) for run in runs}) > 1]


def _evaluation_scores(evaluation: dict[str, Any]) -> dict[str, float]:
    aggregate = evaluation["protocol"]["aggregate"]
    sts = {name: task["spearman"][aggregate] for name, task in evaluation.get("sts", {}).items()}
    accuracy = "dev_accuracy" if evaluation["protocol"]["split"] == "dev" else "accuracy"
    transfer = {name: task[accuracy] / 100 for name, task in evaluation.get("transfer", {}).items()}
    averages = evaluation.get("averages", {})
    every = {**sts, "STS average": averages.get("sts"), **transfer}
    if averages.get("transfer") is not None:
        every["transfer average"] = averages["transfer"] / 100
    return {name: value for name, value in every.items() if value is not None}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: missing") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: not a JSON object")
    return content


def _read_metrics(path: Path) -> tuple[list[Step], list[tuple[int, float]]]:
    """Steps and dev scores; a last line cut short by a killed process is left out."""
    steps: list[Step] = []
    dev: list[tuple[int, float]] = []
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            if "loss" in record:
                speed = float(record.get("sentences_per_second", math.nan))
                steps.append(Step(record["step"], float(record["loss"]), bool(record.get("negatives")), speed))
            elif record.get("stsb_dev") is not None:
                dev.append((record["step"], float(record["stsb_dev"])))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if number == len(lines):
                break
            raise InputError(f"{path}, line {number}: not a line of metrics ({error})") from error
    return steps, dev


def _short_names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell them apart."""
    for depth in range(1, max((len(folder.parts) for folder in folders), default=1) + 1):
        names = ["/".join(folder.parts[-depth:]) for folder in folders]
        if len(set(names)) == len(names):
            break
    return names if folders else []
