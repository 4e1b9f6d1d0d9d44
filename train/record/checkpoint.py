"""Writes and reads the checkpoint in last/, which --resume needs, and writes encoders into best/ and last/.

last/checkpoint.json, the pointer, contains the progress of the run and the name and checksum of the newest state file.
The pointer is replaced after the state file is on the disk, so it always names a complete file. The state contains no
random generator, because every draw depends only on the seed and its place in the run.
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
from train.encoder.pretrained import SETTINGS
from train.record.folder import BEST, DEV, DEV_LAST, LAST, METRICS, POINTER, SUMMARY, is_finished
from una_fast.errors import InputError
from una_fast.storage.files import (
    file_checksum,
    new_file,
    read_json,
    read_object,
    remove_partial,
    sync_file,
    sync_folder,
    unwritable,
    write_json,
)

VERSION = 9
START_AGAIN = "start again without --resume in a new --output"
STATES = ("state-0.pt", "state-1.pt")  # used in turn: one stays until the pointer names the other
FILES = "files"  # key of NAME.json: path of each file of the encoder -> its valid checksums
PARTIAL = ".encoder.partial"  # folder in best/ or last/ for incomplete files


@dataclass(frozen=True)
class Progress:
    """How far a run has come, and the dev scores of the initial, the best and the last encoder."""

    step: int = 0  # number of optimiser steps taken
    start_score: float | None = None
    best_score: float | None = None
    best_step: int | None = None  # value of `step` when best_score was reached
    last_score: float | None = None
    evaluated_step: int | None = None  # value of `step` at the last evaluation

    def dev_scores(self, dev: str) -> dict[str, float | None]:
        """Return {"dev/NAME": best score, "dev_last/NAME": last score}, where NAME is `dev`, the dev file's name."""
        return {DEV + dev: self.best_score, DEV_LAST + dev: self.last_score}


def snapshot(state: Any) -> Any:
    """Copy all tensors in nested dicts and lists to the CPU, so that later steps do not change them."""
    # from a GPU the copy goes into pinned memory, at full speed
    copy = tree_map_only(torch.Tensor, lambda tensor: tensor.detach().to("cpu", non_blocking=True, copy=True), state)
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()  # waits for the copies, which are asynchronous
    return copy


def write_checkpoint(output: Path, progress: Progress, state: dict[str, Any]) -> None:
    """Write a checkpoint into last/. If this fails, the previous checkpoint is intact."""
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
    return xxhash.xxh3_64_hexdigest(json.dumps(pointer, sort_keys=True).encode())


def load_checkpoint(output: Path) -> tuple[Progress, dict[str, Any]]:
    """Read the progress and the state of the newest checkpoint."""
    path = output / POINTER
    if not path.is_file():
        raise InputError(f"--resume: {output} has no checkpoint ({POINTER}): {START_AGAIN}")
    pointer = read_json(path)
    if pointer.get("version") != VERSION:
        raise InputError(f"{path}: written by another version of una_fast: use that version, or {START_AGAIN}")
    checksum = pointer.pop("checksum", None)
    state, what = output / LAST / str(pointer.get("state")), "the checkpoint is missing, truncated or altered"
    if checksum != _checksum(pointer) or state.name not in STATES:
        raise InputError(f"{path}: {what}: {START_AGAIN}")
    try:
        if file_checksum(state) != pointer["xxh3_64"]:
            raise InputError(f"{state}: {what}: {START_AGAIN}")
        return Progress(**pointer["progress"]), torch.load(state, map_location="cpu", weights_only=True)
    except (OSError, KeyError, TypeError) as error:
        raise InputError(f"{state}: {what} ({error}): {START_AGAIN}") from error


def load_run(output: Path, fingerprint: Mapping[str, Any]) -> tuple[Progress, dict[str, Any] | None]:
    """Return the progress and the state of the run in `output`, to continue it with these options and inputs.

    The state is None if the run is finished, or was killed before its first checkpoint: then it starts again. Raises
    InputError if the run was started with another fingerprint, or if a file that it wrote is altered.
    """
    finished = is_finished(output)
    if not finished and not has_checkpoint(output):
        return Progress(), None
    summary = read_json(output / SUMMARY)
    check_resumed(output, summary.get("resume_fingerprint", {}), fingerprint)
    check_encoder(output, BEST)
    return (Progress(**summary["progress"]), None) if finished else load_checkpoint(output)


def has_checkpoint(output: Path) -> bool:
    """Return whether the run in `output` has ever saved a checkpoint. A deleted checkpoint counts too."""
    # a step above 0 in best/best.json is evidence of a deleted checkpoint
    return (output / POINTER).is_file() or bool(read_object(output / BEST / f"{BEST}.json").get("step"))


def first_difference(saved: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[str, Any, Any] | None:
    """Find the first difference between two fingerprints. Return its name, saved value and given value, or None."""
    defaults = {option.flag: option.default for option in OPTIONS.values()}  # of options newer than the saved run
    earlier, now = (json.loads(json.dumps(side)) for side in ({**defaults, **saved}, dict(given)))
    return next(((name, earlier.get(name), given[name]) for name in now if earlier.get(name) != now[name]), None)


def check_resumed(output: Path, saved: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise InputError if the resume fingerprint `given` differs from the one that was saved in `output`."""
    if difference := first_difference(saved, given):
        what, before, now = difference
        raise InputError(
            f"--resume: {what} was {before} when {output} was started and is {now} now: "
            "give the earlier value, or start a new --output"
        )


def save_encoder(
    output: Path, name: str, encoder: SentenceEncoder, tokenizer: Any, note: dict[str, Any], weights: dict[str, Any]
) -> None:
    """Write the encoder and the tokenizer into OUTPUT/NAME. Each file is complete when it appears there.

    note: the content of NAME.json, which is written last. weights: a copy of the backbone's state_dict, because
    training continues meanwhile.
    """
    folder, noted = output / name, output / name / f"{name}.json"
    partial = folder / PARTIAL  # inside, because best/ may be a link to another disk
    try:
        shutil.rmtree(partial, ignore_errors=True)  # files of a killed process
        partial.mkdir(parents=True)
        encoder.backbone.save_pretrained(partial, state_dict=weights)
        tokenizer.save_pretrained(partial)
        encoder.layout.write(partial, encoder.backbone.config, tokenizer)
        mode = (partial / "config.json").stat().st_mode
        paths = sorted(path for path in partial.rglob("*") if path.is_file())
        stable = (path for path in paths if path.name != SETTINGS)  # users may add a prompt there
        checksums = {str(path.relative_to(partial)): [file_checksum(path)] for path in stable}
        if before := read_object(noted):  # until the last file is replaced, the earlier content of each is valid too
            valid = {file: [*_valid(before).get(file, []), *new] for file, new in checksums.items()}
            write_json(noted, {**before, FILES: {**_valid(before), **valid}})
        targets = [folder / path.relative_to(partial) for path in paths]
        for path, target in zip(paths, targets, strict=True):
            path.chmod(mode)  # safetensors makes its files unreadable for other users, such as a server's
            with path.open("rb") as content:
                os.fsync(content.fileno())
            target.parent.mkdir(exist_ok=True)
            path.replace(target)
        for changed in {folder, *(target.parent for target in targets)}:
            sync_folder(changed)
    except Exception as error:  # a full disk is a RuntimeError, a SafetensorError, or an Exception of tokenizers
        raise unwritable(folder, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    write_json(noted, {**note, FILES: checksums})


def check_encoder(output: Path, name: str) -> None:
    """Raise InputError if a file of the encoder in OUTPUT/NAME is not one that a run wrote."""
    for file, checksums in _valid(read_object(output / name / f"{name}.json")).items():
        path = output / name / file
        if not path.is_file() or file_checksum(path) not in checksums:
            raise InputError(f"{path}: missing, truncated or altered since the run wrote it: {START_AGAIN}")


def _valid(note: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the valid checksums of each file of an encoder, by its path. note: the content of its NAME.json."""
    files = note.get(FILES)
    return files if isinstance(files, dict) else {}
