"""Arrays in a folder: a .npy file for each, and manifest.json, which is written last and lists them."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from una_fast.errors import InputError
from una_fast.storage.files import (
    PARTIAL,
    checked_path,
    checksum_of,
    file_checksum,
    locked,
    new_file,
    remove_partial,
    unwritable,
    write_bytes,
)

MANIFEST = "manifest.json"
REBUILD = "delete the folder and build it again"
WRITERS = 4  # arrays that are written at a time: one waits for the disk while the next one is copied
NAME, CHECKSUM = re.compile("[A-Za-z0-9_]+"), re.compile("[0-9a-f]{16}")
ARRAY_FILE = re.compile(rf"({NAME.pattern})-{CHECKSUM.pattern}\.npy")
_HEADERS = threading.Lock()  # before Python 3.11.5 `ast`, which numpy reads headers with, fails in several threads

Arrays = dict[str, np.ndarray]


class Saved(NamedTuple):
    """What a folder holds: its `meta`, and its arrays by name."""

    meta: dict[str, Any]
    arrays: Arrays


@dataclass(frozen=True)
class Manifest:
    """The content of manifest.json.

    Attributes:
        kind: What the folder is, such as "index".
        version: Of the kind's layout.
        meta: Anything JSON can hold.
        checksums: xxh3_64 of each array's file, by the array's name.
    """

    kind: str
    version: int
    meta: dict[str, Any]
    checksums: dict[str, str]

    @property
    def files(self) -> dict[str, str]:
        """The file of each array. Its checksum is in the name, so a new save leaves the files of the old one whole."""
        return {name: array_file(name, checksum) for name, checksum in self.checksums.items()}

    def encode(self) -> bytes:
        """The bytes of the file: JSON, with a checksum of the rest as "seal"."""
        return (json.dumps({**asdict(self), "seal": _seal(asdict(self))}, indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def decode(cls, data: bytes) -> Manifest:
        """The manifest of these bytes. Raises ValueError for a damaged one, and for names that are no array's."""
        try:
            fields = json.loads(data)
            seal = fields.pop("seal")
            manifest = cls(**fields)
            is_valid = seal == _seal(fields) and type(manifest.version) is int and isinstance(manifest.meta, dict)
            names, checksums = manifest.checksums.keys(), manifest.checksums.values()
            is_valid &= all(map(NAME.fullmatch, names)) and all(map(CHECKSUM.fullmatch, checksums))
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError("not the JSON of a manifest") from error
        if not is_valid:
            raise ValueError("a byte differs")
        return manifest


def save_arrays(folder: Path, kind: str, version: int, meta: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write `arrays` and `meta` to `folder`; what was saved there before stays until all new files are complete.

    Args:
        folder: Where to write; it and its parents are made.
        kind: What the folder is, such as "index"; `load_arrays` refuses another kind.
        version: The version of the kind's layout.
        meta: Anything JSON can hold.
        arrays: Name to array, of any shape, of numbers.

    Raises:
        InputError: the folder cannot be written (permission, a file in its place, a full disk), or holds something
            else than was saved there as this kind. What was saved there stays.
    """

    def write(name: str) -> str:
        checksum = checksum_of(array_parts(arrays[name]))
        with new_file(folder / array_file(name, checksum)) as file:
            file.writelines(array_parts(arrays[name]))
        return checksum

    def write_all() -> Manifest:
        with ThreadPoolExecutor(WRITERS) as threads:
            return Manifest(kind, version, meta, dict(zip(arrays, threads.map(write, arrays), strict=True)))

    publish(folder, kind, arrays, write_all)


def publish(folder: Path, kind: str, names: Iterable[str], write: Callable[[], Manifest]) -> None:
    """Make `folder` hold what `write` returns, which writes the arrays `names` there. One process at a time does so.

    Raises InputError as `save_arrays` does.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            check_own(folder, kind)
            before = find_manifest(folder)
            try:
                write_bytes(folder / MANIFEST, write().encode())
            finally:
                _remove_unlisted(folder, {*names, *(before.checksums if before else ())})
    except OSError as error:
        raise unwritable(folder, error, "nothing was changed") from error


def _remove_unlisted(folder: Path, names: set[str]) -> None:
    """Delete the files of the arrays `names` that earlier and stopped saves left, and the folder if it is empty."""
    manifest = find_manifest(folder)
    listed = set(manifest.files.values()) if manifest else set()
    with suppress(OSError):
        remove_partial(folder)
        for path in [*folder.iterdir()]:
            match = ARRAY_FILE.fullmatch(path.name)
            if match and match[1] in names and path.name not in listed:
                path.unlink()
        if manifest is None:
            folder.rmdir()


def load_arrays(folder: Path, kind: str, version: int, verify: bool = False) -> Saved:
    """The `meta` and the read-only, memory-mapped arrays of a folder that `save_arrays` wrote.

    Args:
        folder: Where it was saved.
        kind: As given to `save_arrays`.
        version: As given to `save_arrays`; the version before it is read too.
        verify: Read every byte, and compare it with the checksums.

    Raises:
        InputError: no such folder, another kind or version, a file that is missing, cut short or, with `verify`, has a
            changed byte.
    """
    folder = checked_path(folder)
    while True:
        manifest = read_manifest(folder, kind, version)
        try:
            return open_arrays(folder, manifest, verify)
        except InputError:
            if find_manifest(folder) == manifest:  # else another process saved there meanwhile
                raise


def open_arrays(folder: Path, manifest: Manifest, verify: bool = False) -> Saved:
    """The arrays of a folder that a manifest lists; see `load_arrays`."""
    arrays = {}
    for name, file in manifest.files.items():
        path = folder / file
        try:
            if verify and file_checksum(path) != manifest.checksums[name]:
                raise InputError(f"{path}: damaged (cut short or changed), its checksum differs; {REBUILD}")
            with _HEADERS:
                mapped = np.load(path, mmap_mode="r")
            if mapped.offset + mapped.nbytes != path.stat().st_size:
                raise ValueError("bytes after the array")
        except FileNotFoundError as error:
            raise InputError(f"{path}: missing; {REBUILD}") from error
        except OSError as error:
            raise InputError(
                f"{path}: cannot be read ({error.strerror or error}); give a folder that can be"
            ) from error
        except (ValueError, EOFError) as error:  # of a header or a file that is cut
            raise InputError(f"{path}: damaged (cut short), it does not hold its array; {REBUILD}") from error
        arrays[name] = np.asarray(mapped)
    return Saved(manifest.meta, arrays)


def cached_arrays(folder: Path | None, kind: str, version: int, made_from: str, make: Callable[[], Arrays]) -> Arrays:
    """Arrays that are made once by `make` and kept in `folder`, where all processes of a machine map them.

    Kept ones that are damaged, of another version or made from something else are made again. The arrays stay in memory
    if the folder cannot be written. Two processes that make them at the same time write the same bytes.

    Args:
        folder: Where they are kept; None to keep them in memory.
        kind: As for `save_arrays`.
        version: As for `save_arrays`.
        made_from: What the arrays depend on.
        make: Makes them.
    """
    meta = {"made_from": made_from}
    if folder is None:
        return make()
    with suppress(InputError):
        saved = load_arrays(folder, kind, version)
        if saved.meta == meta:
            return saved.arrays
    arrays = make()
    with suppress(InputError, OSError):
        if find_manifest(folder) is None:
            (folder / MANIFEST).unlink(missing_ok=True)  # a damaged one
        save_arrays(folder, kind, version, meta, arrays)
        saved = load_arrays(folder, kind, version)
        if saved.meta == meta:
            return saved.arrays
    return arrays


def check_own(folder: Path, kind: str, unused: bool = False) -> None:
    """Refuse a folder that holds something else than `save_arrays` put there as this `kind`, or began to.

    Args:
        folder: It may be missing.
        kind: As for `save_arrays`.
        unused: Refuse what was saved there too.

    Raises:
        InputError: it holds something else, or cannot be read.
    """
    try:
        names = sorted(path.name for path in folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise unwritable(folder, error, "give another folder") from error
    others = [name for name in names if not (PARTIAL.fullmatch(name) or ARRAY_FILE.fullmatch(name))]
    manifest = find_manifest(folder)
    if others and manifest is None:
        raise InputError(
            f"{folder}: holds {others[0]!r}, and no manifest of una_fast; give a new folder, or empty this one"
        )
    if manifest and manifest.kind != kind:
        raise InputError(f"{folder}: holds a saved {manifest.kind!r}, not a {kind!r}; give another folder")
    if manifest and unused:
        raise InputError(f"{folder}: exists already: choose another folder, or delete it")


def resolved(folder: str | Path) -> Path:
    """`folder` as an absolute path without links. Raises InputError for an address, and what no folder can be named."""
    if "://" in str(folder):
        raise InputError(f"{folder}: is an address; save to a disk of this machine, and copy it with `una-fast upload`")
    try:
        return checked_path(folder).resolve()
    except (OSError, RuntimeError) as error:  # Python 3.11: RuntimeError for a loop of links
        raise InputError(f"{folder}: cannot be written ({error}); give the name of a folder") from error


def is_saved(folder: Path) -> bool:
    """True if a folder holds what was saved, whatever its kind."""
    return find_manifest(folder) is not None


def find_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder, whatever its kind; None if there is none, or a damaged one."""
    try:
        return Manifest.decode((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None


def read_manifest(folder: Path, kind: str, version: int) -> Manifest:
    """The manifest of a folder of this kind, and of this version or the one before.

    Raises:
        InputError: no manifest, another kind or version, a damaged one, or one that cannot be read.
    """
    try:
        data = (folder / MANIFEST).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{folder}: not a saved {kind} (it has no {MANIFEST}); give the folder of one") from error
    except OSError as error:
        raise InputError(f"{folder / MANIFEST}: cannot be read ({error.strerror or error})") from error
    return checked_manifest(data, str(folder), kind, version)


def checked_manifest(data: bytes, place: str, kind: str, version: int) -> Manifest:
    """The manifest of these bytes, as `read_manifest` gives it. place: the folder, for messages."""
    try:
        manifest = Manifest.decode(data)
    except ValueError as error:
        raise InputError(f"{place}/{MANIFEST}: damaged, it is not the JSON that was written; {REBUILD}") from error
    if manifest.kind != kind:
        raise InputError(f"{place}: holds a saved {manifest.kind!r}, not a {kind!r}; give another folder")
    if manifest.version not in (version, version - 1):
        update = "install a newer una_fast" if manifest.version > version else REBUILD
        raise InputError(
            f"{place}: written in version {manifest.version} of the {kind} layout, and this una_fast reads version "
            f"{version} and the one before; {update}"
        )
    return manifest


def array_file(name: str, checksum: str) -> str:
    """The name of an array's file."""
    return f"{name}-{checksum}.npy"


def array_parts(array: np.ndarray) -> tuple[bytes, memoryview]:
    """The bytes of a .npy file in two parts, the header and the values.

    np.save writes with `ndarray.tofile`, whose error on a full disk does not name the cause.
    """
    array = np.ascontiguousarray(array)
    return array_header(array.dtype, array.shape), array.reshape(-1).view(np.uint8).data


def array_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The header of a .npy file."""
    header = io.BytesIO()
    fields = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, fields)
    return header.getvalue()


def _seal(fields: dict[str, Any]) -> str:
    return checksum_of([json.dumps(fields, sort_keys=True).encode()])
