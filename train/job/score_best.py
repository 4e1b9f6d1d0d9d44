"""After training: best/ scored on SentEval's tasks, as `train.evaluate --pairs` scores it, kept in the run's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from train.config.run import Run
from train.evaluation.files import downstream_folder
from train.evaluation.protocol import Protocol
from train.evaluation.scoring import read_tasks, score_model
from train.evaluation.tasks.names import STS_TASKS, task_names
from train.record.files import write_json
from train.record.folder import BEST, EVALUATION, note_written, read_object

PROTOCOL = Protocol(
    keep_pairs=True
)  # the pooling that best/ was trained with, fp32; the pairs are the report's scatter plot


def check_evaluation(run: Run) -> None:
    """Refuse --evaluate before training where it could not score after it: no data there, or no such task."""
    read_tasks(downstream_folder(run.evaluate), task_names(run.tasks), PROTOCOL.split)


def is_scored(run: Run) -> bool:
    """True if the run's folder holds scores of all tasks that it is to be scored on."""
    scores = read_object(Path(run.output) / EVALUATION)
    names = (name for kind in ("sts", "transfer") if isinstance(scores.get(kind), dict) for name in scores[kind])
    return {*task_names(run.tasks)} <= {*names}


def score_best(run: Run, say: Callable[[str], None]) -> None:
    """Score best/ of a finished run and write evaluation.json. run: settled."""
    output = Path(run.output)
    n_gpus = run.nproc if run.device == "cuda" else 1
    data, names = downstream_folder(run.evaluate), task_names(run.tasks)
    results = score_model(str(output / BEST), data, names, PROTOCOL, run.device, n_gpus, run.trust_remote_code)
    note_written(output, [EVALUATION])
    write_json(output / EVALUATION, results.to_json())
    for note in results.notes:
        say(f"note: {note}")
    all_seven = {*STS_TASKS} <= {*results.sts}
    parts = [("STS average" if all_seven else "mean of some STS tasks", results.sts, results.averages["sts"], 100)]
    parts += [("transfer average", results.transfer, results.averages["transfer"], 1)]
    said = [f"{name} {scale * mean:.2f} ({len(tasks)} tasks)" for name, tasks, mean, scale in parts if mean is not None]
    say(f"{', '.join(said) or 'no score is defined'}: {output / EVALUATION}")
