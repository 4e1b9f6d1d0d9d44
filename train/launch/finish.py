"""Finishes a run after its last step: tells the user, scores the encoder in best/, and writes the model card."""

from __future__ import annotations

import shlex
from pathlib import Path

from train.config import ResolvedRun, Run
from train.demo import show_negatives
from train.evaluation.scoring import is_scored, score_model
from train.evaluation.tasks.registry import TASKS, EvaluationProtocol, downstream_folder, task_names
from train.messages import tell_user
from train.record.checkpoint import Progress
from train.record.folder import BEST, EVALUATION
from train.report.__main__ import main as write_report
from train.report.card import write_card
from train.report.runs import read_run, read_scores, title, unimproved_note
from una_fast.errors import counted
from una_fast.storage.files import write_json

PROTOCOL = EvaluationProtocol()  # with the pooling of best/, in fp32


def finish(run: ResolvedRun) -> None:
    """Tell the user how the run ended, score best/ if --evaluate is given, and write the model card."""
    output = Path(run.output)
    tell_end(output)
    if run.demo:
        show_negatives(run)
        write_report([run.output, "--output", str(output / "report.html")])
    if run.evaluate and not is_scored(run):
        score_best(run)
    write_card(output)


def tell_end(output: Path) -> None:
    """Tell the user how the run in `output` ended."""
    run = read_run(output)
    progress = Progress(**run.summary["progress"])
    scores = {"start": progress.start_score, "best": progress.best_score, "last": progress.last_score}
    shown = ", ".join(f"{name} {100 * score:.2f}" for name, score in scores.items() if score is not None)
    dev = shown and f"dev score x 100: {shown} (best/ is from step {progress.best_step})"
    end = f"finished after {counted(progress.step, 'step')}: {output / BEST}"
    words = ["una-fast", "probe", "--model", run.settings["model"], str(output / BEST), "--pairs", "pairs.tsv"]
    probe = f"to measure the change on your labelled pairs: {shlex.join(words)}"
    unimproved = unimproved_note([run])
    is_changed = run.settings.get("augment") == "near-misses" and not unimproved  # else both encoders are equal
    tell_user("\n".join(filter(None, [unimproved, dev, end, probe if is_changed else ""])))


def score_best(run: Run) -> None:
    """Score the encoder in best/ on the tasks of --tasks, and write the scores to evaluation.json."""
    output = Path(run.output)
    data, names = downstream_folder(run.evaluate), task_names(run.tasks)
    results = score_model(str(output / BEST), data, names, PROTOCOL, run.device, run.trust_remote_code)
    write_json(output / EVALUATION, results)
    for note in results["notes"]:
        tell_user(f"note: {note}")
    scores = read_scores(results)
    averages = {name: score for name, score in scores.items() if name not in TASKS}
    said = ", ".join(f"{title(name)} {100 * score:.2f}" for name, score in (averages or scores).items())
    tell_user(f"{said or 'no score is defined'}: {output / EVALUATION}")
