"""Arrays that are made from an index and kept in its folder: made once, then mapped by all processes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from una_fast.errors import InputError
from una_fast.index.index import Index
from una_fast.storage import is_saved, load_arrays, read_seal, save_arrays
from una_fast.storage.files import identity_of
from una_fast.storage.manifest import MANIFEST, is_outdated

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Part:
    """A part of an index's folder.

    name: of its folder in there, with all that its arrays depend on besides the index; kind, version: of its layout;
    wrong: called with the arrays when they are read, it returns what is wrong with them, or "".
    """

    name: str
    kind: str
    version: int
    wrong: Callable[[Arrays], str]


def kept_beside(index: Index, part: Part, make: Callable[[], Arrays]) -> Arrays:
    """The arrays of a part: read from the index's folder, or made by `make` and kept there from now on.

    Two processes that make them at the same time write the same bytes, each whole. They stay in memory if the index is
    not saved, its folder cannot be written, or another index has been saved there since this one was opened.

    Raises:
        InputError: kept arrays that are damaged, or that were made under another name.
    """
    folder = index.path / part.name if index.path is not None and _lies_in_its_folder(index) else None
    if folder is not None and is_saved(folder) and not is_outdated(folder, index.seal or ""):
        before = _identity(folder)
        try:
            return _load(folder, index, part)
        except InputError:
            if _lies_in_its_folder(index) and _identity(folder) == before is not None:
                raise
            folder = None  # another index was saved there meanwhile, which deletes the part, and perhaps this one again
    arrays = make()
    if folder is None:
        return arrays
    try:
        save_arrays(folder, part.kind, part.version, {}, arrays, part_of=index.seal)
        return _load(folder, index, part)  # memory-mapped: the processes of a machine share one copy
    except InputError:  # a read-only folder, a full disk, or another process is moving its own into place
        return arrays


def _lies_in_its_folder(index: Index) -> bool:
    """False for an index that is not saved, or whose folder has gone or holds another one by now."""
    return index.path is not None and index.seal is not None and read_seal(index.path) == index.seal


def _identity(folder: Path) -> tuple[int, ...] | None:
    """What changes when a part is saved again; None where there is none."""
    with suppress(OSError):
        return identity_of((folder / MANIFEST).stat())
    return None


def _load(folder: Path, index: Index, part: Part) -> Arrays:
    def check(_: object, arrays: Arrays) -> None:
        if wrong := part.wrong(arrays):
            raise InputError(f"{folder}: damaged, or not written by una_fast: {wrong}; delete it, it is made again")

    return load_arrays(folder, part.kind, part.version, check, index.seal).arrays
