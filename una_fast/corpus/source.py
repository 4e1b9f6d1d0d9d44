"""What every source of documents has in common: it yields blocks of UTF-8, and its content has a digest."""

from __future__ import annotations

import gzip
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import xxhash

from una_fast.errors import InputError

BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Block:
    """Documents ``data[starts[i]:stops[i]]``. data: uint8 (B,), valid UTF-8 there; starts, stops: int64 (n,)."""

    data: np.ndarray
    starts: np.ndarray
    stops: np.ndarray


class Source(ABC):
    """One source of documents: `blocks` may be read once, `digest` after that."""

    name: str

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """The documents, in order."""

    @abstractmethod
    def digest(self) -> str:
        """xxh3_128 of a file's raw bytes (and its column, if it has columns), or of the text of any other source."""


class FileSource(Source):
    """A file, possibly gzipped."""

    def __init__(self, path: Path):
        self.path = path
        self.name = path.name

    def digest(self) -> str:
        """xxh3_128 of the raw bytes."""
        state = xxhash.xxh3_128()
        with self.path.open("rb") as file:
            while piece := file.read(BLOCK_BYTES):
                state.update(piece)
        return state.hexdigest()

    def open(self) -> IO[bytes]:
        """The bytes, uncompressed."""
        if self.path.name.lower().endswith(".gz"):
            return gzip.open(self.path, "rb")  # type: ignore[return-value]
        return self.path.open("rb")

    def line_pieces(self) -> Iterator[bytes]:
        """Pieces of whole lines, of about BLOCK_BYTES."""
        started: list[bytes] = []  # a line that has not ended yet
        try:
            with self.open() as file:
                while piece := file.read(BLOCK_BYTES):
                    cut = piece.rfind(b"\n") + 1
                    if cut:
                        yield b"".join([*started, piece[:cut]])
                        started = []
                    started.append(piece[cut:])
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{self.path}: the gzip data is damaged or cut short ({error})") from error
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror or error}") from error
        if last := b"".join(started):
            yield last


class TextSource(Source):
    """A source whose digest is that of its text: of all documents on end, then of their lengths in bytes."""

    def __init__(self, name: str):
        self.name = name
        self._text = xxhash.xxh3_128()
        self._lengths = xxhash.xxh3_128()

    def blocks(self) -> Iterator[Block]:
        """The documents, in order."""
        for block in self._blocks():
            self._lengths.update((block.stops - block.starts).astype("<i8").tobytes())
            if len(block.starts):
                self._text.update(block.data[block.starts[0] : block.stops[-1]].tobytes())
            yield block

    def digest(self) -> str:
        """The same however the documents come in blocks."""
        return xxhash.xxh3_128_hexdigest(self._text.digest() + self._lengths.digest())

    @abstractmethod
    def _blocks(self) -> Iterator[Block]:
        """Blocks whose documents lie one right after the other."""
