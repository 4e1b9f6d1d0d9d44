"""The files of a run's folder -> a record of known types. A value of another type is left out with a note.

The files may be written by another version, cut short by a killed process or changed by hand.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from train.evaluation.tasks.registry import suite
from train.record.folder import EVALUATION, METRICS, SUMMARY
from una_fast.errors import InputError, counted

STS_AVERAGE = "STS average"
TRANSFER_AVERAGE = "transfer average"

Point = tuple[float, float]


@dataclass(frozen=True)
class Step:
    """A line of metrics.jsonl about an optimiser step. Cosines are means over the batch, NaN if not recorded."""

    step: int
    loss: float
    negatives: bool = False
    sentences_per_second: float = math.nan
    cosine_positive: float = math.nan
    cosine_negative: float = math.nan


@dataclass(frozen=True)
class RunRecord:
    """The results of a run. scores: by name, as fractions; an undefined one is absent.

    notes: a sentence about each thing that could not be read.
    """

    name: str
    folder: Path
    settings: dict[str, Any]
    summary: dict[str, Any]
    steps: list[Step]
    dev: list[tuple[int, float]]  # (steps taken, Spearman)
    scores: dict[str, float]
    notes: list[str] = field(default_factory=list)

    @property
    def seed(self) -> Any:
        """The run's seed."""
        return self.settings.get("seed")

    @property
    def kept_start(self) -> bool:
        """True if no step had a higher dev score than the model before training: best/ is that model."""
        progress = self.summary.get("progress")
        return isinstance(progress, dict) and progress.get("best_step") == 0 and progress.get("step") != 0


def read_run(folder: Path, name: str | None = None) -> RunRecord:
    """The record of one run's folder.

    Raises:
        InputError: run.json is missing or is not a JSON object; without it there is no run.
    """
    summary = read_object(folder / SUMMARY)
    notes: list[str] = []
    steps, dev = read_metrics(folder / METRICS, notes)
    scores = numbers(summary.get("scores", {}), f"{folder / SUMMARY}: scores", notes)
    if (folder / EVALUATION).is_file():
        scores.update(read_evaluation(folder / EVALUATION, notes))
    settings = mapping(summary.get("settings", {}), f"{folder / SUMMARY}: settings", notes)
    return RunRecord(name or folder.name, folder, settings, summary, steps, dev, scores, notes)


def read_metrics(path: Path, notes: list[str]) -> tuple[list[Step], list[tuple[int, float]]]:
    """Steps and dev scores in the order of steps; a last line cut short by a killed process is left out silently."""
    steps: dict[int, Step] = {}
    dev: dict[int, float] = {}
    wrong: list[int] = []
    try:
        lines = path.read_bytes().decode("utf-8", "replace").splitlines() if path.is_file() else []
    except OSError as error:
        notes.append(f"{path}: cannot be read ({error.strerror}), so no curve is drawn")
        lines = []
    for at, line in enumerate(lines, start=1):
        record = _line(line)
        place = number(record.get("step"))
        if place is None or place < 0 or place != int(place):
            wrong += [at] if at < len(lines) or record else []
        elif "loss" in record:
            step = _step(int(place), record)
            wrong += [] if step else [at]
            steps.update({step.step: step} if step else {})
        elif record.get("stsb_dev") is not None:
            score = number(record["stsb_dev"])
            wrong += [] if score is not None else [at]
            dev.update({int(place): score} if score is not None else {})
    if wrong:
        notes.append(
            f"{path}, line {wrong[0]}: not a line of metrics; "
            f"{counted(len(wrong), 'such line is', 'such lines are')} left out"
        )
    return [steps[at] for at in sorted(steps)], sorted(dev.items())


def _line(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {"not an object": record}


def _step(place: int, record: dict[str, Any]) -> Step | None:
    """The step of a line; None if its loss is not a number. Another value of a wrong type counts as not recorded."""
    loss = number(record["loss"])
    if loss is None:
        return None
    names = ("sentences_per_second", "cosine_positive", "cosine_negative")
    known = {name: value for name in names if (value := number(record.get(name))) is not None}
    return Step(place, loss, record.get("negatives") is True, **known)


def read_evaluation(path: Path, notes: list[str]) -> dict[str, float]:
    """The scores of evaluation.json as fractions by name, averages included."""
    try:
        content = read_object(path)
    except InputError as error:
        notes.append(str(error))
        return {}
    protocol = mapping(content.get("protocol", {}), f"{path}: protocol", notes)
    aggregate = protocol.get("aggregate")
    accuracy = "dev_accuracy" if protocol.get("split") == "dev" else "accuracy"
    sts = {name: _of(task, "spearman", aggregate) for name, task in _tasks(content, "sts", path, notes).items()}
    transfer = {name: _of(task, accuracy) for name, task in _tasks(content, "transfer", path, notes).items()}
    sts_scores = numbers(sts, f"{path}: sts", notes)
    near_miss = numbers(_tasks(content, "near-miss", path, notes), f"{path}: near-miss", notes)
    shares = {name: value / 100 for name, value in numbers(transfer, f"{path}: transfer", notes).items()}
    averages = {**average(sts_scores, "sts", STS_AVERAGE), **average(shares, "transfer", TRANSFER_AVERAGE)}
    return {**sts_scores, **shares, **near_miss, **averages}


def _tasks(content: dict[str, Any], kind: str, path: Path, notes: list[str]) -> dict[str, Any]:
    return mapping(content.get(kind, {}), f"{path}: {kind}", notes)


def _of(value: Any, *names: Any) -> Any:
    """The value under a path of names in nested objects; "missing" if there is none."""
    for name in names:
        if not isinstance(value, dict) or not isinstance(name, str) or name not in value:
            return "missing"
        value = value[name]
    return value


def average(scores: dict[str, float], kind: str, name: str) -> dict[str, float]:
    """The mean of a kind's scores, by name: `name` for the seven tasks that papers average, else one with all tasks.

    So a mean of two tasks is never in one column with a mean of seven, or with a mean of two other tasks.
    """
    if len(scores) < 2:
        return {}
    full = {*scores} == {*suite(kind)}
    return {name if full else f"mean of {', '.join(scores)}": sum(scores.values()) / len(scores)}


# --- JSON of any content -> values of known types ---


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file. InputError if there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: missing") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: not a JSON object")
    return content


def number(value: Any) -> float | None:
    """`value` as a float if it is a finite number; None for anything else (true and false included)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an int larger than any float
        return None


def mapping(value: Any, where: str, notes: list[str]) -> dict[str, Any]:
    """`value` if it is a JSON object, else {} and a note."""
    if isinstance(value, dict):
        return value
    notes.append(f"{where} is not an object of names and values, and is left out")
    return {}


def numbers(value: Any, where: str, notes: list[str]) -> dict[str, float]:
    """The numbers of a JSON object by name; null (undefined) is left out, and so is anything else, with a note."""
    found = {name: (number(one), one) for name, one in mapping(value, where, notes).items()}
    wrong = [name for name, (known, one) in found.items() if known is None and one is not None]
    if wrong:
        notes.append(f"{where}: {', '.join(wrong[:5])} is not a finite number, and is left out")
    return {name: known for name, (known, _) in found.items() if known is not None}
