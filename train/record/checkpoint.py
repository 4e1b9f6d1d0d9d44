"""last/: all that --resume needs, written in the background as best/ is.

last/checkpoint.json names the newest state file, the progress of the run, its identity, and how much of metrics.jsonl
there was, under a seal: a file with another step or another score in it is refused. It is replaced after the state file
is on the disk, so at any moment it names a complete one. The name of a state file ends with its checksum: one that was
changed is neither loaded nor deleted. The state holds no random generator: dropout is seeded from (seed, step, rank)
and the data order from (seed, epoch), so both can start at any step.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from train.config.run import defaults, options
from train.record.folder import (
    INDEX,
    LAST,
    METRICS,
    POINTER,
    SEEDS,
    folder_id,
    read_mark,
    read_sealed,
    subfolder,
    write_json,
)
from train.record.old_files import link, partial_of
from una_fast.errors import InputError
from una_fast.storage.files import file_checksum, sync_file, unwritable

STATE = r"(state|weights)-\d{8}-%s-[0-9a-f]{16}\.pt"  # with the folder's id, which no file of another run has


def snapshot(state: Any) -> Any:
    """A copy of nested state on the CPU, which later steps do not change."""
    # from a GPU into pinned memory, at full speed
    copy = tree_map_only(torch.Tensor, lambda one: one.detach().to("cpu", non_blocking=True, copy=True), state)
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()  # waits for the copies, which are asynchronous
    return copy


def write_checkpoint(output: Path, pointer: Pointer, state: dict[str, Any]) -> None:
    """Write the state into last/, then the pointer, which gets its name, and delete earlier states.

    A state without an optimiser, as a finished run needs it, gets a name that begins with "weights".

    Raises:
        InputError: the disk is full, or the folder cannot be written; the checkpoint before is intact.
    """
    folder, kind = subfolder(output, LAST), "state" if "optimizer" in state else "weights"
    own = folder_id(output / POINTER) or ""
    partial = partial_of(folder / kind)
    try:
        with partial.open("xb") as file:
            torch.save(state, file)
            sync_file(file)
        with suppress(FileNotFoundError), (output / METRICS).open("r+b") as file:
            sync_file(file)
        path = folder / f"{kind}-{pointer.progress.step:08d}-{own}-{file_checksum(partial)}.pt"
        if not _is_intact(path):
            link(partial, path)
    except (OSError, RuntimeError) as error:  # torch.save reports a full disk as a RuntimeError
        raise unwritable(folder, error) from error
    finally:
        partial.unlink(missing_ok=True)
    write_json(output / POINTER, {"version": VERSION, **asdict(replace(pointer, state=path.name))})
    for old in folder.iterdir():  # the one before, and what a killed process left
        if re.fullmatch(STATE % own, old.name) and old != path and _is_intact(old):
            old.unlink(missing_ok=True)


def load_checkpoint(output: Path, identity: dict[str, Any]) -> tuple[Progress, dict[str, Any]]:
    """The newest complete checkpoint of the run that `identity` describes.

    Raises:
        InputError: there is none, it is cut short or altered, or it is another run's (the first difference is named).
    """
    pointer = read_pointer(output)
    check_identity(output, pointer.identity, identity)
    path = output / LAST / pointer.state
    if not _is_intact(path):
        raise InputError(
            f"{path}: the checkpoint is cut short or altered: start again without --resume in a new --output"
        )
    return pointer.progress, torch.load(path, map_location="cpu", weights_only=True)


def checksum_at(path: Path) -> str | None:
    """xxh3_64 of a file; None for what cannot be read."""
    with suppress(OSError):
        return file_checksum(path)
    return None


def _is_intact(path: Path) -> bool:
    """True for a state file whose name ends with its checksum, as it was written."""
    return checksum_at(path) == path.stem[-16:]


VERSION = 6
AGAIN = "start again without --resume in a new --output"


@dataclass(frozen=True)
class Progress:
    """Where a run stands: optimiser steps done; the dev score of the start, the best and the last, with their steps."""

    step: int = 0
    start_score: float | None = None
    best_score: float | None = None
    best_step: int | None = None
    last_score: float | None = None
    evaluated_step: int | None = None


@dataclass(frozen=True)
class Pointer:
    """The content of last/checkpoint.json. settings: every option; identity: what --resume must find unchanged.

    metrics: the "bytes" of metrics.jsonl by then, and their "xxh3_64". state: name of the state file in last/.
    """

    progress: Progress
    settings: dict[str, Any]
    identity: dict[str, Any]
    metrics: dict[str, Any]
    state: str = ""


def has_checkpoint(output: Path) -> bool:
    """True if `output` holds last/checkpoint.json; its content is not checked. Raises InputError if nobody may look."""
    try:
        return (output / POINTER).is_file()
    except OSError as error:  # Python 3.11 raises it for a folder without rights
        raise InputError(f"{output / POINTER}: cannot be read: {error.strerror}") from error


def read_pointer(output: Path) -> Pointer:
    """last/checkpoint.json.

    Raises:
        InputError: there is none, it is damaged, or another version of the program wrote it.
    """
    path = output / POINTER
    if not has_checkpoint(output):
        raise InputError(f"--resume: {output} holds no checkpoint ({POINTER}): {AGAIN}")
    content = read_sealed(path)
    if content.pop("version", None) != VERSION:
        raise InputError(
            f"{path}: cannot be read: it was changed, or another version of the program wrote it, or it is of another "
            f"run: go on with that version, or {AGAIN}"
        )
    return Pointer(**content | {"progress": Progress(**content["progress"])})


def check_identity(output: Path, saved: dict[str, Any], given: dict[str, Any]) -> None:
    """Refuse to go on with another corpus, model or setting, naming the first that differs."""
    if different := first_difference(saved, given):
        what, before, value = different
        raise InputError(
            f"--resume: {what} was {before} when {output} was started and is {value} now: "
            "give what was given then, or start a new --output"
        )


def first_difference(saved: dict[str, Any], given: dict[str, Any]) -> tuple[str, Any, Any] | None:
    """The name, the saved and the given value of the first entry of an identity that differs; None if none does.

    A setting that `saved` lacks is an option that was added later: the run used its default.
    """
    earlier = json.loads(json.dumps({**saved, "settings": {**defaults(), **saved.get("settings", {})}}))
    for group in given:
        for name, value in given[group].items():
            before = earlier.get(group, {}).get(name)
            if before != json.loads(json.dumps(value)):
                return (f"--{name.replace('_', '-')}" if group == "settings" else f"{group} ({name})"), before, value
    return None


def saved_options(output: Path) -> dict[str, Any]:
    """The option values that the run or runs in `output` were started with; {} if none are saved.

    --output and --trust-remote-code are not among them.

    Raises:
        InputError: the checkpoint is damaged.
    """
    settings: Any = read_pointer(output).settings if has_checkpoint(output) else read_mark(output).get("settings", {})
    kept = {name for name, option in options().items() if option.role != "call"} & settings.keys()
    kept -= {"output", "trust_remote_code"}  # no folder, perhaps of somebody else, may ask to run a model's code
    if settings.get("index") == str(Path(settings.get("output", "")) / INDEX):
        kept -= {"index"}  # it moves with the folder
    values = {name: settings[name] for name in kept}
    if settings.get("seeds"):  # and those that were added later
        added = map(int, read_sealed(output / SEEDS).get("seeds", ()))
        values["seeds"] = list(dict.fromkeys([*settings["seeds"], *added]))
        values.pop("seed", None)
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
