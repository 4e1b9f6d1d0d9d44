"""best/, and last/ of a finished run: encoders for use, in the layout of transformers and of sentence-transformers."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from train.encoder.encoder import SentenceEncoder
from train.record.checkpoint import AGAIN, Progress, checksum_at, read_pointer
from train.record.folder import BEST, LAST, check_json, folder_id, partial_folder, read_sealed, subfolder, write_json
from train.record.old_files import link
from una_fast.errors import InputError
from una_fast.storage.files import file_checksum, sync_folder, unwritable

# where the encoder comes from, and the checksums of the folder's other files, as they are and were
NOTES = {BEST: f"{BEST}/best.json", LAST: f"{LAST}/encoder.json"}


def save_encoder(
    output: Path, name: str, encoder: SentenceEncoder, tokenizer: Any, note: dict[str, Any], weights: dict[str, Any]
) -> None:
    """Put the encoder with these weights of its backbone into OUTPUT/NAME, file by file, each by a rename.

    name: BEST or LAST.

    Raises:
        InputError: the folder cannot be written, or holds a file of a name that is needed and that is not the run's.
    """
    folder = subfolder(output, name)
    try:
        with partial_folder(folder) as partial:
            encoder.backbone.save_pretrained(partial, state_dict=weights)
            tokenizer.save_pretrained(partial)
            encoder.layout.write(partial, encoder.backbone.config, tokenizer)
            _put(partial, output, name, note)
        sync_folder(folder)
    except (OSError, RuntimeError, SafetensorError) as error:  # the last two for a full disk too
        number = re.search(r"os error (\d+)", str(error))  # safetensors tells it in its message alone
        raise unwritable(folder, OSError(int(number[1]), os.strerror(int(number[1]))) if number else error) from error


def with_best(output: Path, progress: Progress) -> Progress:
    """`progress` with the best step of OUTPUT/best, which a killed process may have saved after its checkpoint.

    Raises:
        InputError: OUTPUT/best holds neither the best encoder of the checkpoint nor a better one of a later step, or
            one of a later step than the start without a checkpoint.
    """
    note = read_sealed(output / NOTES[BEST])
    step, score = note.get("step"), note.get("stsb_dev")
    if step:
        read_pointer(output)
    expected: tuple[Any, Any] = progress.best_step, progress.best_score
    if progress.evaluated_step is None:  # without dev pairs the newest encoder counts as the best
        expected = progress.step or None, None
    changed, is_same = changed_file(output / BEST, note), (step, score) == expected
    if is_same and not changed:
        return progress
    is_better = progress.best_score is None or (score is not None and score > progress.best_score)
    if is_same or step is None or step < progress.step or not is_better:
        raise InputError(
            f"{output / BEST}: is not as the run saved it at step {expected[0]} ({changed or 'best.json'} is missing "
            f"or another): put it back, or {AGAIN}"
        )
    check_encoder(output, BEST)
    return progress if changed or score is None else replace(progress, best_step=step, best_score=score)


def check_saved(folder: Path) -> None:
    """Refuse a run's best/ or last/, or a copy of them, if a file is missing or was changed since it was saved."""
    for note in (folder / Path(name).name for name in NOTES.values()):
        if folder_id(note):
            check_json(note)
        if changed := changed_file(folder, read_sealed(note)):
            raise InputError(
                f"{folder / changed}: is missing, or was changed since the run saved it: put it back, or delete "
                f"{note.name} to take the folder as it is"
            )


def changed_file(folder: Path, note: Mapping[str, Any]) -> str | None:
    """The first file that a note lists and that is missing, or has another content; None if all are as saved."""
    files = note.get("files", {})
    return next((file for file, known in files.items() if checksum_at(folder / file) != known[0]), None)


def check_encoder(output: Path, name: str, files: Iterable[str] = ()) -> None:
    """Refuse to write into OUTPUT/NAME if a file there is not as the run wrote it. files: names that it will write.

    Files of other names are the user's, and stay.
    """
    check_json(output / NOTES[name])
    known = read_sealed(output / NOTES[name]).get("files", {})
    for file in {*known, *files}:
        _check_file(output / name / file, known.get(file, ()))


def _check_file(path: Path, known: Collection[str | None]) -> bool:
    """True for a file of a known checksum, False where there is none. Raises InputError for any other one."""
    is_there = os.path.lexists(path)
    if is_there and checksum_at(path) not in known:
        raise InputError(f"{path}: was changed since the run wrote it, and stays: move it away and give --resume")
    return is_there


def _put(partial: Path, output: Path, name: str, note: dict[str, Any]) -> None:
    """Move the files from `partial` to OUTPUT/NAME.

    The note comes first. It has the files' checksums of now and of before, so that after a kill between two renames
    each file is known.
    """
    now: dict[str, str] = {}
    for path in sorted(path for path in partial.rglob("*") if path.is_file()):
        with path.open("rb") as content:
            os.fsync(content.fileno())
        now[path.relative_to(partial).as_posix()] = file_checksum(path)
    check_encoder(output, name, now)
    there = {file: [file_checksum(path)] for file in now if (path := output / name / file).is_file()}
    files = {file: [one, *there.get(file, ())] for file, one in now.items()}
    write_json(output / NOTES[name], {**note, "files": files})
    for file, known in files.items():  # each looked at once more, because large files take seconds
        path = subfolder(output / name, Path(file).parent.as_posix()) / Path(file).name
        (Path.replace if _check_file(path, known) else link)(partial / file, path)
