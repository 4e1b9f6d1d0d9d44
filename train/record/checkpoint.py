"""last/: everything that --resume needs, written in the background as best/ is.

The pointer, last/checkpoint.json, has the progress of the run and the name and checksum of the newest state file. It is
replaced after the state file is on the disk, so it always names a complete one. What --resume must find unchanged is in
run.json. The state contains no random generator: dropout is seeded from (seed, step, rank) and the data order from
(seed, epoch), so both can start at any step.

best/, and last/ of a finished run, are encoders for use too, in the layout of transformers and sentence-transformers.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import xxhash
from torch.utils._pytree import tree_map_only

from train.config import DEFAULTS, OPTIONS
from train.encoder.encoder import SentenceEncoder
from train.record.folder import (
    BEST,
    INDEX,
    LAST,
    METRICS,
    POINTER,
    SEEDS,
    read_json,
    read_mark,
    read_object,
    write_json,
)
from una_fast.errors import InputError
from una_fast.storage.files import file_checksum, new_file, remove_partial, sync_file, sync_folder, unwritable

VERSION = 9
AGAIN = "start again without --resume in a new --output"
STATES = ("state-0.pt", "state-1.pt")  # in last/, in turn: the previous one stays until the pointer names the next


@dataclass(frozen=True)
class Progress:
    """How far a run is: optimiser steps, and the dev scores of the initial, the best and the last encoder."""

    step: int = 0
    start_score: float | None = None
    best_score: float | None = None
    best_step: int | None = None
    last_score: float | None = None
    evaluated_step: int | None = None


def snapshot(state: Any) -> Any:
    """A copy of nested state on the CPU, which later steps do not change."""
    # from a GPU into pinned memory, at full speed
    copy = tree_map_only(torch.Tensor, lambda tensor: tensor.detach().to("cpu", non_blocking=True, copy=True), state)
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()  # waits for the copies, which are asynchronous
    return copy


def write_checkpoint(output: Path, progress: Progress, state: dict[str, Any]) -> None:
    """Write the state into last/, then the pointer to it. An InputError leaves the previous checkpoint intact."""
    folder = output / LAST
    before = read_object(output / POINTER).get("state")
    name, other = STATES[::-1] if before == STATES[0] else STATES
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_partial(folder)  # of a killed process
        with new_file(folder / name) as file:
            torch.save(state, file)
        with suppress(FileNotFoundError), (output / METRICS).open("r+b") as file:
            sync_file(file)
        checksum = file_checksum(folder / name)
    except (OSError, RuntimeError) as error:  # torch.save reports a full disk as a RuntimeError
        raise unwritable(folder, error) from error
    pointer = {"version": VERSION, "progress": asdict(progress), "state": name, "xxh3_64": checksum}
    write_json(output / POINTER, {**pointer, "checksum": _checksum(pointer)})
    (folder / other).unlink(missing_ok=True)


def _checksum(pointer: Mapping[str, Any]) -> str:
    """The checksum of the pointer's other fields, by which a flipped bit is noticed."""
    return xxhash.xxh3_64_hexdigest(json.dumps(pointer, sort_keys=True).encode())


def load_checkpoint(output: Path) -> tuple[Progress, dict[str, Any]]:
    """The newest checkpoint. Raises InputError if there is none, or it is damaged or of another version."""
    path = output / POINTER
    if not path.is_file():
        raise InputError(f"--resume: {output} has no checkpoint ({POINTER}): {AGAIN}")
    pointer = read_json(path)
    if pointer.get("version") != VERSION:
        raise InputError(f"{path}: another version of the program wrote it: continue with that version, or {AGAIN}")
    checksum = pointer.pop("checksum", None)  # pointers had none up to version 0.3
    state, what = output / LAST / str(pointer.get("state")), "the checkpoint is gone, cut short or altered"
    if checksum not in (None, _checksum(pointer)) or state.name not in STATES:
        raise InputError(f"{path}: {what}: {AGAIN}")
    try:
        if file_checksum(state) != pointer["xxh3_64"]:
            raise InputError(f"{state}: {what}: {AGAIN}")
        return Progress(**pointer["progress"]), torch.load(state, map_location="cpu", weights_only=True)
    except (OSError, KeyError, TypeError) as error:
        raise InputError(f"{state}: {what} ({error}): {AGAIN}") from error


def has_checkpoint(output: Path) -> bool:
    """Whether `output` has a checkpoint, or had one: a step had been taken when best/ was written."""
    return (output / POINTER).is_file() or bool(read_object(output / BEST / f"{BEST}.json").get("step"))


def flags_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the names of their options, as in a resume fingerprint."""
    return {f"--{name.replace('_', '-')}": value for name, value in settings.items()}


def first_difference(saved: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[str, Any, Any] | None:
    """The name, the saved and the given value of the first entry of `given` that differs; None if none does.

    An option that `saved` lacks was added later: the run used its default.
    """
    earlier, now = (json.loads(json.dumps(side)) for side in ({**flags_of(DEFAULTS), **saved}, dict(given)))
    return next(((name, earlier.get(name), given[name]) for name in now if earlier.get(name) != now[name]), None)


def check_resumed(output: Path, saved: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise InputError that names the first difference between two resume fingerprints, if they differ."""
    if different := first_difference(saved, given):
        what, before, value = different
        raise InputError(
            f"--resume: {what} was {before} when {output} was started and is {value} now: "
            "give what was given then, or start a new --output"
        )


def saved_options(output: Path) -> dict[str, Any]:
    """The option values that the run or runs in `output` were started with; {} if none are saved.

    --output and --trust-remote-code are not among them.
    """
    settings = read_mark(output).get("settings", {})
    kept = {name for name, option in OPTIONS.items() if option.role != "call"} & settings.keys()
    kept -= {"output", "trust_remote_code"}  # a folder, perhaps of somebody else, must not ask to run a model's code
    if settings.get("index") == str(Path(settings.get("output", "")) / INDEX):
        kept -= {"index"}  # it moves with the folder
    values = {name: settings[name] for name in kept}
    if settings.get("seeds"):  # and those that were added later
        added = map(int, read_object(output / SEEDS).get("seeds", ()))
        values["seeds"] = list(dict.fromkeys([*settings["seeds"], *added]))
        values.pop("seed", None)
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


PARTIAL = ".encoder.partial"  # a folder in best/ or last/ for the files that are not complete


def save_encoder(
    output: Path, name: str, encoder: SentenceEncoder, tokenizer: Any, note: dict[str, Any], weights: dict[str, Any]
) -> None:
    """Write the encoder with these weights of its backbone and the tokenizer into OUTPUT/NAME, each file by a rename.

    name: BEST or LAST. note: content of OUTPUT/NAME/NAME.json, written last. Raises InputError if writing fails.
    """
    folder = output / name
    partial = folder / PARTIAL  # inside, because best/ may be a link to another disk
    try:
        shutil.rmtree(partial, ignore_errors=True)  # of a killed process
        partial.mkdir(parents=True)
        encoder.backbone.save_pretrained(partial, state_dict=weights)
        tokenizer.save_pretrained(partial)
        encoder.layout.write(partial, encoder.backbone.config, tokenizer)
        mode = (partial / "config.json").stat().st_mode
        for path in sorted(path for path in partial.rglob("*") if path.is_file()):
            path.chmod(mode)  # safetensors hides its files from other users, such as that of a server
            with path.open("rb") as content:
                os.fsync(content.fileno())
            target = folder / path.relative_to(partial)
            target.parent.mkdir(exist_ok=True)
            path.replace(target)
        sync_folder(folder)
    except Exception as error:  # a full disk is a RuntimeError, a SafetensorError, or an Exception of tokenizers
        raise unwritable(folder, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    write_json(folder / f"{name}.json", note)
