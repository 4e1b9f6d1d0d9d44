"""Copies of an index on storage that cannot be memory-mapped, such as s3, and back to a disk of this machine.

fsspec moves the files, several at a time. The manifest goes last, so a copy that was stopped is no index.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from una_fast.corpus.remote import as_input_errors, file_system
from una_fast.errors import InputError
from una_fast.index.index import KIND, VERSION, check_content
from una_fast.storage import check_own, resolved
from una_fast.storage.files import sync_file
from una_fast.storage.folder import MANIFEST, Manifest, find_manifest, open_arrays, publish, read_manifest


def upload_index(folder: str | Path, address: str | Path, progress: bool = False) -> int:
    """Copy the folder of an index to an address, as s3://bucket/name, or to a path of this machine.

    Every byte is compared with the checksums first. The ids of tokenizers that are kept with the index stay here: they
    are made again where one is bound.

    Args:
        folder: Where the index was saved or built.
        address: Of a folder, on any storage that fsspec knows and that can be written to; or a path.
        progress: Show it on stderr.

    Returns:
        The size of the arrays in bytes.

    Raises:
        InputError: no index, or a damaged one; an address that is unknown or cannot be written to; another index lies
            there; a package is missing.
    """
    manifest = read_manifest(Path(folder), KIND, VERSION)
    arrays = open_arrays(Path(folder), manifest, verify=True)
    files, place = file_system(address)
    with as_input_errors(address, "written"):
        if files.exists(f"{place}/{MANIFEST}") and files.cat_file(f"{place}/{MANIFEST}") != manifest.encode():
            raise InputError(f"{address}: holds {MANIFEST!r} already; give another folder, or delete it")
        files.makedirs(place, exist_ok=True)
        _copy(files.put, folder, place, [*manifest.files.values()], progress)
        files.pipe_file(f"{place}/{MANIFEST}", manifest.encode())
    return sum(array.nbytes for array in arrays.values())


def fetch_index(address: str | Path, folder: str | Path, progress: bool = False) -> int:
    """Copy the index at an address to a folder of this machine, which is an index only when all of it is there.

    Every byte is compared with the checksums, and every id with its bounds.

    Args:
        address: What `upload_index` was given; http and https too, since no folder needs to be listed.
        folder: Where the index is to lie: it is missing, empty, or holds this index.
        progress: Show it on stderr.

    Returns:
        The size of the arrays in bytes.

    Raises:
        InputError: nothing, no index, or a damaged one at the address; a package is missing; the folder holds
            something else or cannot be written, as on a full disk.
    """
    goal = resolved(folder)
    files, place = file_system(address)
    with as_input_errors(address, "read"):
        try:
            content = files.cat_file(f"{place}/{MANIFEST}")  # `exists` would answer no where a server does not
        except FileNotFoundError:
            raise InputError(f"{address}: not a saved index (it has no {MANIFEST}); give the address of one") from None
        manifest = Manifest.decode(content, str(address))
    manifest.check(str(address), KIND, VERSION)
    is_there = find_manifest(goal) == manifest
    check_own(goal, KIND, unused=not is_there)
    names = [] if is_there else [*manifest.files.values()]

    def get() -> Manifest:
        with as_input_errors(address, "copied"):
            _copy(files.get, place, goal, names, progress)
        for name in names:
            with (goal / name).open("rb+") as file:
                sync_file(file)
        check_content(goal, manifest.meta, open_arrays(goal, manifest, verify=True))
        return manifest

    publish(goal, KIND, get)
    return sum(array.nbytes for array in open_arrays(goal, manifest).values())


def _copy(copy: Callable[..., Any], source: object, goal: object, names: list[str], progress: bool) -> None:
    """Copy files of one folder to another by `put` or `get` of a file system."""
    from fsspec.callbacks import NoOpCallback, TqdmCallback

    callback = TqdmCallback({"unit": " files"}) if progress else NoOpCallback()
    copy([f"{source}/{name}" for name in names], [f"{goal}/{name}" for name in names], callback=callback)
