"""Copies of an index on storage that cannot be memory-mapped, such as s3, and back to a disk of this machine.

The manifest is written last, so a copy that was stopped is never taken for an index. Until then the file `NOTE` holds
the manifest's bytes. It shows that the files beside it belong to this copy and may be written again; files without it
are somebody else's and stay.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import xxhash
from tqdm import tqdm

from una_fast.errors import InputError
from una_fast.index.layout import KIND, VERSION
from una_fast.index.places import Place
from una_fast.index.staged.work import open_work
from una_fast.storage import adopt_arrays, read_seal, resolved
from una_fast.storage.manifest import MANIFEST, Manifest, parse_manifest
from una_fast.storage.ownership import delete_saved

NOTE = f"{MANIFEST}.copying"


def upload_index(folder: str | Path, address: str | Path, progress: bool = False) -> int:
    """Copy the folder of an index to an address, as s3://bucket/name, or to a path of this machine.

    Every byte is compared with the manifest's checksums on its way; memory is a few MiB. A copy that was stopped goes
    on with the files that are missing. Files of others that lie there stay. The ids of tokenizers that are kept with
    the index are not copied: they are made again where a tokenizer is bound.

    Args:
        folder: where the index was saved or built.
        address: of a folder, which is made, on s3, gs, hdfs or file (Arrow's file systems), or on another one that
            fsspec knows and that can be written to; or a path.
        progress: show it on stderr.

    Returns:
        The size of the index in bytes.

    Raises:
        InputError: no index, or a damaged one; an address that is unknown or cannot be written to; a package is
            missing; files of others are in the way.

    """
    source = Place.at(folder)
    manifest = _manifest(source)
    return _copy(manifest, source, Place.at(address), progress)


def fetch_index(address: str | Path, folder: str | Path, progress: bool = False) -> int:
    """Copy the index at an address to a folder of this machine, which appears whole or not at all.

    The files come to `.NAME.fetching` beside the folder. A copy that was stopped goes on with the files that are
    missing.

    Args:
        address: what `upload_index` was given; http and https too, since no folder needs to be listed.
        folder: where the index is to lie; it must not exist, unless it holds the same index.
        progress: show it on stderr.

    Returns:
        The size of the index in bytes.

    Raises:
        InputError: nothing, no index, or a damaged one at the address; a package is missing; the folder exists or
            cannot be written, as on a full disk.

    """
    source, goal = Place.at(address), resolved(folder)
    manifest = _manifest(source)
    if os.path.lexists(goal):
        if read_seal(goal) != manifest.seal:
            raise InputError(f"{folder}: exists already: choose another folder, or delete it")
        return _size(manifest, Place.at(goal))
    with open_work(goal, "fetching") as work:
        target = Place.at(work)
        size = _copy(manifest, source, target, progress)
        target.sync(_arrays(manifest))
        adopt_arrays(work, goal, manifest.kind, manifest.version, manifest.meta, manifest.checksums)
        delete_saved(work)
    return size


def _manifest(source: Place) -> Manifest:
    data = source.read(MANIFEST)

    def read() -> bytes:
        if data is None:
            raise FileNotFoundError
        return data

    return parse_manifest(read, source.address, KIND, VERSION)


def _copy(manifest: Manifest, source: Place, target: Place, progress: bool) -> int:
    """Copy the arrays that are not at the target, then the manifest. Returns the size of all in bytes."""
    size, data = _size(manifest, source), manifest.encode()
    target.make()
    _claim(manifest, target)
    with tqdm(total=size, unit="B", unit_scale=True, disable=not progress) as bar:
        for name, checksum in _arrays(manifest).items():
            expected = source.size(name)
            if _is_there(target, name, expected, checksum):
                bar.update(expected or 0)
            else:
                target.write(name, _checked(source, name, checksum, bar))
    if target.read(MANIFEST) != data:
        target.write(MANIFEST, [data])
    if target.size(NOTE) is not None:
        target.delete(NOTE)
    return size


def _claim(manifest: Manifest, target: Place) -> None:
    """Write `NOTE` to the target. Raises InputError if files that the manifest lists lie there without it."""
    data, note, present = manifest.encode(), target.read(NOTE), target.read(MANIFEST)
    if data in (note, present):
        return
    if note is not None and not data.startswith(note):  # a note that was cut short is ours too
        raise InputError(
            f"{target.address}: a copy of another index was begun there; give another folder, or delete it"
        )
    for name in sorted(manifest.files):
        if target.size(name) is not None:
            raise InputError(f"{target.address}: holds {name!r} already; give another folder, or delete it")
    target.write(NOTE, [data])


def _is_there(target: Place, name: str, size: int | None, checksum: str) -> bool:
    """Whether a file of this size and checksum lies at the target. size: -1 where it is not known."""
    found = target.size(name)
    if found is None or size not in (-1, found):
        return False
    with closing(target.parts(name)) as parts:
        return _checksum(parts) == checksum


def _checked(source: Place, name: str, checksum: str, bar: tqdm) -> Iterator[bytes]:
    """The parts of a file; raises InputError after the last one if their checksum is another."""
    found = xxhash.xxh3_64()
    with closing(source.parts(name)) as parts:
        for part in parts:
            found.update(part)
            bar.update(len(part))
            yield part
    if found.hexdigest() != checksum:
        damage = "damaged (cut short or changed), its checksum differs"
        raise InputError(f"{source.name(name)}: {damage}; build or upload the index again")


def _checksum(parts: Iterable[bytes]) -> str:
    found = xxhash.xxh3_64()
    for part in parts:
        found.update(part)
    return found.hexdigest()


def _arrays(manifest: Manifest) -> dict[str, str]:
    """The checksum of each file but the manifest."""
    return {f"{name}.npy": checksum for name, checksum in manifest.checksums.items()}


def _size(manifest: Manifest, place: Place) -> int:
    sizes = {name: place.size(name) for name in manifest.files}
    missing = sorted(name for name, size in sizes.items() if size is None)
    if missing:
        raise InputError(f"{place.name(missing[0])}: missing; build or upload the index again")
    return sum(size for size in sizes.values() if size)
