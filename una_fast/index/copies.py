"""Copies of an index on storage that cannot be memory-mapped, such as s3, and back to a disk of this machine.

fsspec moves the files. The manifest goes last, so a copy that was stopped is never taken for an index. An upload to a
folder of this machine is a fetch.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from una_fast.corpus.remote import WITHOUT_LISTS, address_in, as_input_errors, file_system, scheme_of
from una_fast.errors import InputError
from una_fast.index.layout import KIND, VERSION, check_content
from una_fast.storage import checked_path, load_arrays, publish, resolved
from una_fast.storage.files import checksum_of, file_checksum, new_file, parts_of
from una_fast.storage.manifest import MANIFEST, array_file, checked_manifest, not_saved, read_manifest

KEPT = "the files copied so far are kept: remove the cause, and run the same again to go on"


def upload_index(folder: str | Path, address: str | Path, progress: bool = False) -> int:
    """Copy the folder of an index to an address, as s3://bucket/name, or to a path of this machine.

    Every byte is checked first. A file that lies at the address is read back, and copied again if its checksum differs,
    so a copy that was stopped goes on; files with other names stay. The ids of tokenizers that are kept with the index
    are not copied: they are made again where a tokenizer is bound.

    Args:
        folder: where the index was saved or built.
        address: of a folder, which is made, on any storage that fsspec knows and that can be written to; or a path, for
            which the rules of `fetch_index` hold.
        progress: show it on stderr.

    Returns:
        The size of the index in bytes.

    Raises:
        InputError: no index, or a damaged one; an address that is unknown or cannot be written to; another manifest
            lies there; a package is missing.

    """
    folder = checked_path(folder)
    load_arrays(folder, KIND, VERSION, partial(check_content, folder), verify=True)
    manifest = read_manifest(folder, KIND, VERSION)
    if scheme_of(str(address)) in WITHOUT_LISTS:
        raise InputError(f"{address}: cannot be written to over http; give an address of s3, gs or hdfs")
    if "::" in str(address):  # as dir://a::file:///b, which would write to this machine without the rules of a fetch
        raise InputError(f"{address}: is a chain of file systems; give the address of the last one alone")
    files, place = _opened(address)
    if scheme_of(files.unstrip_protocol(place)) == "file":
        return fetch_index(folder, place, progress)

    def is_there() -> bool:
        there = _read_manifest(files, place)
        if there not in (None, manifest.encode()):
            raise InputError(f"{address}: holds {MANIFEST!r} already; give another folder, or delete it")
        return there is not None

    with as_input_errors(str(address), "written", KEPT):
        files.makedirs(place, exist_ok=True)
        is_there()
        for name, checksum in tqdm(manifest.checksums.items(), unit=" files", disable=not progress):
            file, copy = folder / array_file(name, checksum), f"{place}/{array_file(name, checksum)}"
            if not _holds(files, copy, checksum):
                files.put_file(str(file), copy)
        if not is_there():
            files.pipe_file(f"{place}/{MANIFEST}", manifest.encode())
    return sum((folder / name).stat().st_size for name in manifest.files)


def fetch_index(address: str | Path, folder: str | Path, progress: bool = False) -> int:
    """Copy the index at an address to a folder of this machine, which is an index only when all of it is there.

    Every byte is compared with the manifest's checksums. A copy that was stopped goes on with the missing files.

    Args:
        address: what `upload_index` was given; http and https too, since no folder needs to be listed.
        folder: where the index is to lie: it does not exist, is empty, or holds this index or a copy that was stopped.
            What is there is not written again, and an array that was changed is refused with its name.
        progress: show it on stderr.

    Returns:
        The size of the index in bytes.

    Raises:
        InputError: nothing, no index, or a damaged one at the address; a package is missing; the folder is in use or
            cannot be written, as on a full disk.

    """
    goal = resolved(folder)
    files, place = _opened(address)
    with as_input_errors(str(address), "read"):
        data = _read_manifest(files, place)
    if data is None:
        raise not_saved(str(address), KIND)
    manifest = checked_manifest(data, str(address), KIND, VERSION)
    with tqdm(unit=" files", disable=not progress) as bar:

        def write(name: str, path: Path) -> None:
            copy = f"{place}/{path.name}"
            with as_input_errors(copy, "copied", KEPT), new_file(path, replace=False) as file:
                files.get_file(copy, file.name)
                if file_checksum(Path(file.name)) != manifest.checksums[name]:
                    raise InputError(
                        f"{copy}: damaged (cut short or changed), its checksum differs; delete it there, and upload "
                        "the index again"
                    )
            bar.update()

        publish(goal, manifest, write, is_copy=True)
    return sum((goal / name).stat().st_size for name in manifest.files)


def _opened(address: str | Path) -> tuple[Any, str]:
    """The file system of an address or of a path of this machine, and the folder's path in it."""
    checked_path(address)
    with as_input_errors(str(address), "opened"):
        files, folder = file_system(address_in(str(address)) or str(address))
    return files, folder.rstrip("/")


def _holds(files: Any, path: str, checksum: str) -> bool:
    """Whether a file has this content."""
    if not files.exists(path):
        return False
    with files.open(path) as file:
        return checksum_of(parts_of(file, sys.maxsize)) == checksum


def _read_manifest(files: Any, place: str) -> bytes | None:
    """The bytes of the manifest at an address; None if there is none."""
    path = f"{place}/{MANIFEST}"
    return files.cat_file(path) if files.exists(path) else None
