"""Writing a folder of arrays: the files of the new arrays first, then, in one step, the manifest that lists them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from una_fast.errors import InputError
from una_fast.storage.files import (
    array_parts,
    checked_path,
    file_checksum,
    left_in,
    link,
    locked,
    new_file,
    remove_left,
    sync_folder,
    unwritable,
    write_bytes,
)
from una_fast.storage.manifest import MANIFEST, Manifest, array_file, find_manifest, is_saved, read_seal

WRITERS = 4  # files of a save that are written at a time


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
        part_of: the seal of the folder above, if this one belongs to it: then it is deleted when another content is
            saved there, and not written if that has happened meanwhile.

    Returns:
        The seal, a hash of all content.

    Raises:
        InputError: the folder cannot be written (permission, a file in its place, a full disk), or holds files and no
            manifest of this kind. What was saved there stays.

    """
    with saving(folder, kind, version, arrays, part_of) as save:

        def write(name: str) -> str:
            parts = array_parts(arrays[name])
            checksum = _checksum(parts)
            if path := save.missing(name, checksum):
                with new_file(path) as file:
                    file.writelines(parts)
            return checksum

        with ThreadPoolExecutor(WRITERS) as threads:  # one file waits for the disk while the next one is copied
            checksums = dict(zip(arrays, threads.map(write, arrays), strict=True))
        return save.publish(meta, checksums)


def adopt_arrays(
    built: Path, folder: Path, kind: str, version: int, meta: dict[str, Any], checksums: dict[str, str]
) -> str:
    """Save the arrays whose files lie in the folder `built`, as `save_arrays` does; the files are not copied.

    built: a folder on the file system of `folder`. If that has hard links, `built` keeps its files; else they are
    moved. checksums: xxh3_64 of each array's file, by the array's name. Returns the seal. Raises InputError as
    `save_arrays` does.
    """
    with saving(folder, kind, version, checksums) as save:
        for name, checksum in checksums.items():
            if path := save.missing(name, checksum):
                path.unlink(missing_ok=True)
                link(built / f"{name}.npy", path)
        return save.publish(meta, checksums)


class Save:
    """A folder that is locked, and that holds nothing, or an earlier save."""

    def __init__(self, folder: Path, kind: str, version: int, part_of: str | None):
        self._folder = folder
        self._kind = kind
        self._version = version
        self._part_of = part_of

    def missing(self, name: str, checksum: str) -> Path | None:
        """The file that is to hold the array of this checksum; None if it does."""
        path = self._folder / array_file(name, checksum)
        return None if _holds(path, checksum) else path

    def publish(self, meta: dict[str, Any], checksums: dict[str, str]) -> str:
        """Replace the manifest by one that lists these arrays. Returns the seal."""
        manifest = Manifest(self._kind, self._version, meta, checksums, self._part_of)
        if self._part_of is not None and read_seal(self._folder.parent) != self._part_of:
            raise InputError(f"{self._folder.parent}: another one was saved there meanwhile; load it again")
        sync_folder(self._folder)
        write_bytes(self._folder / MANIFEST, manifest.encode())
        return manifest.seal


@contextmanager
def saving(
    folder: Path, kind: str, version: int, names: Iterable[str], part_of: str | None = None, keep: bool = False
) -> Iterator[Save]:
    """Make and lock `folder`; after the block the files of `names` that its manifest does not list are deleted.

    keep: not after an error, so that the same can be started again and goes on. Raises InputError as `save_arrays`.
    """
    folder = resolved(folder) if part_of is None else resolved(folder.parent) / folder.name
    try:
        is_new = not os.path.lexists(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder) as held, locked(folder.parent) if part_of else nullcontext():
            if not held:
                raise InputError(f"{folder}: is a link, or was deleted meanwhile; give another folder")
            check_own(folder, kind)
            before = find_manifest(folder)
            if before is None:
                write_bytes(folder / MANIFEST, Manifest(kind, version, {}, {}, part_of).encode())
            done = False
            try:
                yield Save(folder, kind, version, part_of)
                done = True
            finally:
                if done or not keep:
                    _clean(folder, before, names, is_new)
    except OSError as error:
        raise unwritable(folder, error, "nothing was changed") from error


def check_own(folder: Path, kind: str) -> None:
    """Refuse a folder that holds something, unless it is what una_fast saved as this `kind`.

    Raises:
        InputError: with the name of the first entry.
        OSError: the folder cannot be read.
    """
    if not os.path.lexists(folder):
        return
    names = sorted(path.name for path in {*folder.iterdir()} - left_in(folder))
    manifest = find_manifest(folder)
    if names and manifest is None:
        raise InputError(
            f"{folder}: holds {names[0]!r}, and no manifest of una_fast; give a new folder, or empty this one"
        )
    if manifest and manifest.kind != kind:
        raise InputError(f"{folder}: holds a saved {manifest.kind!r}, not a {kind!r}; give another folder")


def check_unused(folder: Path, kind: str) -> None:
    """Refuse a folder that holds anything, except what a save of this `kind` left that was stopped."""
    try:
        check_own(folder, kind)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror or error}); give another folder") from error
    if is_saved(folder):
        raise InputError(f"{folder}: exists already: choose another folder, or delete it")


def resolved(folder: str | Path) -> Path:
    """`folder` as an absolute path without links. Raises InputError for what cannot be the name of a folder."""
    try:
        return checked_path(folder).resolve()
    except (OSError, RuntimeError) as error:  # Python 3.11: RuntimeError for a loop of links
        raise InputError(f"{folder}: cannot be written ({error}); give the name of a folder") from error


def _clean(folder: Path, before: Manifest | None, names: Iterable[str], is_new: bool) -> None:
    """Delete arrays that are not listed, parts of another content, what killed saves left, and an unused new folder."""
    now = find_manifest(folder)
    earlier = before.checksums if before else {}
    array = re.compile(rf"(?:{'|'.join({*names, *earlier})})-[0-9a-f]{{16}}\.npy")
    remove_left(folder)
    with suppress(OSError):
        for path in list(folder.iterdir()):
            if path.is_symlink() or now is None:
                continue
            if path.is_dir():
                _delete_part(path, now.seal)
            elif array.fullmatch(path.name) and path.name not in now.files:
                path.unlink()
        for name, checksum in earlier.items() if now != before else ():  # as older versions named them
            if _holds(folder / f"{name}.npy", checksum):
                (folder / f"{name}.npy").unlink()
        if now and now.is_claim:
            (folder / MANIFEST).unlink()
            if is_new:
                folder.rmdir()


def _delete_part(folder: Path, seal: str) -> None:
    """Delete a folder whose content is not the content of this seal; what others put there stays."""
    part = find_manifest(folder)
    if part and part.part_of not in (None, seal):
        for name in part.files - {MANIFEST}:
            (folder / name).unlink(missing_ok=True)
        (folder / MANIFEST).unlink()
        with suppress(OSError):
            folder.rmdir()


def _holds(path: Path, checksum: str) -> bool:
    """True if a file has this content."""
    with suppress(OSError):
        return not path.is_symlink() and file_checksum(path) == checksum
    return False


def _checksum(parts: Iterable[Any]) -> str:
    checksum = xxhash.xxh3_64()
    for part in parts:
        checksum.update(part)
    return checksum.hexdigest()
