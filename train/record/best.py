"""best/, and last/ of a finished run: encoders for use, in the layout of transformers and of sentence-transformers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from train.encoder.encoder import SentenceEncoder
from train.record.folder import BEST, LAST, check_json, partial_folder, read_sealed, subfolder, write_json
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
            encoder.backbone.save_pretrained(partial, state_dict=weights)  # type: ignore[operator]
            tokenizer.save_pretrained(partial)
            encoder.layout.write(partial, encoder.backbone.config, tokenizer)
            _put(partial, output, name, note)
        sync_folder(folder)
    except (OSError, RuntimeError, SafetensorError) as error:  # the last two for a full disk too
        raise unwritable(folder, error) from error


def is_trained(output: Path) -> bool:
    """True if OUTPUT/best holds an encoder of a later step than the start."""
    return read_sealed(output / NOTES[BEST]).get("step", 0) > 0


def check_encoder(output: Path, name: str, files: Iterable[str] = ()) -> None:
    """Refuse to write into OUTPUT/NAME if a file there is not as the run wrote it. files: names that it will write.

    Files of other names are the user's, and stay.
    """
    check_json(output / NOTES[name])
    known = read_sealed(output / NOTES[name]).get("files", {})
    for file in {*known, *files}:
        path = output / name / file
        if os.path.lexists(path) and (not path.is_file() or file_checksum(path) not in known.get(file, ())):
            raise InputError(f"{path}: was changed since the run wrote it, and stays: move it away and give --resume")


def _put(partial: Path, output: Path, name: str, note: dict[str, Any]) -> None:
    """Move the files from `partial` to OUTPUT/NAME.

    The note comes first. It has the files' checksums of now and of before, so that after a kill between two renames
    each file is known.
    """
    paths = sorted(path for path in partial.rglob("*") if path.is_file())
    now = {path.relative_to(partial).as_posix(): _synced_checksum(path) for path in paths}
    check_encoder(output, name, now)
    there = {file: [file_checksum(path)] for file in now if (path := output / name / file).is_file()}
    files = {file: [one, *there.get(file, ())] for file, one in now.items()}
    write_json(output / NOTES[name], {**note, "files": files})
    for file in now:
        subfolder(output / name, Path(file).parent.as_posix())
        (partial / file).replace(output / name / file)


def _synced_checksum(path: Path) -> str:
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return file_checksum(path)
