"""Writes and reads last/, which contains what --resume needs, and writes encoders into best/ and last/.

The pointer, last/checkpoint.json, contains the progress of the run and the name and checksum of the newest state file.
It is replaced after the state file is on the disk, so it always names a complete file. run.json contains the settings
and hashes that must be the same when --resume continues the run. The state contains no random generator, because the
dropout masks depend only on (seed, step, rank), and the data order depends only on (seed, epoch).

best/, and last/ of a finished run, can be loaded by transformers and sentence-transformers.
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

from train.config import OPTIONS
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
START_AGAIN = "start again without --resume in a new --output"
STATES = ("state-0.pt", "state-1.pt")  # used in turn: one stays until the pointer names the other


@dataclass(frozen=True)
class Progress:
    """Stores how many steps a run has taken, and the dev scores of the initial, the best and the last encoder."""

    step: int = 0  # number of optimiser steps taken
    start_score: float | None = None
    best_score: float | None = None
    best_step: int | None = None  # value of `step` when best_score was reached
    last_score: float | None = None
    evaluated_step: int | None = None  # value of `step` at the last evaluation


def snapshot(state: Any) -> Any:
    """Copy all tensors in nested dicts and lists to the CPU, so that later training steps do not change them."""
    # from a GPU the copy goes into pinned memory, at full speed
    copy = tree_map_only(torch.Tensor, lambda tensor: tensor.detach().to("cpu", non_blocking=True, copy=True), state)
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()  # waits for the copies, which are asynchronous
    return copy


def write_checkpoint(output: Path, progress: Progress, state: dict[str, Any]) -> None:
    """Write the state into last/, then last/checkpoint.json, which names the state file.

    An InputError leaves the previous checkpoint intact.
    """
    folder = output / LAST
    before = read_object(output / POINTER).get("state")
    name, other = STATES[::-1] if before == STATES[0] else STATES
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_partial(folder)  # files of a killed process
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
    """Compute a checksum of the fields of last/checkpoint.json, to detect a flipped bit."""
    return xxhash.xxh3_64_hexdigest(json.dumps(pointer, sort_keys=True).encode())


def load_checkpoint(output: Path) -> tuple[Progress, dict[str, Any]]:
    """Read the newest checkpoint. Raises InputError if there is none, or it is damaged or of another version."""
    path = output / POINTER
    if not path.is_file():
        raise InputError(f"--resume: {output} has no checkpoint ({POINTER}): {START_AGAIN}")
    pointer = read_json(path)
    if pointer.get("version") != VERSION:
        raise InputError(f"{path}: written by another version of una_fast: use that version, or {START_AGAIN}")
    checksum = pointer.pop("checksum", None)  # pointers had none up to version 0.3
    state, what = output / LAST / str(pointer.get("state")), "the checkpoint is missing, truncated or altered"
    if checksum not in (None, _checksum(pointer)) or state.name not in STATES:
        raise InputError(f"{path}: {what}: {START_AGAIN}")
    try:
        if file_checksum(state) != pointer["xxh3_64"]:
            raise InputError(f"{state}: {what}: {START_AGAIN}")
        return Progress(**pointer["progress"]), torch.load(state, map_location="cpu", weights_only=True)
    except (OSError, KeyError, TypeError) as error:
        raise InputError(f"{state}: {what} ({error}): {START_AGAIN}") from error


def has_checkpoint(output: Path) -> bool:
    """Return whether the run in `output` has a checkpoint, or had one that was deleted.

    A step above 0 in best/best.json counts as evidence of a deleted checkpoint.
    """
    return (output / POINTER).is_file() or bool(read_object(output / BEST / f"{BEST}.json").get("step"))


def first_difference(saved: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[str, Any, Any] | None:
    """Find the first difference between two fingerprints. Return its name, saved value and given value, or None.

    An option that is missing from `saved` is newer than the saved run, so the option's default is compared.
    """
    defaults = {option.flag: option.default for option in OPTIONS.values()}
    earlier, now = (json.loads(json.dumps(side)) for side in ({**defaults, **saved}, dict(given)))
    return next(((name, earlier.get(name), given[name]) for name in now if earlier.get(name) != now[name]), None)


def check_resumed(output: Path, saved: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise InputError if two resume fingerprints differ. The message names the first difference."""
    if difference := first_difference(saved, given):
        what, before, now = difference
        raise InputError(
            f"--resume: {what} was {before} when {output} was started and is {now} now: "
            "give the earlier value, or start a new --output"
        )


def saved_options(output: Path) -> dict[str, Any]:
    """Return the options with which the run in `output` was started, by field name; {} if none are saved.

    The result contains neither --output nor --trust-remote-code. With --seeds, it contains all seeds of the folder.
    """
    settings = read_mark(output).get("settings", {})
    names = {name for name, option in OPTIONS.items() if option.role != "call"} & settings.keys()
    names -= {"output", "trust_remote_code"}  # a folder of somebody else must not decide that a model's code is run
    if settings.get("index") == str(Path(settings.get("output", "")) / INDEX):
        names -= {"index"}  # it moves with the folder
    values = {name: settings[name] for name in names}
    if settings.get("seeds"):  # also seeds that were added later
        added = map(int, read_object(output / SEEDS).get("seeds", ()))
        values["seeds"] = list(dict.fromkeys([*settings["seeds"], *added]))
        values.pop("seed", None)
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


PARTIAL = ".encoder.partial"  # folder in best/ or last/ for incomplete files


def save_encoder(
    output: Path, name: str, encoder: SentenceEncoder, tokenizer: Any, note: dict[str, Any], weights: dict[str, Any]
) -> None:
    """Write the encoder and the tokenizer into OUTPUT/NAME. Each file is complete when it appears there.

    name: BEST or LAST. note: content of OUTPUT/NAME/NAME.json, which is written last. weights: the backbone's weights
    to save, by name. Raises InputError if writing fails.
    """
    folder = output / name
    partial = folder / PARTIAL  # inside, because best/ may be a link to another disk
    try:
        shutil.rmtree(partial, ignore_errors=True)  # files of a killed process
        partial.mkdir(parents=True)
        encoder.backbone.save_pretrained(partial, state_dict=weights)
        tokenizer.save_pretrained(partial)
        encoder.layout.write(partial, encoder.backbone.config, tokenizer)
        mode = (partial / "config.json").stat().st_mode
        for path in sorted(path for path in partial.rglob("*") if path.is_file()):
            path.chmod(mode)  # safetensors makes its files unreadable for other users, such as a server's
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
