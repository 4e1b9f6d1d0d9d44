"""Opening a folder of arrays, while other processes may be saving there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from una_fast.errors import InputError
from una_fast.storage.files import Mapped, checked_path, map_file, mapped_array, verify_checksum
from una_fast.storage.manifest import read_manifest
from una_fast.storage.ownership import leftovers
from una_fast.storage.place import recover
from una_fast.storage.verified import mark_of

Check = Callable[[dict[str, Any], dict[str, np.ndarray]], None]
RETRIES, PAUSE = 50, 0.01  # loads tried, and s between them, while another process saves: its renames take microseconds


class Saved(NamedTuple):
    """What a folder holds: its `meta`, its arrays by name, and the seal, a hash of all its content."""

    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]
    seal: str


def load_arrays(
    folder: Path, kind: str, version: int, check: Check | None = None, context: str = "", verify: bool = False
) -> Saved:
    """The `meta` and the read-only, memory-mapped arrays of a folder that `save_arrays` wrote.

    Args:
        folder: where it was saved.
        kind: as given to `save_arrays`.
        version: as given to `save_arrays`.
        check: called with `meta` and the arrays whenever every byte is read; it raises InputError for wrong content.
        context: what else `check` depends on; a folder that was checked with another context is checked again.
        verify: read every byte, even where this content has been verified on this machine before (see `verified`).

    Raises:
        InputError: no such folder, another kind or version, a file missing, cut short or with a changed byte.

    """
    folder = checked_path(folder)
    target = Path(os.path.realpath(folder))  # resolve() would raise for a loop of links
    for _ in range(RETRIES):
        before = _identity(folder)
        try:
            loaded = _load(folder, kind, version, check, context, verify)
            if _identity(folder) == before:
                return loaded
        except InputError:
            if _identity(folder) == before and not leftovers(target, ".replaced"):
                raise
        time.sleep(PAUSE)  # another process is saving there
    recover(target)
    return _load(folder, kind, version, check, context, verify)


def _load(folder: Path, kind: str, version: int, check: Check | None, context: str, verify: bool) -> Saved:
    manifest = read_manifest(folder, kind, version)
    files = {name: map_file(folder / f"{name}.npy") for name in manifest.checksums}
    mark = mark_of(files.values(), f"{manifest.seal} {context} {check is not None}")
    with mark.one_process():  # the processes of a machine that start together read it once
        if mark.is_set() and not verify:
            return Saved(manifest.meta, _arrays(files), manifest.seal)
        for name, checksum in manifest.checksums.items():
            verify_checksum(files[name], checksum)
        saved = Saved(manifest.meta, _arrays(files), manifest.seal)
        if check is not None:
            check(saved.meta, saved.arrays)
        mark.set()
        return saved


def _arrays(files: dict[str, Mapped]) -> dict[str, np.ndarray]:
    return {name: mapped_array(file) for name, file in files.items()}


def _identity(folder: Path) -> tuple[int, int] | None:
    """Inode and time of change of a folder, which are others once it was replaced; None if there is no folder."""
    try:
        about = folder.stat()
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns
