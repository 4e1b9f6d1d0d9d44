"""Several arrays in one file, read in slices: how the stages of a build exchange data.

A file appears whole or not at all. It is not memory-mapped, because pages of a mapped file count as memory of the
process that touched them. Its checksum is compared when a build that was stopped goes on (`is_whole`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from una_fast.errors import InputError
from una_fast.storage.files import READ_AT_ONCE, checksum_of, new_file, unwritable

GO_ON = "remove the cause, and run the same again: finished files are kept"


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
    data = [np.ascontiguousarray(array).view(np.uint8).data for array in arrays.values()]
    ends = np.cumsum([len(part) for part in data], dtype=np.int64).tolist()
    places = {
        name: [array.dtype.str, len(array), end - array.nbytes]
        for (name, array), end in zip(arrays.items(), ends, strict=True)
    }
    checksum = checksum_of([_described(meta, places), *data])
    header = {"meta": meta, "arrays": places, "bytes": ends[-1] if ends else 0, "xxh3_64": checksum}
    try:
        with new_file(path) as file:
            file.writelines([json.dumps(header).encode() + b"\n", *data])
    except OSError as error:
        raise unwritable(path, error, GO_ON) from error


class Pack(AbstractContextManager["Pack"]):
    """A file that `write_pack` wrote, to be read in slices, in a with statement.

    Raises InputError for a file that is missing or cut short.
    """

    def __init__(self, path: Path):
        try:
            self._file = path.open("rb")
            header = json.loads(self._file.readline())
            self._start, size = self._file.tell(), os.fstat(self._file.fileno()).st_size
            if size != self._start + header["bytes"]:
                raise ValueError("it is cut short")
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: cannot be read ({error}); delete its folder, and build again") from error
        self.meta: dict[str, Any] = header["meta"]
        self._checksum: str = header["xxh3_64"]
        self._places: dict[str, tuple[str, int, int]] = header["arrays"]

    def length(self, name: str) -> int:
        """The number of values of an array."""
        return self._places[name][1]

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """``array[start:stop]``, read into memory."""
        dtype, length, place = self._places[name]
        count = (length if stop is None else stop) - start
        self._file.seek(self._start + place + start * np.dtype(dtype).itemsize)
        return np.fromfile(self._file, dtype, count)

    def is_whole(self) -> bool:
        """Whether all has its checksum."""
        self._file.seek(self._start)
        data = iter(lambda: self._file.read(READ_AT_ONCE), b"")
        return checksum_of(chain([_described(self.meta, self._places)], data)) == self._checksum

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _described(meta: dict[str, Any], places: dict[str, Any]) -> bytes:
    return json.dumps([meta, places], sort_keys=True).encode()


def read_meta(path: Path) -> dict[str, Any]:
    """The `meta` of a file that `write_pack` wrote."""
    with Pack(path) as pack:
        return pack.meta


def is_whole(path: Path) -> bool:
    """Whether a file holds what `write_pack` wrote."""
    try:
        with Pack(path) as pack:
            return pack.is_whole()
    except (InputError, KeyError, TypeError):
        return False
