"""best/: an encoder for use, in the layout of transformers and of sentence-transformers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from train.encoder.encoder import SentenceEncoder
from train.record.folder import BEST, check_json, partial_folder, read_sealed, subfolder, write_json
from una_fast.errors import InputError
from una_fast.storage.files import file_checksum, sync_folder, unwritable

NOTE = f"{BEST}/best.json"  # where the encoder comes from, and the checksums of the other files, as they are and were


def save_best(
    output: Path, encoder: SentenceEncoder, tokenizer: Any, note: dict[str, Any], weights: dict[str, Any]
) -> None:
    """Put the encoder with these weights of its backbone into OUTPUT/best, file by file, each by a rename.

    Raises:
        InputError: the folder cannot be written, or holds a file of a name that is needed and that is not the run's.
    """
    folder = subfolder(output, BEST)
    try:
        with partial_folder(folder) as partial:
            encoder.backbone.save_pretrained(partial, state_dict=weights)  # type: ignore[operator]
            tokenizer.save_pretrained(partial)
            encoder.layout.write(partial, encoder.backbone.config, tokenizer)
            _put(partial, output, note)
        sync_folder(folder)
    except (OSError, RuntimeError) as error:
        raise unwritable(folder, error) from error


def is_trained(output: Path) -> bool:
    """True if OUTPUT/best holds an encoder of a later step than the start."""
    return read_sealed(output / NOTE).get("step", 0) > 0


def check_best(output: Path, names: Iterable[str] = ()) -> None:
    """Refuse to write into OUTPUT/best if a file there is not as the run wrote it. names: of files that it will write.

    Files of other names are the user's, and stay.
    """
    check_json(output / NOTE)
    known = read_sealed(output / NOTE).get("files", {})
    for name in {*known, *names}:
        path = output / BEST / name
        if os.path.lexists(path) and (not path.is_file() or file_checksum(path) not in known.get(name, ())):
            raise InputError(f"{path}: was changed since the run wrote it, and stays: move it away and give --resume")


def _put(partial: Path, output: Path, note: dict[str, Any]) -> None:
    """Move the files from `partial` to OUTPUT/best.

    best.json comes first. It names the files' checksums of now and of before, so that after a kill between two renames
    each file is known.
    """
    paths = sorted(path for path in partial.rglob("*") if path.is_file())
    now = {path.relative_to(partial).as_posix(): _synced_checksum(path) for path in paths}
    check_best(output, now)
    there = {name: [file_checksum(path)] for name in now if (path := output / BEST / name).is_file()}
    write_json(output / NOTE, {**note, "files": {name: [one, *there.get(name, ())] for name, one in now.items()}})
    for name in now:
        subfolder(output / BEST, Path(name).parent.as_posix())
        (partial / name).replace(output / BEST / name)


def _synced_checksum(path: Path) -> str:
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return file_checksum(path)
