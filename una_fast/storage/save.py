"""Writing a folder of arrays: the new content is complete on the disk before it takes the place of the old."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from una_fast.errors import InputError
from una_fast.storage.files import checked_path, sync_folder, write_array, write_bytes
from una_fast.storage.manifest import MANIFEST, Manifest, read_seal
from una_fast.storage.ownership import check_replaceable
from una_fast.storage.place import clean_leftovers, move_into_place, partial_folder, recover


def save_arrays(
    folder: Path,
    kind: str,
    version: int,
    meta: dict[str, Any],
    arrays: dict[str, np.ndarray],
    part_of: str | None = None,
) -> str:
    """Write `arrays` and `meta` to `folder`, replacing what was saved there only once the new files are complete.

    Args:
        folder: where to write; its parents are made.
        kind: what the folder is, such as "index"; `load_arrays` refuses another kind.
        version: the layout's version; `load_arrays` refuses another one.
        meta: anything JSON can hold.
        arrays: name to array, of any shape and plain dtype.
        part_of: the seal of the folder above, if this one belongs to it: then it is replaced together with that folder,
            and not written if that folder has been replaced meanwhile.

    Returns:
        The seal, a hash of all content.

    Raises:
        InputError: the folder cannot be written (permission, a file in its place, a full disk), or holds what
            `save_arrays` did not write, or another kind. Nothing is changed.

    """
    folder = resolved(folder)
    try:
        recover(folder)
        check_replaceable(folder, kind)
        clean_leftovers(folder)
        with partial_folder(folder) as partial:
            checksums = {name: write_array(partial / f"{name}.npy", array) for name, array in arrays.items()}
            manifest = Manifest(kind, version, meta, checksums, part_of)
            write_bytes(partial / MANIFEST, manifest.encode())
            sync_folder(partial)
            if part_of is not None and read_seal(folder.parent) != part_of:
                raise InputError(f"{folder.parent}: another one was saved there meanwhile; load it again")
            check_replaceable(folder, kind)
            move_into_place(partial, folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror or error}); nothing was changed") from error
    return manifest.seal


def adopt_arrays(
    built: Path, folder: Path, kind: str, version: int, meta: dict[str, Any], checksums: dict[str, str]
) -> str:
    """Save the arrays whose files lie in the folder `built`, as `save_arrays` does; the files are not copied.

    built: a folder on the file system of `folder`. If that has hard links, `built` keeps its files; else they are
    moved. checksums: xxh3_64 of each array's file, by the array's name. Returns the seal. Raises InputError as
    `save_arrays` does.
    """
    folder = resolved(folder)
    try:
        recover(folder)
        check_replaceable(folder, kind)
        clean_leftovers(folder)
        with partial_folder(folder) as partial:
            for name in checksums:
                _link(built / f"{name}.npy", partial / f"{name}.npy")
            manifest = Manifest(kind, version, meta, checksums)
            write_bytes(partial / MANIFEST, manifest.encode())
            sync_folder(partial)
            check_replaceable(folder, kind)
            move_into_place(partial, folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror or error}); nothing was changed") from error
    return manifest.seal


def _link(file: Path, name: Path) -> None:
    try:
        os.link(file, name)
    except OSError:  # a file system without hard links
        file.rename(name)


def resolved(folder: str | Path) -> Path:
    """`folder` as an absolute path without links, if it can be replaced as a whole.

    Raises:
        InputError: the current folder or one above it, the top of a file system, or no name of a folder.
    """
    try:
        path = checked_path(folder).resolve()
        is_current = path in _current_folders()
        is_mounted = os.path.ismount(path)
    except (OSError, RuntimeError) as error:  # Python 3.11: RuntimeError for a loop of links
        raise InputError(f"{folder}: cannot be written ({error}); give the name of a folder") from error
    if is_mounted:
        raise InputError(f"{folder}: is the top of a file system, which cannot be replaced; give a folder inside it")
    if is_current:
        raise InputError(f"{folder}: holds the current folder, and saving replaces it; give a folder inside it")
    return path


def _current_folders() -> list[Path]:
    """The folder that this process works in and those above it; none where it has been deleted."""
    try:
        current = Path.cwd()
    except OSError:
        return []
    return [current, *current.parents]
