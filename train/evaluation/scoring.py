"""Scores a model, given by name, on a folder of tasks, for `train.evaluate` and `train.ddp --evaluate`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from train.evaluation.model import load_model, pick_devices
from train.evaluation.protocol import EvaluationProtocol
from train.evaluation.results import Results, evaluate
from train.evaluation.tasks.kind import Task
from train.evaluation.tasks.registry import read_task
from una_fast.errors import InputError


def read_tasks(downstream: Path, names: Sequence[str], split: str) -> tuple[list[Task], list[str]]:
    """The tasks whose files could be read, and a note for each of the others. InputError if none could be read."""
    tasks: list[Task] = []
    notes = []
    for name in names:
        try:
            tasks.append(read_task(downstream, name, split))
        except InputError as error:
            notes.append(f"{name} left out: {error}")
    if not tasks:
        raise InputError("none of the tasks could be read:\n" + "\n".join(notes))
    return tasks, notes


def score_model(
    name: str,
    downstream: Path,
    names: Sequence[str],
    protocol: EvaluationProtocol,
    device: str = "auto",
    n_gpus: int = 1,
    trust: bool = False,
) -> Results:
    """Scores of the model of a hub name or folder on the named tasks; a task that cannot be read becomes a note.

    Raises:
        InputError: no task can be read, the model cannot be loaded or lacks the pooling, or there is no such device.
    """
    tasks, notes = read_tasks(downstream, names, protocol.split)
    first, *others = pick_devices(device, n_gpus)
    model = load_model(name, protocol.pooling, protocol.precision, str(first), trust)
    started = time.perf_counter()
    results = evaluate(model, tasks, protocol, [model.copy_on(other) for other in others])
    results.seconds = round(time.perf_counter() - started, 3)
    results.notes[:0] = notes
    return results
