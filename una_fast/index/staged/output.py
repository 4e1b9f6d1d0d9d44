"""Stages number and write: the rows of a split in ids of the index, and the arrays of the index, joined from parts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import xxhash

from una_fast._kernels.csr import relabel
from una_fast.arrays import ID, POINTER
from una_fast.index.layout import DTYPES
from una_fast.index.staged.packs import GO_ON, Pack, PackFiles, write_pack
from una_fast.index.staged.read import ROWS
from una_fast.storage.files import new_file, unwritable


def number_split(split: int, rows: Path, labels: dict[str, PackFiles], output: Path) -> None:
    """The task of a split: writes its rows, whose own numbers of words and chunks become ids by the `labels`."""
    arrays: dict[str, np.ndarray] = {}
    with Pack(rows) as of_rows:
        for kind, name in ROWS.items():
            numbers, values = of_rows.read(f"{name}_numbers"), of_rows.read(f"{name}_values")
            ids, at = np.empty(len(numbers), dtype=ID), 0
            for path in labels[kind]:
                with Pack(path) as pack:
                    part = pack.read("labels", *pack.read("bounds", split, split + 2))
                ids[numbers[at : at + len(part)]] = part
                at += len(part)
            relabel(values, ids, values)
            arrays |= {f"{name}_values": values, f"{name}_lengths": of_rows.read(f"{name}_lengths")}
    write_pack(output, {}, arrays)


def write_array(name: str, parts: PackFiles, array: Path, output: Path) -> None:
    """The task of an array: joins its `parts` in the file `array`, and writes the checksum of that to `output`."""
    table, _, content = name.rpartition("_")
    is_bounds = content in ("offsets", "indptr")
    in_part = f"{table}_lengths" if is_bounds else name
    checksum, dtype, end = xxhash.xxh3_64(), np.dtype(DTYPES[name]), 0
    n = int(is_bounds)
    for path in parts:
        with Pack(path) as pack:
            n += pack.length(in_part)
    try:
        with new_file(array) as file:

            def write(data: bytes | memoryview) -> None:
                file.write(data)
                checksum.update(data)

            header = {"descr": dtype.str, "fortran_order": False, "shape": (n,)}
            np.lib.format.write_array_header_1_0(SimpleNamespace(write=write), header)
            write(bytes(dtype.itemsize * is_bounds))
            for path in parts:
                with Pack(path) as pack:
                    values = pack.read(in_part)
                if is_bounds and len(values):
                    values = end + np.cumsum(values, dtype=POINTER)
                    end = values[-1]
                write(values.astype(dtype, copy=False).view(np.uint8).data)
    except OSError as error:
        raise unwritable(array, error, GO_ON) from error
    write_pack(output, {"checksum": checksum.hexdigest()}, {})
