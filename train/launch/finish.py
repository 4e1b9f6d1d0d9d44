"""What follows the last step: the demo's table, the scores of best/ (--evaluate), its card and upload."""

from __future__ import annotations

import os
from pathlib import Path

from huggingface_hub import HfApi, constants, get_token
from huggingface_hub.utils import HfHubHTTPError, HFValidationError, validate_repo_id

from train.config.run import Run
from train.demo.demo import show_results
from train.evaluation.scoring import read_tasks, score_model
from train.evaluation.tasks.registry import KINDS, TASKS, EvaluationProtocol, downstream_folder, task_names
from train.record.card import write_card
from train.record.folder import BEST, EVALUATION, LAST, read_object, read_summary, write_json
from train.report.__main__ import main as write_report
from train.report.runs import read_evaluation, title
from train.signals import tell_user
from una_fast.errors import InputError

EXIT_NOT_PUSHED = 3  # the run is finished, and only its push failed
PROTOCOL = EvaluationProtocol()  # with the pooling of best/, in fp32
LOG_IN = "log in with `hf auth login` as somebody who may write there, or set HF_TOKEN"


def check_evaluation(run: Run) -> None:
    """Refuse, before training, an --evaluate that would fail after it: no data in the folder, or an unknown task."""
    read_tasks(downstream_folder(run.evaluate), task_names(run.tasks), PROTOCOL.split)


def finish(run: Run) -> int:
    """Score best/ of a finished run if --evaluate asks for it and it is not scored yet, write its card, push it.

    Returns the exit code: 0, or EXIT_NOT_PUSHED.
    """
    if run.demo:
        show_results(run)
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


def is_scored(run: Run) -> bool:
    """True if the run's folder holds scores of all tasks that it is to be scored on."""
    scores = read_object(Path(run.output) / EVALUATION)
    names = (name for kind in KINDS if isinstance(scores.get(kind), dict) for name in scores[kind])
    return {*task_names(run.tasks)} <= {*names}


def score_best(run: Run) -> None:
    """Score best/ of a finished run and write evaluation.json. run: with all options resolved."""
    output = Path(run.output)
    data, names = downstream_folder(run.evaluate), task_names(run.tasks)
    results = score_model(str(output / BEST), data, names, PROTOCOL, run.device, run.trust_remote_code)
    write_json(output / EVALUATION, results)
    for note in results["notes"]:
        tell_user(f"note: {note}")
    if read_summary(output)["progress"].get("best_step") == 0:
        tell_user(f"note: best/ is the model you gave; `train.evaluate --model {output / LAST}` scores the last step")
    scores = read_evaluation(output / EVALUATION)
    averages = {name: score for name, score in scores.items() if name not in TASKS}
    said = ", ".join(f"{title(name)} {100 * score:.2f}" for name, score in (averages or scores).items())
    tell_user(f"{said or 'no score is defined'}: {output / EVALUATION}")


def check_push(name: str) -> None:
    """Refuse, before training, a push that would fail after it. The network is not used.

    Raises:
        InputError: the hub does not allow the name, there is no token, or a setting forbids the network.
    """
    try:
        validate_repo_id(name)
    except HFValidationError:
        raise InputError(
            f"--push-to {name!r}: no name of a repository: give NAME or OWNER/NAME, of letters, digits, '-', '_' "
            "and '.', 96 characters at most"
        ) from None
    if constants.HF_HUB_OFFLINE:
        raise InputError("--push-to: HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE forbids the network: unset it")
    if get_token() is None:
        raise InputError(f"--push-to: there is no token for the hub: {LOG_IN}")


def push_best(run: Run) -> None:
    """Upload best/ to run.push_to. Files that the repository already holds get a new version, its other files stay.

    Raises:
        InputError: the hub did not accept the upload; `run.output` is complete all the same.
    """
    output, hub = Path(run.output), HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    try:
        repository = hub.create_repo(run.push_to, private=run.push_private or None, exist_ok=True)
        write_card(output, repository.repo_id)  # which names the owner, if --push-to does not
        commit = hub.upload_folder(
            repo_id=repository.repo_id,
            folder_path=output / BEST,
            commit_message="Trained with una_fast",
            ignore_patterns=[".*"],  # partial files of a killed process
        )
    except Exception as error:  # the hub, the network and the disk raise exceptions of different types
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if isinstance(error, HfHubHTTPError) and error.response.status_code in (401, 403):
            reason = f"the hub does not let the token write there: {LOG_IN}"
        raise InputError(
            f"--push-to {run.push_to}: {reason} ({hub.endpoint}); {output / BEST} is complete, and the "
            "same command with --resume pushes it again"
        ) from error
    tell_user(f"pushed: {commit.commit_url}")
