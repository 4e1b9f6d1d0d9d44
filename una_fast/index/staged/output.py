"""The arrays of the index, of which each task fills a part. Stage write: the relabelled rows of a split."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash

from una_fast._kernels.csr import relabel
from una_fast.arrays import ID, POINTER
from una_fast.errors import InputError
from una_fast.index.layout import DTYPES
from una_fast.index.staged.plan import ROWS, Paths
from una_fast.storage.content import wrong_ids
from una_fast.storage.files import (
    array_header,
    checksum_of,
    new_file,
    open_regular,
    own_file,
    parts_of,
    sync_file,
    unwritable,
)
from una_fast.storage.packs import GO_ON, Pack, write_pack

BOUNDS = ("_offsets", "_indptr")  # the ends of the names of arrays that start with a 0


class Piece(NamedTuple):
    """What a task has put into the file of an array. start, size: in bytes; checksum: xxh3_64."""

    start: int
    size: int
    checksum: str


def create_arrays(arrays: Paths, lengths: Mapping[str, int]) -> dict[str, Piece]:
    """Make the files of arrays of these lengths that are not there; returns how each starts, before tasks fill it."""
    starts = {}
    for name, length in lengths.items():
        dtype = np.dtype(DTYPES[name])
        header = array_header(dtype, (length,))
        start = header + bytes(dtype.itemsize if name.endswith(BOUNDS) else 0)
        starts[name] = Piece(0, len(start), checksum_of([start]))
        try:
            if not arrays[name].exists():
                with new_file(arrays[name]) as file:
                    file.write(start)
                    file.truncate(len(header) + length * dtype.itemsize)
        except OSError as error:
            raise unwritable(arrays[name], error, GO_ON) from error
    return starts


def write_values(arrays: Paths, name: str, at: int, values: np.ndarray) -> Piece:
    """Put values into an array, from place `at` on; synced. Returns what `checksum_array` looks for."""
    values = np.ascontiguousarray(values, dtype=DTYPES[name])
    view = values.view(np.uint8).data
    start = len(array_header(values.dtype, (0,))) + at * values.itemsize
    try:
        with open(arrays[name], "r+b", opener=own_file) as file:
            file.seek(start)
            file.write(view)
            sync_file(file)
    except OSError as error:
        raise unwritable(arrays[name], error, GO_ON) from error
    return Piece(start, len(view), checksum_of([view]))


def write_split(
    split: int,
    rows: Path,
    arrays: Paths,
    labels: Mapping[str, Paths],
    document: int,
    places: Mapping[str, int],
    written: Path,
) -> None:
    """The task of a split: writes its rows to the index, and then the mark that they are there.

    labels: for terms and chunks, the files of stage label; document: its first row in the index; places: for terms and
    chunks, where its values start in the index.
    """
    if written.exists():  # a worker that was thought lost has written it
        return
    pieces: dict[str, Piece] = {}
    with Pack(rows) as pack:
        for kind, name in ROWS.items():
            ranks = _labels(pack, kind, labels[kind], split)
            values = pack.read(f"{kind}_values")
            if wrong_ids(values, len(ranks)):
                pack.refuse()
            relabel(values, ranks, values)
            pieces[f"{name}_values"] = write_values(arrays, f"{name}_values", places[kind], values)
            bounds = places[kind] + np.cumsum(pack.read(f"{kind}_lengths"), dtype=POINTER)
            pieces[f"{name}_indptr"] = write_values(arrays, f"{name}_indptr", document + 1, bounds)
        meta: dict[str, Any] = {**pack.meta, "pieces": pieces}
    write_pack(written, meta, {})
    rows.unlink(missing_ok=True)


def _labels(rows: Pack, kind: str, paths: Paths, split: int) -> np.ndarray:
    """int32 (n,): the rank of each of the n numbers of a split."""
    numbers = rows.read(f"{kind}_numbers")
    labels = np.empty(len(numbers), dtype=ID)
    at = 0
    for path in paths:
        with Pack(path) as pack:
            found = pack.read("labels", *pack.read("bounds", split, split + 2))
        labels[numbers[at : at + len(found)]] = found
        at += len(found)
    return labels


def checksum_array(array: Path, pieces: Iterable[Piece], output: Path) -> None:
    """The task of an array: checks that its file holds these pieces, and nothing else, and writes its checksum."""
    checksum, at = xxhash.xxh3_64(), 0
    try:
        opened = open_regular(array)
    except OSError as error:
        raise unwritable(array, error, GO_ON) from error
    with opened as file:
        for piece in sorted(pieces):
            found = xxhash.xxh3_64()
            for part in parts_of(file, piece.size):
                found.update(part)
                checksum.update(part)
            if (at, found.hexdigest()) != (piece.start, piece.checksum):
                break
            at += piece.size
        if at != os.fstat(file.fileno()).st_size:
            raise InputError(
                f"{array}: damaged (its content is not what was written); delete {array.parent} to build anew"
            )
    write_pack(output, {"checksum": checksum.hexdigest()}, {})
