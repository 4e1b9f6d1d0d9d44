"""Opening a folder of arrays, while other processes may be saving there."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from una_fast.errors import InputError
from una_fast.storage.files import checked_path, map_array
from una_fast.storage.manifest import read_manifest
from una_fast.storage.ownership import leftovers
from una_fast.storage.place import recover

RETRIES, PAUSE = 50, 0.01  # s, of a load while another process saves: two renames take microseconds


class Saved(NamedTuple):
    """What a folder holds: its `meta`, its arrays by name, and the seal, which tells this content from another."""

    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]
    seal: str


def load_arrays(folder: Path, kind: str, version: int) -> Saved:
    """The `meta` and the read-only, memory-mapped arrays of a folder that `save_arrays` wrote.

    Raises:
        InputError: no such folder, another kind or version, a file missing, cut short or with a changed byte.

    """
    folder = checked_path(folder)
    target = Path(os.path.realpath(folder))  # of a link; a loop of links, which resolve() refuses, stays one
    for _ in range(RETRIES):
        before = _identity(folder)
        try:
            loaded = _load(folder, kind, version)
            if _identity(folder) == before:
                return loaded
        except InputError:
            if _identity(folder) == before and not leftovers(target, ".replaced"):
                raise
        time.sleep(PAUSE)  # another process is saving there
    recover(target)
    return _load(folder, kind, version)


def _load(folder: Path, kind: str, version: int) -> Saved:
    manifest = read_manifest(folder, kind, version)
    arrays = {name: map_array(folder / f"{name}.npy", checksum) for name, checksum in manifest.checksums.items()}
    return Saved(manifest.meta, arrays, manifest.seal)


def _identity(folder: Path) -> tuple[int, int] | None:
    """What differs between a folder and the one that takes its place; None if there is none."""
    try:
        about = folder.stat()
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns
