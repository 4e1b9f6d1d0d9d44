"""What follows the last step: the demo's page, the scores of best/ (--evaluate), its model card and upload."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, HfApi, ModelCard, ModelCardData, get_token
from huggingface_hub.utils import HFValidationError, validate_repo_id

from train.config import DEFAULTS, OPTIONS, Run
from train.evaluation.scoring import read_tasks, score_model
from train.evaluation.tasks.registry import KINDS, TASKS, EvaluationProtocol, downstream_folder, suite, task_names
from train.record.checkpoint import Progress
from train.record.folder import BEST, DEV, EVALUATION, SUMMARY, read_json, read_object, write_file, write_json
from train.report.runs import read_evaluation, read_run, title, unimproved_note
from train.signals import EXIT_NOT_PUSHED, tell_user
from una_fast.augment.registry import load_augmentation, training_options_of
from una_fast.command import words_of
from una_fast.errors import InputError, counted, first_line
from una_fast.version import CITATION

HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")  # the form of a model's name on the hub
PROTOCOL = EvaluationProtocol()  # with the pooling of best/, in fp32
DRAWS = {"beta", "radius", "surface", "edits"}  # options that the card shows, where the augmentation takes them
TEMPLATE = Path(__file__).with_name("card.md")
TAGS = ["sentence-transformers", "sentence-similarity", "feature-extraction", "una_fast"]


def check_finish(run: Run) -> None:
    """Refuse an --evaluate or a --push-to that would fail after the training, without using the network.

    Raises:
        InputError: the folder has no data, a task is unknown, the hub does not allow the name, or there is no token.
    """
    if run.evaluate:
        read_tasks(downstream_folder(run.evaluate), task_names(run.tasks), PROTOCOL.split)
    if not run.push_to:
        return
    try:
        validate_repo_id(run.push_to)
    except HFValidationError as error:
        raise InputError(f"--push-to: {error}") from error
    if get_token() is None:
        raise InputError("--push-to: there is no token for the hub: log in with `hf auth login`, or set HF_TOKEN")


def finish(run: Run) -> int:
    """Score best/ of a finished run if --evaluate asks for it, write its card, and upload it if --push-to does.

    Returns the exit code: 0, or EXIT_NOT_PUSHED. run: with all options resolved.
    """
    tell_end(Path(run.output))
    if run.demo:
        from train.demo import show_negatives
        from train.report.__main__ import main as write_report

        show_negatives(run)
        write_report([run.output, "--output", str(Path(run.output) / "report.html")])
    if run.evaluate and not is_scored(run):
        score_best(run)
    write_card(Path(run.output))
    try:
        if run.push_to:
            push_best(run)
    except InputError as error:
        tell_user(f"error: {error}")
        return EXIT_NOT_PUSHED
    return 0


def tell_end(output: Path) -> None:
    """Tell the user how the finished run in `output` ended."""
    run = read_run(output)
    progress = Progress(**run.summary["progress"])
    scores = {"start": progress.start_score, "best": progress.best_score, "last": progress.last_score}
    shown = ", ".join(f"{name} {100 * score:.2f}" for name, score in scores.items() if score is not None)
    dev = shown and f"dev Spearman x 100: {shown} (best/ is of step {progress.best_step})"
    end = f"finished after {counted(progress.step, 'step')}: {output / BEST}"
    tell_user("\n".join(filter(None, [unimproved_note([run]), dev, end])))


def is_scored(run: Run) -> bool:
    """Whether the run's folder has the scores of all tasks of --tasks that can be read."""
    scores = read_object(Path(run.output) / EVALUATION)
    scored = {name for kind in KINDS if isinstance(scores.get(kind), dict) for name in scores[kind]}
    left = [name for name in task_names(run.tasks) if name not in scored]
    try:
        return not (left and read_tasks(downstream_folder(run.evaluate), left, PROTOCOL.split))
    except InputError:  # none of them
        return bool(scored)


def score_best(run: Run) -> None:
    """Score best/ of a finished run and write evaluation.json."""
    output = Path(run.output)
    data, names = downstream_folder(run.evaluate), task_names(run.tasks)
    results = score_model(str(output / BEST), data, names, PROTOCOL, run.device, run.trust_remote_code)
    write_json(output / EVALUATION, results)
    for note in results["notes"]:
        tell_user(f"note: {note}")
    scores = read_evaluation(output / EVALUATION)
    averages = {name: score for name, score in scores.items() if name not in TASKS}
    said = ", ".join(f"{title(name)} {100 * score:.2f}" for name, score in (averages or scores).items())
    tell_user(f"{said or 'no score is defined'}: {output / EVALUATION}")


def push_best(run: Run) -> None:
    """Upload best/ to run.push_to. Files of the same name get a new version; the repository's other files stay.

    Raises:
        InputError: the upload failed; `run.output` is complete nevertheless.
    """
    output, hub = Path(run.output), HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    try:
        repository = hub.create_repo(run.push_to, private=run.push_private or None, exist_ok=True)
        write_card(output, repository.repo_id)  # with the owner's name, which --push-to may leave out
        commit = hub.upload_folder(
            repo_id=repository.repo_id,
            folder_path=output / BEST,
            commit_message="Trained with una_fast",
            ignore_patterns=[".*"],  # partial files of a killed process
        )
    except Exception as error:  # the hub, the network and the disk raise exceptions of different types
        raise InputError(
            f"--push-to {run.push_to}: {first_line(error)} ({hub.endpoint}); {output / BEST} is complete, and the "
            "same command with --resume pushes it again"
        ) from error
    tell_user(f"pushed: {commit.commit_url}")


def write_card(output: Path, repository: str = "") -> None:
    """Write the model card of the finished run in `output`. repository: the model's name on the hub, if uploaded.

    Raises:
        InputError: the folder cannot be written, or run.json cannot be read.
    """
    summary, name = read_json(output / SUMMARY), repository or output.resolve().name
    settings = {**DEFAULTS, **summary["settings"]}  # a run from before an option existed used its default
    scores = {  # the dev scores, and those of the STS tasks
        title(task): score
        for task, score in read_run(output).scores.items()
        if task.startswith(DEV) or task in suite("sts")
    }
    augment = settings["augment"] if settings["augment"] not in (None, "none") and settings["alpha"] else ""
    taken = training_options_of(load_augmentation(augment)) if augment else ()
    draws = {name: value for name, value in {**settings, **summary["resolved"]}.items() if name in {*taken} & DRAWS}
    is_on_hub = HUB_NAME.fullmatch(settings["model"]) and not Path(settings["model"]).exists()
    base = settings["model"] if is_on_hub else None
    card = ModelCard.from_template(
        ModelCardData(
            library_name=TAGS[0],
            pipeline_tag=TAGS[1],
            tags=[*TAGS, f"loss:{settings['loss']}"],
            base_model=base,
            model_name=name,
            eval_results=[
                EvalResult("semantic-similarity", task.lower(), task, "spearman_cosine", score)
                for task, score in scores.items()
            ]
            or None,
        ),
        template_path=str(TEMPLATE),
        name=name,
        place=repository or "FOLDER OR NAME OF THIS MODEL",
        base=base or Path(settings["model"]).name,
        files=[Path(file).name for file in settings["corpus"]],
        negatives=augment,
        draws=draws,
        settings=settings,
        run=summary,
        command=_command(settings),
        scores=scores,
        citation=CITATION,
    )
    write_file(output / BEST / "README.md", f"{card}\n")


def _command(settings: Mapping[str, Any]) -> str:
    """The command that repeats the run, without options of role "running"; absolute paths become file names."""
    stated = [option for option in OPTIONS.values() if option.role in ("result", "source")]
    words = (word.rpartition("=") for word in words_of(stated, settings))
    kept = (flag + equals + (Path(value).name if Path(value).is_absolute() else value) for flag, equals, value in words)
    return shlex.join(["python", "-m", "train.ddp", *kept])
