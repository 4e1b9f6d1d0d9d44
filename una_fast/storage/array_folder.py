"""Saves arrays in a folder: one .npy file per array, and manifest.json, which lists them and is written last."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from una_fast.errors import InputError
from una_fast.storage.files import PARTIAL, checksum_of, file_checksum, locked, new_file, unwritable, write_bytes

MANIFEST = "manifest.json"
CACHE = "cache"  # the kind of a folder of `cached_arrays`
REBUILD = "build it again"
ARRAY_FILE = re.compile(r"[A-Za-z0-9_]+-[0-9a-f]{16}\.npy")
# the header of a .npy file as `write_array_header_1_0` writes it; groups: its size, dtype and shape
HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '(<[iuf][248]|\|[iub]1)', 'fortran_order': False, "
    rb"'shape': \((\d{1,18}(?:, \d{1,18})*),?\), \} *\n",
    re.DOTALL,
)
BOUNDED_BY = {"_indptr": "_values", "_offsets": "_utf8"}  # name suffix of an array of row bounds -> of the rows' values

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Manifest:
    """The content of manifest.json."""

    kind: str  # such as "index"
    version: int  # of the layout of this kind
    meta: dict[str, Any]  # data of JSON types that the caller stores with the arrays
    checksums: dict[str, str]  # array name -> xxh3_64 of its file

    @property
    def files(self) -> dict[str, str]:
        """The file name of each array. The name contains the array's checksum, so a new save overwrites no old file."""
        return {name: f"{name}-{checksum}.npy" for name, checksum in self.checksums.items()}

    @property
    def xxh3_64(self) -> str:
        """The checksum of this manifest, which detects flipped bits."""
        return xxhash.xxh3_64_hexdigest(json.dumps(asdict(self), sort_keys=True).encode())

    def encode(self) -> bytes:
        """Return the content of manifest.json."""
        return (json.dumps(asdict(self) | {"xxh3_64": self.xxh3_64}, indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a folder. Raises OSError if it cannot be read, and InputError if it is damaged."""
        data = (folder / MANIFEST).read_bytes()
        try:
            content = json.loads(data)
            manifest = cls(*(content[field.name] for field in fields(cls)))
            has_types = [*map(type, vars(manifest).values())] == [str, int, dict, dict]
            is_whole = content["xxh3_64"] == manifest.xxh3_64
            # ARRAY_FILE allows no path separator, because such a name could lead out of the folder
            if not (has_types and is_whole and all(map(ARRAY_FILE.fullmatch, manifest.files.values()))):
                raise ValueError
        except Exception as error:  # values of wrong types may raise anything
            raise InputError(f"{folder / MANIFEST}: damaged: its content is not what was written; {REBUILD}") from error
        return manifest

    def check(self, folder: Path, kind: str, version: int | None = None) -> None:
        """Raise InputError, which names the folder, unless the manifest has this kind and, if given, this version."""
        if self.kind != kind:
            raise InputError(f"{folder}: contains a saved {self.kind!r}, not a {kind!r}; give another folder")
        if version not in (None, self.version):
            raise InputError(
                f"{folder}: written in version {self.version} of the {kind} layout, and this una_fast reads version "
                f"{version}; {'install a newer una_fast' if self.version > version else REBUILD}"
            )


def save_arrays(folder: Path, kind: str, version: int, meta: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Save arrays in `folder`, completely or not at all. Replaces saved arrays of the same kind.

    Raises InputError, and changes nothing, if the folder cannot be written or contains anything else.
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
    """Lock `folder`, call `write`, which writes the array files there, and save the manifest that it returns.

    Other processes see the old arrays until the new manifest replaces the old. Raises InputError like `save_arrays`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            check_array_folder(folder, kind)
            try:
                write_bytes(folder / MANIFEST, write().encode())
            finally:
                _remove_unlisted(folder)
    except OSError as error:
        raise unwritable(folder, error, "nothing was changed") from error


def _remove_unlisted(folder: Path) -> None:
    """Delete the array files of earlier and interrupted saves."""
    manifest = find_manifest(folder)
    listed = manifest.files.values() if manifest else ()
    with suppress(OSError):
        for path in [*folder.iterdir()]:
            if _is_array(path.name) and path.name not in listed:
                path.unlink()


def _is_array(name: str) -> bool:
    """Return whether a file with this name is an array file, complete or not."""
    return bool(ARRAY_FILE.fullmatch(name) or PARTIAL.fullmatch(name))


def load_arrays(
    folder: Path, kind: str, version: int | None = None, verify: bool = False
) -> tuple[dict[str, Any], Arrays]:
    """Open a saved folder. Return its `meta`, and its arrays by name, read-only and memory-mapped.

    During a save by another process, the result is the complete old or the complete new content. Damaged headers, sizes
    and row bounds are always detected. `verify` detects any changed byte, also in the caches in subfolders.
    """
    while True:
        try:
            manifest = Manifest.read(folder)
        except OSError as error:
            reason = f"it has no {MANIFEST} that can be read: {error.strerror}" if folder.exists() else "no such folder"
            raise InputError(f"{folder}: not a saved {kind} ({reason}); give the folder of one") from error
        manifest.check(folder, kind, version)
        try:
            arrays = _open(folder, manifest, verify)
            for part in sorted(folder.glob(f"*/{MANIFEST}")) if verify else ():
                load_arrays(part.parent, CACHE, verify=True)
            return manifest.meta, arrays
        except InputError:
            if find_manifest(folder) == manifest:
                raise


def _open(folder: Path, manifest: Manifest, verify: bool) -> Arrays:
    arrays: Arrays = {}
    for name, file in sorted(manifest.files.items(), reverse=True):  # opens values before the bounds of their rows
        try:
            if verify and file_checksum(folder / file) != manifest.checksums[name]:
                raise ValueError("its checksum differs")
            arrays[name] = _mapped(folder / file)
            for end, of_values in BOUNDED_BY.items():
                if name.endswith(end) and not _are_bounds(arrays[name], arrays[name.removesuffix(end) + of_values]):
                    raise ValueError("its numbers are not bounds of rows")
        except Exception as error:  # a hostile file may cause any error
            reason = getattr(error, "strerror", None) or error
            remedy = "delete this folder: it is a cache and will be rebuilt" if manifest.kind == CACHE else REBUILD
            raise InputError(f"{folder / file}: damaged or missing ({reason}); {remedy}") from error
    return arrays


def _mapped(path: Path) -> np.ndarray:
    """Memory-map a .npy file. Numpy's reader would evaluate the header as Python, so a regular expression reads it."""
    with path.open("rb") as file:
        header = HEADER.match(file.read(512))
    if not header or int.from_bytes(header[1], "little") != header.end() - 10:
        raise ValueError("its header is not what was written")
    dtype, shape = np.dtype(header[2].decode()), tuple(map(int, header[3].split(b",")))
    if header.end() + math.prod(shape) * dtype.itemsize != path.stat().st_size:
        raise ValueError("its size differs from what its header states")
    return np.asarray(np.memmap(path, dtype, "r", header.end(), shape))


def _are_bounds(bounds: np.ndarray, values: np.ndarray) -> bool:
    """Return whether int64 `bounds` divide all of `values` into rows. Takes 0.4 ms per million rows."""
    is_right = bounds.dtype == np.int64 and bounds.ndim == values.ndim == 1 and len(bounds) > 0
    return bool(is_right and bounds[0] == 0 and bounds[-1] == len(values) and (bounds[1:] >= bounds[:-1]).all())


def cached_arrays(
    folder: Path | None, version: int, made_from: str, make: Callable[[], Arrays], fits: Callable[[Arrays], bool]
) -> Arrays:
    """Return the arrays that `make` computes. `folder` stores them for later calls and other processes.

    Stored arrays are computed again if their `version` or `made_from` differs, or if `fits` returns False or raises.
    `made_from` identifies what the arrays depend on. `make` must be deterministic, because two processes may write at
    the same time. If the folder is None or cannot be written, the arrays stay in memory.
    """
    if folder is None:
        return make()
    meta = {"made_from": made_from}
    with suppress(Exception):
        stored_meta, stored = load_arrays(folder, CACHE, version)
        if stored_meta == meta and fits(stored):
            return stored
    arrays = make()
    with suppress(InputError, OSError):
        if find_manifest(folder) is None:
            (folder / MANIFEST).unlink(missing_ok=True)  # save_arrays would refuse a damaged manifest
        save_arrays(folder, CACHE, version, meta, arrays)
        return load_arrays(folder, CACHE, version)[1]
    return arrays


def check_array_folder(folder: Path, kind: str, unused: bool = False) -> None:
    """Raise InputError if a folder has anything except saved arrays of this kind. unused: refuse saved arrays too."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise unwritable(folder, error, "give another folder") from error
    if manifest := find_manifest(folder):
        manifest.check(folder, kind)
        if unused:
            raise InputError(f"{folder}: exists already: choose another folder, or delete it")
    elif others := [name for name in names if not _is_array(name)]:
        raise InputError(
            f"{folder}: contains {others[0]!r}, but no manifest of una_fast; give a new folder, or empty this one"
        )


def resolved(folder: str | Path) -> Path:
    """Return `folder` as an absolute path without symbolic links. Refuses an address such as s3://a."""
    if "://" in str(folder):
        raise InputError(f"{folder}: is an address: give a folder on a disk of this machine")
    return Path(folder).resolve()


def find_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder of any kind, or None if it is missing or damaged."""
    with suppress(OSError, InputError):
        return Manifest.read(folder)
    return None


def _npy_file(array: np.ndarray) -> list[bytes | memoryview]:
    """Return the content of an array's .npy file: the header and the array's memory, which is not copied."""
    array, header = np.ascontiguousarray(array), io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    return [header.getvalue(), array.data]
