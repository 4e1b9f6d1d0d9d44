"""Folders of arrays: memory-mapped, checksummed, written whole or not at all.

A folder holds one ``NAME.npy`` an array and a ``manifest.json`` that names their checksums (xxh3, 35 GB/s on one
core of the machine measured, so every load verifies every byte).
"""

from __future__ import annotations

import errno
import glob
import json
import os
import shutil
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from una_fast.errors import InputError

MANIFEST = "manifest.json"
REBUILD = "delete the folder and build it again"
RETRIES, PAUSE = 50, 0.01  # s, of a load while another process saves: two renames take microseconds
OWN_SUFFIXES = (".npy", ".partial", ".replaced")  # the last two: what a killed process left


def save_arrays(folder: Path, kind: str, version: int, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write `arrays` and `meta` to `folder`, replacing what was there only once the new files are complete.

    Args:
        folder: where to write; its parents are made.
        kind: what the folder is, such as "index"; `load_arrays` refuses another kind.
        version: the layout's version; `load_arrays` refuses another one.
        meta: anything JSON can hold.
        arrays: name to array, of any shape and plain dtype.

    Raises:
        InputError: the folder cannot be written (permission, a file in its place, a full disk), or holds what
            `save_arrays` did not write. Nothing is changed.

    """
    folder = Path(folder).resolve()  # through a symbolic link, and a name for "."
    partial = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.partial")
    try:
        _check_replaceable(folder)
        partial.mkdir(parents=True)
        checksums = {name: _write_array(partial / f"{name}.npy", array) for name, array in arrays.items()}
        manifest = {"kind": kind, "version": version, "meta": meta, "checksums": checksums}
        _write_synced(partial / MANIFEST, _sealed(manifest))
        _sync_folder(partial)
        _move_into_place(partial, folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror or error}); nothing was changed") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def load_arrays(folder: Path, kind: str, version: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The `meta` and the read-only, memory-mapped arrays of a folder that `save_arrays` wrote.

    Raises:
        InputError: no such folder, another kind or version, a file missing, cut short or with a changed byte.

    """
    folder = Path(folder)
    for _ in range(RETRIES):
        before = _identity(folder)
        try:
            loaded = _load(folder, kind, version)
            if _identity(folder) == before:
                return loaded
        except InputError:
            if _identity(folder) == before and not _is_being_replaced(folder):
                raise
        time.sleep(PAUSE)  # another process is saving there
    return _load(folder, kind, version)


def _load(folder: Path, kind: str, version: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    manifest = _read_manifest(folder, kind, version)
    checksums = manifest["checksums"].items()
    return manifest["meta"], {name: _map_array(folder / f"{name}.npy", checksum) for name, checksum in checksums}


def _identity(folder: Path) -> tuple[int, int] | None:
    """What differs between a folder and the one that takes its place; None if there is none."""
    try:
        about = folder.stat()
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns


def _is_being_replaced(folder: Path) -> bool:
    """True between the two renames of `_move_into_place`, or if a process was killed between them."""
    folder = folder.resolve()
    return any(folder.parent.glob(f".{glob.escape(folder.name)}.*.replaced"))


def _write_array(path: Path, array: np.ndarray) -> str:
    with path.open("wb") as file:
        np.save(file, np.ascontiguousarray(array), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    return _checksum(path)


def _checksum(path: Path) -> str:
    return xxhash.xxh3_64_hexdigest(np.memmap(path, dtype=np.uint8, mode="r").data)


def _write_synced(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows has no handle of a folder to sync
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _move_into_place(partial: Path, folder: Path) -> None:
    """Rename `partial` to `folder`; a folder that is there is moved aside first and removed last.

    Processes that do so at once all succeed, and the folder of the last one stays.
    """
    replaced = partial.with_suffix(".replaced")
    while not _renamed(partial, folder):
        shutil.rmtree(replaced, ignore_errors=True)  # moved aside before another process moved its own in
        with suppress(FileNotFoundError):  # another process has moved it aside
            folder.rename(replaced)
    _sync_folder(folder.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def _renamed(source: Path, target: Path) -> bool:
    """Rename the folder `source`; False where `target` is a folder with something in it."""
    try:
        source.rename(target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _check_replaceable(folder: Path) -> None:
    """Refuse to replace a user's own files: a folder without a manifest, or with more in it than what was saved."""
    try:
        entries = sorted(folder.iterdir())
    except FileNotFoundError:
        return
    saved = folder / MANIFEST in entries
    foreign = [entry.name for entry in entries if not (saved and _is_own(entry))]
    if foreign:
        raise InputError(
            f"{folder}: holds {foreign[0]!r}, which saving here would delete; give a new folder, or empty this one"
        )


def _is_own(entry: Path) -> bool:
    return entry.name == MANIFEST or entry.suffix in OWN_SUFFIXES or (entry / MANIFEST).is_file()


def _sealed(manifest: dict[str, Any]) -> str:
    """The manifest as JSON with a checksum of itself, so that a changed byte of it is seen too."""
    return json.dumps({**manifest, "seal": _seal(manifest)}, indent=1, sort_keys=True) + "\n"


def _seal(manifest: dict[str, Any]) -> str:
    return xxhash.xxh3_64_hexdigest(json.dumps(manifest, sort_keys=True).encode())


def _read_manifest(folder: Path, kind: str, version: int) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        seal = manifest.pop("seal")
        found, found_version = manifest["kind"], manifest["version"]
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        advice = "give the folder that was saved to"
        raise InputError(f"{folder}: not a saved {kind} (it has no {MANIFEST}); {advice}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: damaged, it is not the JSON that was written; {REBUILD}") from error
    if found != kind:
        raise InputError(f"{folder}: holds a saved {found!r}, not a {kind!r}; give another folder")
    if found_version != version:
        raise InputError(
            f"{folder}: written in version {found_version} of the {kind} layout, and this is version {version}; "
            + REBUILD
        )
    if seal != _seal(manifest):
        raise InputError(f"{path}: damaged, its checksum differs; {REBUILD}")
    return manifest


def _map_array(path: Path, checksum: str) -> np.ndarray:
    try:
        if path.stat().st_size == 0 or _checksum(path) != checksum:
            raise InputError(f"{path}: damaged (cut short or changed), its checksum differs; {REBUILD}")
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise InputError(f"{path}: missing; {REBUILD}") from error
    return np.asarray(array)  # a plain view of the map: np.memmap makes every slice twice as slow
