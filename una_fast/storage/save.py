"""Writing a folder of arrays: the files of the new arrays first, then, in one step, the manifest that lists them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from una_fast.errors import InputError
from una_fast.storage.files import (
    array_parts,
    checked_path,
    checksum_of,
    file_checksum,
    left_in,
    locked,
    new_file,
    partial_of,
    remove_left,
    sync_folder,
    unwritable,
    write_bytes,
)
from una_fast.storage.manifest import (
    MANIFEST,
    Manifest,
    array_file,
    find_manifest,
    find_manifests,
    is_outdated,
    is_saved,
    read_seal,
)

WRITERS = 4  # files of a save that are written at a time: one waits for the disk while the next one is copied


def save_arrays(
    folder: Path,
    kind: str,
    version: int,
    meta: dict[str, Any],
    arrays: Mapping[str, np.ndarray],
    part_of: str | None = None,
) -> str:
    """Write `arrays` and `meta` to `folder`; what was saved there before stays until all new files are complete.

    Args:
        folder: where to write; it and its parents are made.
        kind: what the folder is, such as "index"; `load_arrays` refuses another kind.
        version: the layout's version; `load_arrays` refuses another one.
        meta: anything JSON can hold.
        arrays: name to array, of any shape and plain dtype.
        part_of: the seal of the folder above, if this one belongs to it under its name: then it is deleted when another
            content is saved there, and not written if that has happened meanwhile.

    Returns:
        The seal, a hash of all content.

    Raises:
        InputError: the folder cannot be written (permission, a file in its place, a full disk), holds files and no
            manifest of this kind, or holds an array that was changed. What was saved there stays.

    """

    def write(name: str, path: Path) -> None:
        with new_file(path, replace=False) as file:
            file.writelines(array_parts(arrays[name]))

    checksums = {name: checksum_of(array_parts(array)) for name, array in arrays.items()}
    place = part_of and f"{part_of}/{folder.name}"
    return publish(folder, Manifest(kind, version, meta, checksums, place), write, WRITERS)


def publish(
    folder: Path, manifest: Manifest, write: Callable[[str, Path], None], writers: int = 1, is_copy: bool = False
) -> str:
    """Make `folder` hold what `manifest` lists, and return the seal. One process at a time does so for a folder.

    Manifests of the earlier arrays and of the new ones lie there as temporary files meanwhile, so that the next call
    knows what a killed one has written.

    write: called with the name and the new file of each array that is not there, by `writers` threads. is_copy: refuse
    a folder of other content, and after an error keep the files written so far, for the next call. Raises InputError as
    `save_arrays` does.
    """
    folder = resolved(folder) if manifest.part_of is None else resolved(folder.parent) / folder.name

    def write_one(name: str) -> None:
        write(name, folder / array_file(name, manifest.checksums[name]))

    try:
        is_new = not os.path.lexists(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder) as held, locked(folder.parent) if manifest.part_of else nullcontext():
            if not held:
                raise InputError(f"{folder}: is a link, or was deleted meanwhile; give another folder")
            before = find_manifest(folder)
            check_own(folder, manifest.kind, unused=is_copy and before != manifest)
            missing = _missing(folder, manifest)
            try:
                if missing or before != manifest:
                    new = replace(manifest, checksums={name: manifest.checksums[name] for name in missing})
                    for listed in (new, *([before] if before else [])):
                        write_bytes(partial_of(folder / MANIFEST), listed.encode())
                    with ThreadPoolExecutor(writers) as threads:
                        list(threads.map(write_one, missing))
                    if manifest.part_of not in (None, f"{read_seal(folder.parent)}/{folder.name}"):
                        raise InputError(f"{folder.parent}: another index was saved there meanwhile; load it again")
                    if find_manifest(folder) != before:
                        raise InputError(f"{folder}: its {MANIFEST!r} was changed meanwhile; give another folder")
                    sync_folder(folder)
                    write_bytes(folder / MANIFEST, manifest.encode(), replace=before is not None)
            finally:
                if not is_copy or find_manifest(folder) == manifest:
                    _clean(folder)
                if is_new:
                    with suppress(OSError):  # it holds what was saved, or files of others
                        folder.rmdir()
    except OSError as error:
        raise unwritable(folder, error, "nothing was changed") from error
    return manifest.seal


def check_own(folder: Path, kind: str, unused: bool = False) -> None:
    """Refuse a folder that holds something, unless una_fast saved it as this `kind`, or began to; `unused`: began to.

    Raises InputError: it holds something else, or cannot be read.
    """
    try:
        names = sorted(path.name for path in {*folder.iterdir()} - left_in(folder))
    except FileNotFoundError:
        return
    except OSError as error:
        raise unwritable(folder, error, "give another folder") from error
    manifests = find_manifests(folder)
    if names and not manifests:
        raise InputError(
            f"{folder}: holds {names[0]!r}, and no manifest of una_fast; give a new folder, or empty this one"
        )
    for manifest in manifests:
        if manifest.kind != kind:
            raise InputError(f"{folder}: holds a saved {manifest.kind!r}, not a {kind!r}; give another folder")
    if unused and is_saved(folder):
        raise InputError(f"{folder}: exists already: choose another folder, or delete it")


def resolved(folder: str | Path) -> Path:
    """`folder` as an absolute path without links. Raises InputError for an address, and what no folder can be named."""
    if "://" in str(folder):
        raise InputError(f"{folder}: is an address; save to a disk of this machine, and copy it with `una-fast upload`")
    try:
        return checked_path(folder).resolve()
    except (OSError, RuntimeError) as error:  # Python 3.11: RuntimeError for a loop of links
        raise InputError(f"{folder}: cannot be written ({error}); give the name of a folder") from error


def _missing(folder: Path, manifest: Manifest) -> list[str]:
    """The arrays that are not there. Raises InputError for a file of an array's name that holds something else."""
    paths = {name: folder / array_file(name, checksum) for name, checksum in manifest.checksums.items()}
    missing = [name for name, path in paths.items() if not _holds(path, manifest.checksums[name])]
    for path in map(paths.__getitem__, missing):
        if os.path.lexists(path):
            raise InputError(f"{path}: holds something else than una_fast wrote there; move it, or delete it")
    return missing


def _clean(folder: Path) -> None:
    """Delete what saves have written and the manifest does not list, parts of another content, and temporary files."""
    now = find_manifest(folder)
    with suppress(OSError):
        _delete_arrays(folder, now.files if now else ())
        for part in [*folder.iterdir()]:
            if now and not part.is_symlink() and is_outdated(part, now.seal):
                _delete_arrays(part)
                (part / MANIFEST).unlink(missing_ok=True)
                remove_left(part)
                with suppress(OSError):  # it holds files of others
                    part.rmdir()
        remove_left(folder)


def _delete_arrays(folder: Path, kept: Collection[str] = ()) -> None:
    """Delete the arrays that the manifests of a folder list, except the `kept` files and what was changed since."""
    for manifest in find_manifests(folder):
        for name, checksum in manifest.checksums.items():
            path = folder / array_file(name, checksum)
            if path.name not in kept and _holds(path, checksum):
                path.unlink()


def _holds(path: Path, checksum: str) -> bool:
    """True if a file has this content."""
    with suppress(OSError):
        return not path.is_symlink() and file_checksum(path) == checksum
    return False
