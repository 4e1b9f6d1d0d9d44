"""Text files: a sentence per line.

A line ends at a newline. A carriage return right before it is dropped, and so is a byte order mark at the start of the
file; a carriage return elsewhere is content. A blank line is a document without words, so row i is line i + 1.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import itertools
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from una_fast.arrays import StringTable
from una_fast.corpus.remote import RemoteFile
from una_fast.corpus.source import BLOCK_BYTES, Block, FileSource, too_long, unreadable, whole_lines
from una_fast.errors import InputError

SAMPLE_BYTES = 4096
COMPRESSIONS: dict[str, tuple[str, Callable[[IO[bytes]], Any]]] = {
    ".gz": ("gzip", gzip.open),
    ".bz2": ("bzip2", bz2.open),
    ".xz": ("xz", lzma.open),
    ".zst": ("zstandard", lambda file: pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")),
}


class LineReader(io.RawIOBase):
    """The bytes of a file, decompressed by its ending; a line that is too long is refused before it fills the memory.

    `read` raises InputError for damaged compression, UTF-16 or UTF-32, and a line that is too long.

    Args:
        path: The file.
        max_line_bytes: The longest line; None for any.
        part: (start, stop) of the bytes to read, of a file that is not compressed; None for all.
    """

    def __init__(self, path: Path | RemoteFile, max_line_bytes: int | None, part: tuple[int, int] | None = None):
        super().__init__()
        self.path = path
        self._newlines = self._unfinished = 0  # newlines read so far, and bytes after the last of them
        self._start = self._at = part[0] if part else 0
        self._stop = part[1] if part else None
        self._compression, uncompressed = COMPRESSIONS.get(Path(path.name).suffix.lower(), ("", lambda file: file))
        self._max_line_bytes = max_line_bytes
        try:
            self._raw: IO[bytes] = path.open("rb")
            self._file: IO[bytes] = uncompressed(self._raw)
            if part:
                self._file.seek(self._start)
        except OSError as error:
            raise unreadable(path, error) from error

    @property
    def n_lines(self) -> int:
        """The number of lines read so far, an unfinished last one included."""
        return self._newlines + (self._unfinished > 0)

    def readable(self) -> bool:
        """True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `size`; none at the end."""
        if self._stop is not None:
            size = min(size % (1 << 63), self._stop - self._at)
        try:
            piece = self._file.read(size)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            if not self._compression or getattr(error, "errno", None) is not None:
                raise unreadable(self.path, error) from error
            raise InputError(f"{self.path}: the {self._compression} data is damaged or cut short ({error})") from error
        if self._at == 0 and looks_wide(piece[:SAMPLE_BYTES]):
            raise InputError(
                f"{self.path}: it looks like UTF-16 or UTF-32, and UTF-8 is needed: convert it, for example with "
                f"iconv -f UTF-16 -t UTF-8 {self.path.name} > utf8-{self.path.name}"
            )
        self._at += len(piece)
        self._count_lines(piece)
        return piece

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._file.close()
            self._raw.close()
        super().close()

    def _count_lines(self, piece: bytes) -> None:
        first = piece.find(b"\n")
        longest = self._unfinished + (len(piece) if first < 0 else first)
        if self._max_line_bytes is not None and longest > self._max_line_bytes:
            line = count_lines(self.path, self._start) + self._newlines + 1
            raise too_long(f"{self.path}, line {line:,}", self._max_line_bytes)
        self._newlines += piece.count(b"\n")
        self._unfinished = longest if first < 0 else len(piece) - piece.rfind(b"\n") - 1


def count_lines(path: Path | RemoteFile, stop: int) -> int:
    """The newlines in the first `stop` bytes of a file; counted for error messages only."""
    n_lines = 0
    with path.open("rb") as file:
        while stop > 0 and (piece := file.read(min(stop, BLOCK_BYTES))):
            n_lines += piece.count(b"\n")
            stop -= len(piece)
    return n_lines


def looks_wide(start: bytes) -> bool:
    """Whether text is UTF-16 or UTF-32: by its byte order mark, or the zero bytes of ASCII characters in it."""
    return start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or start.count(0) * 4 > len(start) > 3


class TextFile(FileSource):
    """A sentence per line. A part is a range of bytes, whole lines."""

    def _key(self) -> None:
        return None

    def split(self, n_bytes: int) -> list[FileSource] | None:
        """Parts of about `n_bytes`, whole lines each; None for a compressed file."""
        if not self.name.lower().endswith(".txt"):
            return None
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            cuts = {0, size}
            for target in range(n_bytes, size, n_bytes):
                file.seek(target)
                while (piece := file.readline(BLOCK_BYTES)) and not piece.endswith(b"\n"):
                    pass
                cuts.add(file.tell())
        return [TextFile(self.path, self.reading, part) for part in itertools.pairwise(sorted(cuts))]

    def _blocks(self) -> Iterator[Block]:
        at, n_lines = self.part[0] if self.part else 0, 0
        with LineReader(self.path, self.reading.max_document_bytes, self.part) as file:
            for lines in whole_lines(file):
                data = np.frombuffer(lines, dtype=np.uint8)
                starts, stops = split_lines(data)
                invalid = first_invalid_utf8(data)
                if invalid >= 0:
                    line = n_lines + int(np.searchsorted(starts, invalid, side="right")) - 1
                    raise InputError(
                        f"{self._place(line)}: byte {at + invalid} of the text is not UTF-8; convert the "
                        "file, for example with iconv -f latin1 -t utf-8"
                    )
                if at == 0 and lines.startswith(codecs.BOM_UTF8):
                    starts[0] = len(codecs.BOM_UTF8)
                at += len(lines)
                n_lines += len(starts)
                yield Block(data, starts, stops)

    def _place(self, document: int) -> str:
        before = count_lines(self.path, self.part[0]) if self.part else 0
        return f"{self.path}, line {before + document + 1:,}"


def split_lines(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Returns (starts, stops), int64: line i is ``data[starts[i]:stops[i]]``. data: uint8.

    A line ends at a newline or at the end of `data`; one \r before that end does not belong to the line.
    """
    ends = np.flatnonzero(data == ord("\n"))
    if len(data) and data[-1] != ord("\n"):
        ends = np.append(ends, len(data))
    starts = np.append(0, ends[:-1] + 1)[: len(ends)]
    return starts, ends - ((ends > starts) & (data[ends - 1] == ord("\r")))


def first_invalid_utf8(data: np.ndarray) -> int:
    """The offset at which Python's strict decoder finds the first error in `data`, uint8; -1 if it is valid UTF-8."""
    if not StringTable(data, np.array([0, len(data)])).is_utf8():
        try:
            str(data.data, "utf-8")
        except UnicodeDecodeError as error:
            return error.start
    return -1
