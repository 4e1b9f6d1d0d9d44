"""The arrays of the index, of which each task fills a part. Stage write: the relabelled rows of a split."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash

from una_fast._kernels.csr import relabel
from una_fast.arrays import ID, POINTER
from una_fast.errors import InputError
from una_fast.index.layout import DTYPES
from una_fast.index.staged.plan import Paths, Split
from una_fast.storage.content import wrong_ids
from una_fast.storage.files import array_header, new_file, open_regular, own_file, parts_of, sync_file, unwritable
from una_fast.storage.packs import GO_ON, Pack, write_pack

BOUNDS = ("_offsets", "_indptr")  # the ends of the names of arrays that start with a 0
ROWS = {"terms": "words", "chunks": "sentences"}  # the arrays of rows whose ids name these strings


class Piece(NamedTuple):
    """What a task has put into the file of an array. start, size: in bytes; checksum: xxh3_64."""

    start: int
    size: int
    checksum: str


def create_arrays(folder: Path, lengths: Mapping[str, int]) -> None:
    """Files of arrays of these lengths, all zeros; files that are there are left as they are."""
    try:
        folder.mkdir(exist_ok=True)
        for name, length in lengths.items():
            path, header = folder / f"{name}.npy", array_header(np.dtype(DTYPES[name]), (length,))
            if not path.exists():
                with new_file(path) as file:
                    file.write(header)
                    file.truncate(len(header) + length * np.dtype(DTYPES[name]).itemsize)
    except OSError as error:
        raise unwritable(folder, error, GO_ON) from error


def write_values(folder: Path, name: str, at: int, values: np.ndarray) -> Piece:
    """Put values into an array of the folder, from place `at` on; synced. Returns what `checksum_array` looks for."""
    path = folder / f"{name}.npy"
    values = np.ascontiguousarray(values, dtype=DTYPES[name])
    view = values.view(np.uint8).data
    try:
        with open(path, "r+b", opener=own_file) as file:
            start = 10 + int.from_bytes(file.read(10)[8:], "little") + at * values.itemsize
            piece = Piece(start, len(view), xxhash.xxh3_64_hexdigest(view))
            file.seek(start)
            file.write(view)
            sync_file(file)
    except OSError as error:
        raise unwritable(path, error, GO_ON) from error
    return piece


def write_split(
    split: Split,
    work: Path,
    arrays: Path,
    labels: Mapping[str, Paths],
    document: int,
    places: Mapping[str, int],
    written: Path,
) -> None:
    """The task of a split: writes its rows to the index, and then the mark that they are there.

    labels: for terms and chunks, the files of stage label; document: its first row in the index; places: for terms and
    chunks, where its values start in the index.
    """
    rows, _ = split.names
    if written.exists():  # a worker that was thought lost has written it
        return
    pieces: dict[str, Piece] = {}
    with Pack(work / rows) as pack:
        for kind, name in ROWS.items():
            ranks = _labels(pack, kind, labels[kind], split.number)
            values = pack.read(f"{kind}_values")
            if wrong_ids(values, len(ranks)):
                pack.refuse()
            relabel(values, ranks, values)
            pieces[f"{name}_values"] = write_values(arrays, f"{name}_values", places[kind], values)
            bounds = np.cumsum(pack.read(f"{kind}_lengths"), dtype=POINTER)
            bounds += places[kind]
            pieces[f"{name}_indptr"] = write_values(arrays, f"{name}_indptr", document + 1, bounds)
        meta: dict[str, Any] = {**pack.meta, "pieces": pieces}
    write_pack(written, meta, {})
    (work / rows).unlink(missing_ok=True)


def checksum_array(arrays: Path, name: str, pieces: list[Piece], output: Path) -> None:
    """The task of an array: checks that it holds the `pieces` that tasks have put into it, and nothing else, and writes
    the checksum of its file.
    """
    path, checksum, at = arrays / f"{name}.npy", xxhash.xxh3_64(), 0
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        for piece in sorted([*_start_of(name, size), *pieces]):
            found = xxhash.xxh3_64()
            for part in parts_of(file, piece.size):
                found.update(part)
                checksum.update(part)
            if (at, found.hexdigest()) != (piece.start, piece.checksum):
                break
            at += piece.size
    if at != size:
        raise InputError(f"{path}: damaged (its content is not what was written); delete {arrays} to build anew")
    write_pack(output, {"checksum": checksum.hexdigest()}, {})


def _start_of(name: str, size: int) -> list[Piece]:
    """What stands in a file of an array before the values of tasks: the header and, in bounds, the first 0."""
    dtype = np.dtype(DTYPES[name])
    length = (size - len(array_header(dtype, (0,)))) // dtype.itemsize
    parts = [array_header(dtype, (length,)), bytes(8) if name.endswith(BOUNDS) else b""]
    starts = [0, len(parts[0])]
    return [Piece(at, len(part), xxhash.xxh3_64_hexdigest(part)) for at, part in zip(starts, parts, strict=True)]


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
