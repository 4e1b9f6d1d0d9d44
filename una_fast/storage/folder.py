"""Arrays in a folder: a .npy file for each, and manifest.json, which is written last and lists them."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from una_fast.errors import InputError
from una_fast.storage.files import (
    PARTIAL,
    checksum_of,
    file_checksum,
    locked,
    new_file,
    remove_partial,
    unwritable,
    write_bytes,
)

MANIFEST = "manifest.json"
CACHE = "cache"  # the kind of a folder that `cached_arrays` keeps
REBUILD = "delete the folder and build it again"
NAME, CHECKSUM = re.compile("[A-Za-z0-9_]+"), re.compile("[0-9a-f]{16}")
ARRAY_FILE = re.compile(rf"{NAME.pattern}-{CHECKSUM.pattern}\.npy")
_HEADERS = threading.Lock()  # before Python 3.11.5 `ast`, which numpy reads headers with, fails in several threads

Arrays = dict[str, np.ndarray]


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
        return {name: f"{name}-{checksum}.npy" for name, checksum in self.checksums.items()}

    def encode(self) -> bytes:
        """The bytes of the file."""
        return (json.dumps(asdict(self), indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def decode(cls, data: bytes, folder: str) -> Manifest:
        """The manifest of these bytes. Raises InputError, with the `folder`, if they are none.

        Names of arrays are checked too, because whoever wrote the manifest could lead out of the folder by them.
        """
        try:
            content = json.loads(data)
            manifest = cls(*(content[field.name] for field in fields(cls)))
            if not all(map(ARRAY_FILE.fullmatch, manifest.files.values())):
                raise ValueError("a name is no array's")
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"{folder}/{MANIFEST}: damaged, it is not what was written; {REBUILD}") from error
        return manifest

    def check(self, folder: str, kind: str, version: int | None = None) -> None:
        """Raises InputError for a manifest of another kind, or of another version than this one and the one before."""
        if self.kind != kind:
            raise InputError(f"{folder}: holds a saved {self.kind!r}, not a {kind!r}; give another folder")
        if version is not None and self.version not in (version, version - 1):
            raise InputError(
                f"{folder}: written in version {self.version} of the {kind} layout, and this una_fast reads version "
                f"{version} and the one before; {'install a newer una_fast' if self.version > version else REBUILD}"
            )


def save_arrays(folder: Path, kind: str, version: int, meta: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write `arrays`, of numbers, and `meta` to `folder`, which is made; the manifest goes last.

    Raises:
        InputError: the folder cannot be written (permission, a file in its place, a full disk), or holds something
            else than was saved there as this kind. What was saved there stays.
    """

    def write() -> Manifest:
        files = {name: _npy_file(array) for name, array in arrays.items()}
        manifest = Manifest(kind, version, meta, {name: checksum_of(parts) for name, parts in files.items()})
        for name, file_name in manifest.files.items():
            with new_file(folder / file_name) as file:
                file.writelines(files[name])
        return manifest

    publish(folder, kind, write)


def publish(folder: Path, kind: str, write: Callable[[], Manifest]) -> None:
    """Make `folder` hold what `write` returns, which writes the arrays there. One process at a time does so.

    Raises InputError as `save_arrays` does.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            check_own(folder, kind)
            try:
                write_bytes(folder / MANIFEST, write().encode())
            finally:
                _remove_unlisted(folder)
    except OSError as error:
        raise unwritable(folder, error, "nothing was changed") from error


def _remove_unlisted(folder: Path) -> None:
    """Delete the files of arrays that earlier and stopped saves left."""
    manifest = find_manifest(folder)
    listed = set(manifest.files.values()) if manifest else set()
    with suppress(OSError):
        remove_partial(folder)
        for path in [*folder.iterdir()]:
            if ARRAY_FILE.fullmatch(path.name) and path.name not in listed:
                path.unlink()


def load_arrays(folder: Path, kind: str, version: int, verify: bool = False) -> tuple[dict[str, Any], Arrays]:
    """The `meta` and the read-only, memory-mapped arrays of a folder that `save_arrays` wrote.

    Raises:
        InputError: no such folder, another kind or version, a file that is missing, cut short or, with `verify`, has a
            changed byte.
    """
    manifest = read_manifest(folder, kind, version)
    return manifest.meta, open_arrays(folder, manifest, verify)


def open_arrays(folder: Path, manifest: Manifest, verify: bool = False) -> Arrays:
    """The arrays of a folder that a manifest lists; see `load_arrays`."""
    arrays = {}
    for name, file in manifest.files.items():
        path = folder / file
        try:
            if verify and file_checksum(path) != manifest.checksums[name]:
                raise ValueError("its checksum differs")
            with _HEADERS:
                mapped = np.load(path, mmap_mode="r")
            if mapped.offset + mapped.nbytes != path.stat().st_size:
                raise ValueError("bytes after the array")
        except (OSError, ValueError, EOFError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{path}: damaged or missing ({reason}); {REBUILD}") from error
        arrays[name] = np.asarray(mapped)
    return arrays


def cached_arrays(folder: Path | None, version: int, made_from: str, make: Callable[[], Arrays]) -> Arrays:
    """Arrays that are made once by `make` and kept in `folder`, where all processes of a machine map them.

    Kept ones that are damaged, of another version or made from something else are made again. The arrays stay in memory
    if the folder is None or cannot be written. Two processes that make them at the same time write the same bytes.
    """
    if folder is None:
        return make()
    meta = {"made_from": made_from}
    with suppress(InputError):
        kept_meta, kept = load_arrays(folder, CACHE, version)
        if kept_meta == meta:
            return kept
    arrays = make()
    with suppress(InputError, OSError):
        if not is_saved(folder):
            (folder / MANIFEST).unlink(missing_ok=True)  # a damaged one
        save_arrays(folder, CACHE, version, meta, arrays)
        return load_arrays(folder, CACHE, version)[1]
    return arrays


def check_own(folder: Path, kind: str, unused: bool = False) -> None:
    """Raise InputError for a folder that holds something else than `save_arrays` put there as this `kind`, or began to.

    unused: refuse what was saved there too.
    """
    try:
        names = sorted(path.name for path in folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise unwritable(folder, error, "give another folder") from error
    manifest = find_manifest(folder)
    others = [name for name in names if not (PARTIAL.fullmatch(name) or ARRAY_FILE.fullmatch(name))]
    if others and manifest is None:
        raise InputError(
            f"{folder}: holds {others[0]!r}, and no manifest of una_fast; give a new folder, or empty this one"
        )
    if manifest:
        manifest.check(str(folder), kind)
    if manifest and unused:
        raise InputError(f"{folder}: exists already: choose another folder, or delete it")


def resolved(folder: str | Path) -> Path:
    """`folder` as an absolute path without links. Raises InputError for an address."""
    if "://" in str(folder):
        raise InputError(f"{folder}: is an address; save to a disk of this machine, then copy the folder there")
    return Path(folder).resolve()


def is_saved(folder: Path) -> bool:
    """True if a folder holds what was saved, whatever its kind."""
    return find_manifest(folder) is not None


def find_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder, whatever its kind; None if there is none, or a damaged one."""
    with suppress(OSError, InputError):
        return Manifest.decode((folder / MANIFEST).read_bytes(), str(folder))
    return None


def read_manifest(folder: Path, kind: str, version: int) -> Manifest:
    """The manifest of a folder of this kind and version, or of the version before. Raises InputError if it has none."""
    try:
        data = (folder / MANIFEST).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{folder}: not a saved {kind} (it has no {MANIFEST}); give the folder of one") from error
    except OSError as error:
        raise InputError(f"{folder / MANIFEST}: cannot be read ({error.strerror or error})") from error
    manifest = Manifest.decode(data, str(folder))
    manifest.check(str(folder), kind, version)
    return manifest


def _npy_file(array: np.ndarray) -> list[bytes | memoryview]:
    """The content of a .npy file: its header, and the array's memory."""
    array, header = np.ascontiguousarray(array), io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    return [header.getvalue(), array.data]
