"""Several arrays in one file, read in slices: how the stages of a build exchange data.

A file appears whole or not at all, and each block that is read is compared with its checksum. The checksum of these
checksums is also of the file's name, which tells all that the content depends on: under another name a file counts as
damaged. It is not memory-mapped, because pages of a mapped file count as memory of the process that touched them.
"""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import xxhash

from una_fast.errors import InputError
from una_fast.storage.files import new_file, open_regular, unwritable

MAGIC = b"unapack3"
SUM = np.dtype("<u8")
CHECKED = 1 << 16  # bytes of an array with one checksum; a slice costs at most two blocks more than it holds
KEPT = "finished files are kept: "
GO_ON = f"{KEPT}remove the cause, and run the same again"
DAMAGED = "damaged, cut short or exchanged; delete it and build again"


def write_pack(path: Path, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write one-dimensional `arrays` and `meta` (anything JSON can hold) beside `path`, synced, and rename the file.

    Raises:
        InputError: the file cannot be written, as on a full disk; nothing is left of it.
    """
    data = [np.ascontiguousarray(array).view(np.uint8) for array in arrays.values()]
    places, end, block = {}, 0, 0
    for (name, array), its_bytes in zip(arrays.items(), data, strict=True):
        places[name] = (array.dtype.str, len(array), end, block)
        end += len(its_bytes)
        block += -(-len(its_bytes) // CHECKED)
    checksums = np.concatenate([np.zeros(0, dtype=SUM), *map(block_checksums, data)])
    header = json.dumps({"meta": meta, "arrays": places, "bytes": end}).encode() + b"\n" + checksums.tobytes()
    start = MAGIC + len(header).to_bytes(8, "little") + _header_checksum(path.name, header)
    try:
        with new_file(path) as file:
            file.writelines([start, header, *(its_bytes.data for its_bytes in data)])
    except OSError as error:
        raise unwritable(path, error, GO_ON) from error


def _header_checksum(name: str, header: bytes) -> bytes:
    return xxhash.xxh3_64_digest(name.encode() + b"/" + header)


def block_checksums(data: np.ndarray) -> np.ndarray:
    """uint64: xxh3_64 of every CHECKED bytes. data: uint8."""
    starts = range(0, len(data), CHECKED)
    return np.array([xxhash.xxh3_64_intdigest(data[at : at + CHECKED].data) for at in starts], dtype=SUM)


def read_meta(path: Path) -> dict[str, Any]:
    """The `meta` of a file that `write_pack` wrote."""
    with Pack(path) as pack:
        return pack.meta


class Pack(AbstractContextManager["Pack"]):
    """A file that `write_pack` wrote, to be read in slices, in a with statement.

    Raises InputError for a file that is missing, cut short, changed, no pack, or written under another name.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            self._file = open_regular(path, buffering=0)
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error}); run the build again") from error
        magic, n, checksum = (self._file.read(8) for _ in range(3))
        size, n_header = os.fstat(self._file.fileno()).st_size, int.from_bytes(n, "little")
        header = self._file.read(n_header) if n_header <= size else b""
        if magic != MAGIC or _header_checksum(path.name, header) != checksum:
            self.refuse()
        text, _, checksums = header.partition(b"\n")
        content = json.loads(text)
        self._start = len(MAGIC) + 16 + n_header
        if size != self._start + content["bytes"]:
            self.refuse()
        self.meta: dict[str, Any] = content["meta"]
        self._places: dict[str, tuple[str, int, int, int]] = content["arrays"]
        self._checksums = np.frombuffer(checksums, dtype=SUM, count=len(checksums) // 8)

    def length(self, name: str) -> int:
        """The number of values of an array."""
        return self._places[name][1]

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """``array[start:stop]``, read into memory and compared with its checksums."""
        kind, length, offset, first = self._places[name]
        stop, dtype = length if stop is None else stop, np.dtype(kind)
        if not 0 <= start <= stop <= length:
            self.refuse()
        low, high = start * dtype.itemsize, stop * dtype.itemsize
        if low == high:
            return np.empty(0, dtype=dtype)
        base = low - low % CHECKED
        end = min(high + -high % CHECKED, length * dtype.itemsize)
        self._file.seek(self._start + offset + base)
        data = np.fromfile(self._file, dtype=np.uint8, count=end - base)
        first += base // CHECKED
        found = block_checksums(data)
        if len(data) != end - base or not np.array_equal(found, self._checksums[first : first + len(found)]):
            self.refuse()
        return data[low - base : high - base].view(dtype)

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def refuse(self) -> NoReturn:
        """Raise InputError: the file does not hold what was written."""
        self._file.close()
        raise InputError(f"{self.path}: {DAMAGED}")
