"""`--push-to NAME`: best/ of a finished run, its model card included, as a repository of the Hugging Face hub."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from huggingface_hub import HfApi, constants, get_token
from huggingface_hub.utils import HfHubHTTPError, HFValidationError, validate_repo_id

from train.config.run import Run
from train.record.card import write_card
from train.record.folder import BEST
from una_fast.errors import InputError

MESSAGE = "Trained with una_fast"  # of the commit
PARTIAL = [".*"]  # what a killed process leaves
REMEDIES = {
    401: "the hub does not accept the token: log in with `hf auth login`, or set HF_TOKEN",
    403: "the token may not write there: take one with write access, or another name",
}


def check_push(name: str) -> None:
    """Refuse, before training, what could not be pushed after it. The network is not asked.

    Raises:
        InputError: a name that the hub does not allow, no token, or a setting that forbids the network.
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
        raise InputError("--push-to: there is no token for the hub: log in with `hf auth login`, or set HF_TOKEN")


def push_best(run: Run, say: Callable[[str], None]) -> None:
    """Upload best/ to run.push_to. Files that the repository holds already get a new version, others stay.

    Raises:
        InputError: the hub did not take it; `run.output` is whole all the same.
    """
    endpoint = os.environ.get("HF_ENDPOINT", constants.ENDPOINT)
    hub = HfApi(endpoint=endpoint)
    try:
        repository = hub.create_repo(run.push_to, private=run.push_private or None, exist_ok=True)
        write_card(Path(run.output), repository.repo_id)  # with the owner, where --push-to leaves it away
        commit = hub.upload_folder(
            repo_id=repository.repo_id,
            folder_path=Path(run.output) / BEST,
            commit_message=MESSAGE,
            ignore_patterns=PARTIAL,
        )
    except Exception as error:  # the hub, the network and the disk each raise their own
        raise InputError(
            f"--push-to {run.push_to}: {_reason(error)} ({endpoint}); {Path(run.output) / BEST} is complete, and the "
            "same command with --resume pushes it again"
        ) from error
    say(f"pushed: {commit.commit_url}")


def _reason(error: Exception) -> str:
    if isinstance(error, HfHubHTTPError) and error.response.status_code in REMEDIES:
        return REMEDIES[error.response.status_code]
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
