"""Finishes a run after its last step: scores the encoder in best/, writes the model card, and tells the user."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from train.config import DEFAULTS, OPTIONS, ResolvedRun, Run
from train.demo import show_negatives
from train.evaluation.scoring import read_tasks, score_model
from train.evaluation.tasks.registry import KINDS, TASKS, EvaluationProtocol, downstream_folder, suite, task_names
from train.messages import tell_user
from train.record.checkpoint import Progress
from train.record.folder import BEST, DEV, EVALUATION
from train.report.__main__ import main as write_report
from train.report.runs import read_run, read_scores, title, unimproved_note
from una_fast.augment.registry import load_augmentation, training_options_of
from una_fast.command import arguments_of
from una_fast.errors import InputError, counted
from una_fast.storage.files import read_object, write_file, write_json
from una_fast.version import CITATION

HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")  # the form of a model's name on the hub
PROTOCOL = EvaluationProtocol()  # with the pooling of best/, in fp32
DRAWS = {"beta", "radius", "surface", "edits"}  # shown in the card if the augmentation accepts them
TEMPLATE = Path(__file__).with_name("card.md")
TAGS = ["sentence-transformers", "sentence-similarity", "feature-extraction", "una_fast"]


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
    of_near_misses = run.settings.get("augment") == "near-misses"
    tell_user("\n".join(filter(None, [unimproved_note([run]), dev, end, probe if of_near_misses else ""])))


def is_scored(run: Run) -> bool:
    """Return whether evaluation.json has a score for every task of --tasks whose data files can be read."""
    scores = read_object(Path(run.output) / EVALUATION)
    scored = {name for kind in KINDS if isinstance(scores.get(kind), dict) for name in scores[kind]}
    missing = [name for name in task_names(run.tasks) if name not in scored]
    try:
        return not (missing and read_tasks(downstream_folder(run.evaluate), missing, PROTOCOL.split))
    except InputError:  # no remaining task can be read
        return bool(scored)


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


def write_card(output: Path) -> None:
    """Write the model card of the finished run in `output`."""
    run = read_run(output)
    settings = {**DEFAULTS, **run.settings}  # an older run may lack an option: it used the default
    shown = {title(name): score for name, score in run.scores.items() if name.startswith(DEV) or name in suite("sts")}
    augment = settings["augment"] if settings["augment"] != "none" and settings["alpha"] else ""
    accepted = training_options_of(load_augmentation(augment)) if augment else ()
    resolved = {**settings, **run.summary["resolved"]}
    draws = {name: value for name, value in resolved.items() if name in accepted and name in DRAWS}
    is_on_hub = HUB_NAME.fullmatch(settings["model"]) and not Path(settings["model"]).exists()
    name, base = output.resolve().name, settings["model"] if is_on_hub else None
    results = [
        EvalResult("semantic-similarity", task.lower(), task, "spearman_cosine", score) for task, score in shown.items()
    ]
    data = ModelCardData(
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        tags=[*TAGS, f"loss:{settings['loss']}"],
        base_model=base,
        model_name=name,
        eval_results=results or None,
    )
    card = ModelCard.from_template(
        data,
        template_path=str(TEMPLATE),
        name=name,
        base=base or _without_user(Path(settings["model"])),
        files=[Path(file).name for file in settings["corpus"]],
        negatives=augment,
        draws=draws,
        settings=settings,
        run=run.summary,
        command=_command(settings),
        scores=shown,
        citation=CITATION,
    )
    write_file(output / BEST / "README.md", f"{card}\n")


def _without_user(path: Path) -> str:
    """Shorten an absolute path to at most its last two parts, without /home/NAME."""
    shown = path.parts[3:][-2:] or path.parts[-1:]
    return str(Path(*shown)) if path.is_absolute() else str(path)


def _command(settings: Mapping[str, Any]) -> str:
    """Return the shell command that repeats the run, with file names instead of absolute paths."""
    stated = [option for option in OPTIONS.values() if option.role in ("result", "source")]
    words = (word.rpartition("=") for word in arguments_of(stated, settings))
    kept = (flag + equals + (Path(value).name if Path(value).is_absolute() else value) for flag, equals, value in words)
    return shlex.join(["python", "-m", "train.ddp", *kept])
