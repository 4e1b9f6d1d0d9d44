"""Opening a folder of arrays, while other processes may be saving there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from una_fast.errors import InputError
from una_fast.storage.files import Mapped, checked_path, map_file, mapped_array, verify_checksum
from una_fast.storage.manifest import Manifest, array_path, read_manifest, read_seal
from una_fast.storage.verified import mark_of

Check = Callable[[dict[str, Any], dict[str, np.ndarray]], None]


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
    while True:
        manifest = read_manifest(folder, kind, version)
        try:
            return _load(folder, manifest, check, context, verify)
        except InputError:
            if read_seal(folder) == manifest.seal:  # else another content was saved there meanwhile
                raise


def _load(folder: Path, manifest: Manifest, check: Check | None, context: str, verify: bool) -> Saved:
    files = {name: map_file(array_path(folder, name, checksum)) for name, checksum in manifest.checksums.items()}
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
