"""Copies of an index on storage that cannot be memory-mapped, such as s3, and back to a disk of this machine.

Arrow moves the files, through fsspec where it does not know the storage itself. The manifest goes last, so a copy that
was stopped is never taken for an index.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
from tqdm import tqdm

from una_fast.corpus.paths import address_in
from una_fast.corpus.remote import WITHOUT_LISTS, as_input_errors, file_system, scheme_of
from una_fast.errors import InputError
from una_fast.index.checks import check_content
from una_fast.index.layout import KIND, VERSION
from una_fast.storage import check_unused, checked_path, load_arrays, read_seal, resolved
from una_fast.storage.files import file_checksum, new_file
from una_fast.storage.manifest import MANIFEST, Manifest, array_file, array_path, parse_manifest, read_manifest
from una_fast.storage.save import saving

WITHOUT_FOLDERS = ("s3", "gcs")  # a name with slashes needs no folder there
KEPT = "the files copied so far are kept: remove the cause, and run the same again to go on"


def upload_index(folder: str | Path, address: str | Path, progress: bool = False) -> int:
    """Copy the folder of an index to an address, as s3://bucket/name, or to a path of this machine.

    Every byte is checked first. Files that lie there with the right size are not copied again, so a copy that was
    stopped goes on; files of others stay. The ids of tokenizers that are kept with the index are not copied: they are
    made again where a tokenizer is bound.

    Args:
        folder: where the index was saved or built.
        address: of a folder, which is made, on s3, gs, hdfs or file (Arrow's file systems), or on another one that
            fsspec knows and that can be written to; or a path, as for `fetch_index`.
        progress: show it on stderr.

    Returns:
        The size of the index in bytes.

    Raises:
        InputError: no index, or a damaged one; an address that is unknown or cannot be written to; another index lies
            there; a package is missing.

    """
    folder = checked_path(folder)
    manifest = read_manifest(folder, KIND, VERSION)
    files, place = _opened(address)
    if isinstance(files, pa.fs.LocalFileSystem):
        return fetch_index(folder, place, progress)
    _check(folder)
    if scheme_of(str(address)) in WITHOUT_LISTS:
        raise InputError(f"{address}: cannot be written to over http; give an address of s3, gs or hdfs")
    with as_input_errors(str(address), "written", KEPT):
        if _read(files, f"{place}/{MANIFEST}") not in (b"", manifest.encode()):
            raise InputError(f"{address}: holds {MANIFEST!r} already; give another folder, or delete it")
        if files.type_name not in WITHOUT_FOLDERS:
            files.create_dir(place, recursive=True)
        size = 0
        for name, checksum in tqdm(manifest.checksums.items(), unit=" files", disable=not progress):
            file, copy = array_path(folder, name, checksum), f"{place}/{array_file(name, checksum)}"
            size += file.stat().st_size
            if files.get_file_info(copy).size != file.stat().st_size:
                _copy(pa.fs.LocalFileSystem(), str(file), files, copy)
        with files.open_output_stream(f"{place}/{MANIFEST}", compression=None) as stream:
            stream.write(manifest.encode())
    return size + len(manifest.encode())


def fetch_index(address: str | Path, folder: str | Path, progress: bool = False) -> int:
    """Copy the index at an address to a folder of this machine, which is an index only when all of it is there.

    Every byte is checked. A copy that was stopped goes on with the files that are missing.

    Args:
        address: what `upload_index` was given; http and https too, since no folder needs to be listed.
        folder: where the index is to lie; it must not hold anything, unless it holds the same index.
        progress: show it on stderr.

    Returns:
        The size of the index in bytes.

    Raises:
        InputError: nothing, no index, or a damaged one at the address; a package is missing; the folder is in use or
            cannot be written, as on a full disk.

    """
    goal = resolved(folder)
    files, place = _opened(address)
    manifest = _manifest_at(address, files, place)
    if read_seal(goal) != manifest.seal:
        check_unused(goal, KIND)
    with saving(goal, KIND, VERSION, manifest.checksums, keep=True) as save:
        for name, checksum in tqdm(manifest.checksums.items(), unit=" files", disable=not progress):
            if path := save.missing(name, checksum):
                _fetch(files, f"{place}/{path.name}", path, checksum)
        save.publish(manifest.meta, manifest.checksums)
    _check(goal)
    return sum((goal / name).stat().st_size for name in manifest.files)


def _fetch(files: Any, copy: str, path: Path, checksum: str) -> None:
    with as_input_errors(copy, "copied", KEPT), new_file(path) as file:
        _copy(files, copy, pa.fs.LocalFileSystem(), file.name)
        if file_checksum(Path(file.name)) != checksum:
            raise InputError(
                f"{copy}: damaged (cut short or changed), its checksum differs; build or upload the index again"
            )


def _check(folder: Path) -> None:
    """Read and check all of an index. Its word tokenizer need not be installed here."""
    load_arrays(folder, KIND, VERSION, partial(check_content, folder), verify=True)


def _copy(source: Any, name: str, target: Any, copy: str) -> None:
    pa.fs.copy_files(name, copy, source_filesystem=source, destination_filesystem=target)


def _opened(place: str | Path) -> tuple[Any, str]:
    """The file system of an address or of a path of this machine, and the folder's path in it."""
    path = checked_path(place)
    if path.exists() or not (address := address_in(str(place))):
        return pa.fs.LocalFileSystem(), str(path.absolute())
    with as_input_errors(address, "opened"):
        files, inside = file_system(address)
    return files, inside.rstrip("/")


def _manifest_at(address: str | Path, files: Any, place: str) -> Manifest:
    with as_input_errors(str(address), "read"):
        data = _read(files, f"{place}/{MANIFEST}")

    def read() -> bytes:
        if not data:
            raise FileNotFoundError
        return data

    return parse_manifest(read, str(address), KIND, VERSION)


def _read(files: Any, name: str) -> bytes:
    """All bytes of a small file; none where there is no file."""
    if files.get_file_info(name).type == pa.fs.FileType.NotFound:
        return b""
    with files.open_input_stream(name, compression=None) as stream:
        return stream.read()
