"""Stages number and write: the ids of a split's numbers, and the arrays of the index, each joined from its parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xxhash

from una_fast._kernels.csr import relabel
from una_fast.arrays import ID, POINTER
from una_fast.errors import InputError
from una_fast.index.layout import DTYPES
from una_fast.index.staged.plan import ROWS, Paths
from una_fast.storage.content import wrong_ids
from una_fast.storage.files import array_header, new_file, unwritable
from una_fast.storage.packs import DAMAGED, GO_ON, Pack, write_pack


def number_split(split: int, rows: Path, labels: dict[str, Paths], output: Path) -> None:
    """The task of a split: writes the id of each of its numbers of words and of chunks, int32, from the `labels`."""
    arrays = {}
    with Pack(rows) as of_rows:
        for kind, name in ROWS.items():
            numbers = of_rows.read(f"{name}_numbers")
            ids, at = np.empty(len(numbers), dtype=ID), 0
            for path in labels[kind]:
                with Pack(path) as pack:
                    found = pack.read("labels", *pack.read("bounds", split, split + 2))
                ids[numbers[at : at + len(found)]] = found
                at += len(found)
            arrays[name] = ids
    write_pack(output, {}, arrays)


def write_array(name: str, parts: Paths, ids: Paths | None, array: Path, output: Path) -> None:
    """The task of an array: joins its parts in the file `array`, and writes the checksum of that to `output`.

    parts: of its strings and scores the ranges of ranks, of its rows the splits, whose numbers become `ids`.
    """
    table, _, content = name.rpartition("_")
    is_bounds = content in ("offsets", "indptr")
    of_part = f"{table}_lengths" if is_bounds else name
    n = sum(_length(path, of_part) for path in parts) + is_bounds
    checksum, dtype, end = xxhash.xxh3_64(), np.dtype(DTYPES[name]), 0
    try:
        with new_file(array) as file:
            for start in (array_header(dtype, (n,)), bytes(dtype.itemsize * is_bounds)):
                file.write(start)
                checksum.update(start)
            for split, path in enumerate(parts):
                values = _read(path, of_part)
                if ids is not None:
                    ids_of_split = _read(ids[split], table)
                    if wrong_ids(values, len(ids_of_split)):
                        raise InputError(f"{path}: {DAMAGED}")
                    relabel(values, ids_of_split, values)
                if is_bounds and len(values):
                    values = end + np.cumsum(values, dtype=POINTER)
                    end = values[-1]
                data = values.astype(dtype, copy=False).view(np.uint8).data
                file.write(data)
                checksum.update(data)
    except OSError as error:
        raise unwritable(array, error, GO_ON) from error
    write_pack(output, {"checksum": checksum.hexdigest()}, {})


def _length(path: Path, name: str) -> int:
    with Pack(path) as pack:
        return pack.length(name)


def _read(path: Path, name: str) -> np.ndarray:
    with Pack(path) as pack:
        return pack.read(name)
