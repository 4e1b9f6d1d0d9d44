"""Several arrays in one file, read in slices: how the stages of a build exchange data.

A file appears whole or not at all. It is not memory-mapped, because pages of a mapped file count as memory of the
process that touched them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import IO, Any

import numpy as np

from una_fast.errors import InputError
from una_fast.storage.files import new_file, unwritable

MAGIC = b"unapack1"
ALIGNMENT = 64
GO_ON = "finished files are kept: remove the cause, and run the same again to go on"


def write_pack(path: Path, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write one-dimensional `arrays` and `meta` (anything JSON can hold) beside `path`, synced, and rename the file.

    Raises:
        InputError: the file cannot be written, as on a full disk; nothing is left of it.
    """
    try:
        with new_file(path) as file:
            _write(file, meta, arrays)
    except OSError as error:
        raise unwritable(path, error, GO_ON) from error


def _write(file: IO[bytes], meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    places, end = {}, 0
    for name, array in arrays.items():
        places[name] = (array.dtype.str, len(array), end)
        end += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    header = json.dumps({"meta": meta, "arrays": places, "bytes": end}).encode()
    start = data_start(len(header))
    file.write((MAGIC + len(header).to_bytes(8, "little") + header).ljust(start, b"\0"))
    for array in arrays.values():
        data = np.ascontiguousarray(array).view(np.uint8).data
        file.write(data)
        file.write(bytes(-len(data) % ALIGNMENT))


def data_start(header_bytes: int) -> int:
    """The offset at which the arrays start after `header_bytes` bytes of JSON."""
    return -(-(len(MAGIC) + 8 + header_bytes) // ALIGNMENT) * ALIGNMENT


class Pack:
    """A file that `write_pack` wrote, to be read in slices; use it in a with statement, or close it.

    Raises InputError for a file that is missing, cut short, or no pack.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error}); run the build again") from error
        try:
            magic, size = self._file.read(len(MAGIC)), int.from_bytes(self._file.read(8), "little")
            header = json.loads(self._file.read(size)) if magic == MAGIC else {}
            self._start = data_start(size)
            whole = os.fstat(self._file.fileno()).st_size == self._start + header["bytes"]
        except (ValueError, KeyError) as error:
            self.close()
            raise self._damaged() from error
        if not whole:
            self.close()
            raise self._damaged()
        self.meta: dict[str, Any] = header["meta"]
        self._places: dict[str, tuple[str, int, int]] = header["arrays"]

    def length(self, name: str) -> int:
        """The number of values of an array."""
        return self._places[name][1]

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """``array[start:stop]``, read into memory; 0 <= start <= stop <= its length."""
        dtype, length, offset = self._places[name]
        stop = length if stop is None else stop
        values = np.empty(stop - start, dtype=dtype)
        view = values.view(np.uint8).data
        self._file.seek(self._start + offset + start * values.itemsize)
        while len(view):
            n_read = self._file.readinto(view)  # at most 2 GiB at once
            if not n_read:
                raise self._damaged()
            view = view[n_read:]
        return values

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Pack:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _damaged(self) -> InputError:
        return InputError(f"{self.path}: damaged or cut short; delete it and run the build again")
