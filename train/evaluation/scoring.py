"""Scores a model on tasks, and formats the scores as text tables."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from train.config import Run
from train.encoder.pooling import AUTO, POOLINGS
from train.evaluation.model import EvaluatedModel, load_model
from train.evaluation.similarity import whiten
from train.evaluation.tasks.registry import (
    FULL,
    KINDS,
    TASKS,
    EvaluationProtocol,
    Task,
    downstream_folder,
    measures,
    read_task,
    suite,
    task_names,
)
from train.record.folder import EVALUATION
from una_fast.errors import InputError
from una_fast.storage.files import read_object
from una_fast.text_table import aligned

Results = dict[str, Any]  # the content of evaluation.json; None stands for an undefined score


def score_model(
    name: str, downstream: Path, names: Sequence[str], protocol: EvaluationProtocol, device: str, trust: bool
) -> Results:
    """Load a model and score it on the named tasks. The "notes" say which tasks cannot be read, and why."""
    tasks, notes = read_tasks(downstream, names, protocol.split)
    model = load_model(name, protocol.pooling, protocol.precision, device, trust)
    started = time.perf_counter()
    results = evaluate(model, tasks, protocol)
    return {**results, "notes": notes + results["notes"], "seconds": round(time.perf_counter() - started, 3)}


def read_tasks(downstream: Path, names: Sequence[str], split: str) -> tuple[list[Task], list[str]]:
    """Return the tasks that can be read, and a note about each of the others. Raises InputError if none can."""
    tasks, notes = [], []
    for name in names:
        try:
            tasks.append(read_task(downstream, name, split))
        except InputError as error:
            notes.append(f"{name} left out: {error}")
    if not tasks:
        raise InputError("none of the tasks could be read: " + "\n".join(notes))
    return tasks, notes


def is_scored(run: Run) -> bool:
    """Return whether a run's evaluation.json has a score for every task of --tasks whose data files can be read."""
    scores = read_object(Path(run.output) / EVALUATION)
    scored = {name for kind in KINDS if isinstance(scores.get(kind), dict) for name in scores[kind]}
    missing = [name for name in task_names(run.tasks) if name not in scored]
    try:
        return not (missing and read_tasks(downstream_folder(run.evaluate), missing, EvaluationProtocol().split))
    except InputError:  # no remaining task can be read
        return bool(scored)


def evaluate(model: EvaluatedModel, tasks: Sequence[Task], protocol: EvaluationProtocol) -> Results:
    """Score a model on all tasks, encoding each distinct sentence once."""
    max_length = min(protocol.max_length or model.max_length, model.max_length)
    batches = model.batches([texts for task in tasks for texts in task.texts], max_length)
    embeddings, rows = batches.embed(model.encode, threads=None, progress=True), iter(batches.rows)
    results: Results = {"model": model.name, "protocol": describe(protocol, model, max_length)}
    results |= {kind: {} for kind in KINDS}
    for task in tasks:
        task_rows = [next(rows) for _ in task.texts]
        space = whiten(embeddings, np.concatenate(task_rows)) if protocol.whiten else embeddings
        scores = task.score([space[part] for part in task_rows], protocol)
        results[task.kind][task.name] = _nan_to_none(scores)
    undefined = (name for kind in KINDS for name, value in measures(kind, results).items() if value is None)
    why = "no score is defined: all gold scores or all similarities are equal, or there are too few pairs"
    averages = {kind: _mean(measures(kind, results).values()) for kind in FULL}
    return {**results, "averages": averages, "notes": [f"{name}: {why}" for name in undefined]}


def describe(protocol: EvaluationProtocol, model: EvaluatedModel, max_length: int) -> dict[str, Any]:
    """Return the settings behind the scores, by name."""
    layout, fit = model.layout, protocol.fit
    origin = "the model's modules.json" if layout.declared else "no modules.json, so [CLS]"
    return {
        "mode": protocol.mode,
        "split": protocol.split,
        "aggregate": "all",
        "pooling": layout.pooling,
        "pooling_meaning": POOLINGS[layout.pooling].meaning,
        "pooling_from": f"auto: {origin}" if protocol.pooling == AUTO else "--pooling",
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
    """Format scores as a table for each kind of task, the protocol, and the notes."""
    tables = [_table(kind, results) for kind in KINDS if results[kind]]
    settings = [f"  {name}: {value}" for name, value in results["protocol"].items()]
    lines = "\n".join([f"model: {results['model']}", "protocol", *settings])
    return "\n\n".join([*tables, lines, *(f"note: {note}" for note in results["notes"])])


def _table(kind: str, results: Results) -> str:
    scores, row = measures(kind, results), KINDS[kind]
    columns = {TASKS[name].title if name in TASKS else name: value for name, value in scores.items()}
    if len(scores) > 1 and row.average:
        label = "Avg." if {*scores} == {*suite(kind)} else f"mean of {len(scores)}"
        columns[label] = results["averages"][kind]
    cells = ["-" if value is None else f"{value * (100 / row.unit):.2f}" for value in columns.values()]
    return "\n".join([f"{row.heading}, {results['protocol']['split']}", *aligned([[*columns], cells])])


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None, or None if there are none."""
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None


def _nan_to_none(scores: Any) -> Any:
    """Replace every NaN by None, because JSON has no NaN."""
    if isinstance(scores, dict):
        return {name: _nan_to_none(value) for name, value in scores.items()}
    return None if math.isnan(scores) else scores
