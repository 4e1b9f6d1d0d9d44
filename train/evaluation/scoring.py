"""Scores a model on tasks, for `train.evaluate` and `train.ddp --evaluate`, and shows the scores as tables of text."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from train.encoder.pooling import AUTO, POOLINGS
from train.evaluation.model import EvaluatedModel, load_model, rows_among
from train.evaluation.similarity import whiten
from train.evaluation.tasks.registry import FULL, KINDS, TASKS, EvaluationProtocol, Scores, Task, read_task, suite
from una_fast.errors import InputError
from una_fast.text_table import aligned

Results = dict[str, Any]
"""The content of evaluation.json, of JSON types.

"model"; "protocol": the settings by name; each kind of KINDS: the scores by task; "averages": of each kind of FULL;
"notes": sentences; "seconds": of encoding and scoring, without loading the model. None is an undefined score.
"""


class Column(NamedTuple):
    """What a table shows, and the measure that is averaged: `value(scores)` of each task, times `scale`."""

    title: str
    value: Callable[[Scores], float | None]
    scale: float = 100


def column(kind: str, protocol: Mapping[str, Any]) -> Column:
    """The measure of a kind of tasks under a described protocol."""
    split, of_dev = protocol["split"], protocol["split"] == "dev"
    if kind == "sts":
        return Column(f"Spearman x 100, 'all', {split}", lambda scores: scores["spearman"]["all"])
    if kind == "transfer":
        accuracy = "dev_accuracy" if of_dev else "accuracy"
        return Column(f"Accuracy, %, {split}", lambda scores: scores[accuracy], 1)
    images = "dev" if of_dev else "held-out" if protocol["held_out"] else "all"
    return Column(f"Near-misses x 100, {images} images", lambda scores: scores)


def score_model(
    name: str,
    downstream: Path,
    names: Sequence[str],
    protocol: EvaluationProtocol,
    device: str = "auto",
    trust: bool = False,
) -> Results:
    """Scores of the model of a hub name or folder on the named tasks; a task that cannot be read becomes a note.

    Raises:
        InputError: no task can be read, the model cannot be loaded or lacks the pooling, or there is no such device.
    """
    tasks, notes = read_tasks(downstream, names, protocol.split)
    model = load_model(name, protocol.pooling, protocol.precision, device, trust)
    started = time.perf_counter()
    results = evaluate(model, tasks, protocol)
    return {**results, "notes": notes + results["notes"], "seconds": round(time.perf_counter() - started, 3)}


def read_tasks(downstream: Path, names: Sequence[str], split: str) -> tuple[list[Task], list[str]]:
    """The tasks whose files could be read, and a note for each of the others. InputError if none could be read."""
    tasks, notes = [], []
    for name in names:
        try:
            tasks.append(read_task(downstream, name, split))
        except InputError as error:
            notes.append(f"{name} left out: {error}")
    if not tasks:
        raise InputError("none of the tasks could be read:\n" + "\n".join(notes))
    return tasks, notes


def evaluate(model: EvaluatedModel, tasks: Sequence[Task], protocol: EvaluationProtocol) -> Results:
    """Score `model` on all tasks; each distinct sentence of them is encoded once."""
    distinct: dict[str, int] = {}
    rows = [[rows_among(distinct, texts) for texts in task.texts] for task in tasks]
    max_length = min(protocol.max_length or model.max_length, model.max_length)
    embeddings = model.embed([*distinct], max_length)
    described = describe(protocol, model, max_length)
    measures = {kind: column(kind, described) for kind in KINDS}
    scores: dict[str, dict[str, Scores]] = {kind: {} for kind in KINDS}
    notes = []
    for task, task_rows in zip(tasks, rows, strict=True):
        space = whiten(embeddings, np.concatenate(task_rows)) if protocol.whiten else embeddings
        scores[task.kind][task.name] = of_task = _or_none(task.score(space, task_rows, protocol))
        if measures[task.kind].value(of_task) is None:
            notes.append(f"{task.name}: no score is defined: all gold scores or all similarities are equal, or too few")
    averages = {kind: _mean(measures[kind], scores[kind]) for kind in FULL}
    return {"model": model.name, "protocol": described, **scores, "averages": averages, "notes": notes}


def describe(protocol: EvaluationProtocol, model: EvaluatedModel, max_length: int) -> dict[str, Any]:
    """The protocol as it is printed below the tables: each setting by its name."""
    layout, fit = model.layout, protocol.fit
    stated = "the model's modules.json" if layout.declared else "no modules.json, so [CLS]"
    return {
        "mode": protocol.mode,
        "split": protocol.split,
        "aggregate": "all",
        "pooling": layout.pooling,
        "pooling_meaning": POOLINGS[layout.pooling].meaning,
        "pooling_from": f"auto: {stated}" if protocol.pooling == AUTO else "--pooling",
        "normalize": layout.normalize,
        "max_length": max_length,
        "prompt": layout.prompt or "none",
        "lower_case": layout.lower_case,
        "whitening": "each task's own sentences" if protocol.whiten else "none",
        "precision": protocol.precision,
        "device": str(model.device),
        "sts13": "without SMT",
        "classifier": f"logistic regression, {fit.optimiser}, {fit.folds} folds, SentEval's seed",
        "held_out": protocol.held_out,
    }


def format_results(results: Results) -> str:
    """All tables of `results`, then the protocol, then the notes."""
    protocol = results["protocol"]
    parts = [_table(column(kind, protocol), results[kind], kind) for kind in KINDS if results[kind]]
    lines = [f"model: {results['model']}", "protocol", *(f"  {name}: {value}" for name, value in protocol.items())]
    return "\n\n".join([*parts, "\n".join(lines), *(f"note: {note}" for note in results["notes"])])


def _table(measure: Column, tasks: Mapping[str, Scores], kind: str) -> str:
    heads = [TASKS[name].title for name in tasks]
    values = [measure.value(scores) for scores in tasks.values()]
    if len(tasks) > 1 and kind in FULL:
        heads.append("Avg." if {*tasks} == {*suite(kind)} else f"mean of {len(tasks)}")
        values.append(_mean(measure, tasks))
    cells = ["-" if value is None else f"{value * measure.scale:.2f}" for value in values]
    return "\n".join([measure.title, *aligned([heads, cells])])


def _mean(measure: Column, tasks: Mapping[str, Scores]) -> float | None:
    """Mean of a measure, unscaled, over the tasks for which it is defined; None if there is no such task."""
    defined = [value for scores in tasks.values() if (value := measure.value(scores)) is not None]
    return sum(defined) / len(defined) if defined else None


def _or_none(scores: Scores) -> Scores:
    """The scores of a task with None in the place of NaN, which JSON lacks."""
    if isinstance(scores, dict):
        return {name: _or_none(value) for name, value in scores.items()}
    return None if math.isnan(scores) else scores
