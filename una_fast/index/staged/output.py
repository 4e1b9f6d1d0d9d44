"""The arrays of the index, of which each task fills a part. Stage write: the relabelled rows of a split."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from una_fast._kernels import csr
from una_fast.arrays import ID, POINTER
from una_fast.index.layout import DTYPES
from una_fast.index.staged.plan import Split
from una_fast.storage.files import array_header, file_checksum, new_file, unwritable
from una_fast.storage.packs import GO_ON, Pack, write_pack

ROWS = {"terms": "words", "chunks": "sentences"}  # the arrays of rows whose ids name these strings


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


def write_values(folder: Path, name: str, at: int, values: np.ndarray) -> None:
    """Put values into an array of the folder, from place `at` on; synced."""
    path = folder / f"{name}.npy"
    values = np.ascontiguousarray(values, dtype=DTYPES[name])
    try:
        with path.open("r+b", buffering=0) as file:
            start = 10 + int.from_bytes(file.read(10)[8:], "little")
            file.seek(start + at * values.itemsize)
            view = values.view(np.uint8).data
            while len(view):
                view = view[file.write(view) :]
            os.fsync(file.fileno())
    except OSError as error:
        raise unwritable(path, error, GO_ON) from error


def write_split(
    split: Split,
    work: Path,
    arrays: Path,
    labels: Mapping[str, Sequence[Path]],
    document: int,
    places: Mapping[str, int],
) -> None:
    """The task of a split: writes its rows to the index, and then the mark that they are there.

    labels: for terms and chunks, the files of stage label; document: its first row in the index; places: for terms and
    chunks, where its values start in the index.
    """
    csr.warm_up()
    rows, _, written = split.names
    if (work / written).exists():  # a worker that was thought lost has written it
        return
    with Pack(work / rows) as pack:
        for kind, name in ROWS.items():
            ranks = _labels(pack, kind, labels[kind], split.number)
            values = pack.read(f"{kind}_values")
            csr.relabel(values, ranks)
            write_values(arrays, f"{name}_values", places[kind], values)
            bounds = np.cumsum(pack.read(f"{kind}_lengths"), dtype=POINTER)
            bounds += places[kind]
            write_values(arrays, f"{name}_indptr", document + 1, bounds)
        meta: dict[str, Any] = pack.meta
    write_pack(work / written, meta, {})
    (work / rows).unlink(missing_ok=True)


def checksum_array(arrays: Path, name: str, output: Path) -> None:
    """The task of a complete array: writes the checksum of its file."""
    write_pack(output, {"checksum": file_checksum(arrays / f"{name}.npy")}, {})


def _labels(rows: Pack, kind: str, paths: Sequence[Path], split: int) -> np.ndarray:
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
