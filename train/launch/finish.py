"""What follows the last step: the scores of best/ on SentEval's tasks (--evaluate)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from train.config.run import Run
from train.evaluation.files import downstream_folder
from train.evaluation.protocol import EvaluationProtocol
from train.evaluation.scoring import Results, read_tasks, score_model
from train.evaluation.tasks.registry import KINDS, kind_of, suite, task_names
from train.record.folder import BEST, EVALUATION, LAST, SCORES, check_json, read_object, read_summary, write_json

PROTOCOL = EvaluationProtocol()  # with the pooling of best/, in fp32


def check_evaluation(run: Run) -> None:
    """Refuse, before training, an --evaluate that would fail after it: no data in the folder, or an unknown task."""
    read_tasks(downstream_folder(run.evaluate), task_names(run.tasks), PROTOCOL.split)


def is_scored(run: Run) -> bool:
    """True if the run's folder holds scores of all tasks that it is to be scored on."""
    scores = read_object(Path(run.output) / EVALUATION)
    names = (name for kind in KINDS if isinstance(scores.get(kind), dict) for name in scores[kind])
    return {*task_names(run.tasks)} <= {*names}


def score_best(run: Run, say: Callable[[str], None]) -> None:
    """Score best/ of a finished run and write evaluation.json. run: with all options resolved."""
    output = Path(run.output)
    check_json(output / EVALUATION, SCORES)
    data, names = downstream_folder(run.evaluate), task_names(run.tasks)
    results = score_model(str(output / BEST), data, names, PROTOCOL, run.device, run.trust_remote_code)
    write_json(output / EVALUATION, results.to_json(), SCORES)
    for note in results.notes:
        say(f"note: {note}")
    if read_summary(output).get("progress", {}).get("best_step") == 0:
        say(f"note: best/ is the model that was given; `train.evaluate --model {output / LAST}` scores the last step")
    said = ", ".join(_average_in_words(results, kind) for kind, mean in results.averages.items() if mean is not None)
    say(f"{said or 'no score is defined'}: {output / EVALUATION}")


def _average_in_words(results: Results, name: str) -> str:
    """The mean score of a kind of task in words, called "average" only over the tasks that papers average."""
    kind, tasks = kind_of(name), results.scores[name]
    headline, *_ = kind.columns(results.protocol)
    title = f"{kind.label} average" if {*tasks} == {*suite(name)} else f"mean of some {kind.label} tasks"
    return f"{title} {headline.scale * (results.averages[name] or 0):.2f} ({len(tasks)} tasks)"
