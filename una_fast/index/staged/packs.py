"""Several arrays in one file, read in slices: how the stages of a build exchange data.

A file appears whole or not at all. It is not memory-mapped, because pages of a mapped file count as memory of the
process that touched them. Its checksum is compared when a build that was stopped goes on (`is_whole`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from una_fast.storage.files import READ_AT_ONCE, checksum_of, new_file, unwritable

GO_ON = "remove the cause, and run the same again: finished files are kept"
N_DIGITS = 16  # of the checksum, in the first line


@dataclass(frozen=True)
class PackFiles:
    """The files of the n tasks of a stage, in order. It is sent with each task, so it holds no list of them."""

    work: Path
    stage: str
    n: int

    def __getitem__(self, i: int) -> Path:
        return self.work / f"{self.stage}-{i}.pack"

    def __iter__(self) -> Iterator[Path]:
        return map(self.__getitem__, range(self.n))


def write_pack(path: Path, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write one-dimensional `arrays` and `meta` (anything JSON can hold).

    Raises:
        InputError: the file cannot be written, as on a full disk; nothing is left of it.
    """
    parts = [np.ascontiguousarray(array).view(np.uint8).data for array in arrays.values()]
    lengths = {name: [array.dtype.str, len(array)] for name, array in arrays.items()}
    header = json.dumps([meta, lengths]).encode() + b"\n"
    try:
        with new_file(path) as file:
            file.writelines([checksum_of([header, *parts]).encode() + b"\n", header, *parts])
    except OSError as error:
        raise unwritable(path, error, GO_ON) from error


class Pack(AbstractContextManager["Pack"]):
    """A file that `write_pack` wrote, to be read in slices, in a with statement."""

    def __init__(self, path: Path):
        self._file = path.open("rb")
        self._file.seek(N_DIGITS + 1)
        self.meta: dict[str, Any]
        self.meta, lengths = json.loads(self._file.readline())
        self._places: dict[str, tuple[np.dtype[Any], int, int]] = {}
        place = self._file.tell()
        for name, (dtype, length) in lengths.items():
            self._places[name] = np.dtype(dtype), length, place
            place += np.dtype(dtype).itemsize * length

    def length(self, name: str) -> int:
        """The number of values of an array."""
        return self._places[name][1]

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """``array[start:stop]``, read into memory."""
        dtype, length, place = self._places[name]
        self._file.seek(place + start * dtype.itemsize)
        return np.fromfile(self._file, dtype, (length if stop is None else stop) - start)

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read_meta(path: Path) -> dict[str, Any]:
    """The `meta` of a file that `write_pack` wrote."""
    with Pack(path) as pack:
        return pack.meta


def is_whole(path: Path) -> bool:
    """Whether a file holds what `write_pack` wrote."""
    with path.open("rb") as file:
        checksum = file.read(N_DIGITS + 1)
        return checksum_of(iter(lambda: file.read(READ_AT_ONCE), b"")).encode() + b"\n" == checksum
