r"""Files of lines: .txt, a sentence per line; .jsonl, a JSON value per line; .json, the same or one array of values.

A line ends at a newline. In a .txt a carriage return right before it is dropped, and so is a byte order mark at the
start of the file; a carriage return elsewhere is content. A blank line is a document without words, so row i is line
i + 1.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import json
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from una_fast.arrays import StringTable
from una_fast.corpus.remote import RemoteFile
from una_fast.corpus.source import (
    BLOCK_BYTES,
    Block,
    FileSource,
    arrow_blocks,
    blocks_of,
    encode_row,
    too_long,
    unreadable,
)
from una_fast.errors import InputError

COMPRESSIONS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": lambda file: pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd"),
}


@contextmanager
def opened(path: Path | RemoteFile) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed by its ending.

    Raises:
        InputError: the file cannot be read, its compression is damaged, or it is UTF-16 or UTF-32.
    """
    ending = Path(path.name).suffix.lower()
    try:
        with path.open("rb") as raw, io.BufferedReader(COMPRESSIONS.get(ending, lambda file: file)(raw)) as file:
            if _looks_wide(file.peek(4096)[:4096]):
                raise InputError(
                    f"{path}: it looks like UTF-16 or UTF-32, and UTF-8 is needed: convert it, for example with "
                    f"iconv -f UTF-16 -t UTF-8 {path.name} > utf8-{path.name}"
                )
            yield file
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if ending not in COMPRESSIONS or getattr(error, "errno", None) is not None:
            raise unreadable(path, error) from error
        raise InputError(f"{path}: the compressed data is damaged or cut short ({error})") from error


def whole_lines(path: Path | RemoteFile, max_line_bytes: int | None) -> Iterator[bytes]:
    """The text of a file in parts of about BLOCK_BYTES that end where a line ends.

    A line that is too long is refused before it fills the memory.
    """
    at = 0
    unfinished: list[bytes] = []  # a line that has not ended yet
    with opened(path) as file:
        while piece := file.read(BLOCK_BYTES):
            at += len(piece)
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield b"".join([*unfinished, piece[:cut]])
                unfinished = []
            unfinished.append(piece[cut:])
            if max_line_bytes is not None and sum(map(len, unfinished)) > max_line_bytes:
                raise too_long(f"{path}, line {line_number(path, at):,}", max_line_bytes)
    if last := b"".join(unfinished):
        yield last


def line_number(path: Path | RemoteFile, at: int) -> int:
    """The number, from 1, of the line that holds byte `at` of the text; counted for error messages only."""
    with opened(path) as file:
        return 1 + sum(file.read(min(BLOCK_BYTES, at - start)).count(10) for start in range(0, at, BLOCK_BYTES))


def _looks_wide(start: bytes) -> bool:
    """Whether text is UTF-16 or UTF-32: by its byte order mark, or the zero bytes of ASCII characters in it."""
    return start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or start.count(0) * 4 > len(start) > 3


class TextFile(FileSource):
    """A sentence per line."""

    def _key(self) -> None:
        return None

    def _blocks(self) -> Iterator[Block]:
        at = 0
        for lines in whole_lines(self.path, self.reading.max_document_bytes):
            data = np.frombuffer(lines, dtype=np.uint8)
            if (invalid := first_invalid_utf8(data)) >= 0:
                raise InputError(
                    f"{self.path}, line {line_number(self.path, at + invalid):,}: byte {at + invalid} of the text is "
                    "not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"
                )
            starts, stops = split_lines(data)
            if at == 0 and lines.startswith(codecs.BOM_UTF8):
                starts[0] = len(codecs.BOM_UTF8)
            at += len(lines)
            yield Block(data, starts, stops)

    def _place(self, document: int) -> str:
        return f"{self.path}, line {document + 1:,}"


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


class JsonLinesFile(FileSource):
    """A JSON value per line: an object with the column among its keys, or a text. Blank lines hold no row."""

    def _blocks(self) -> Iterator[Block]:
        """The documents: by Arrow if every line is a plain object, else line by line, to find the line of an error."""
        n_before = 0
        for lines in whole_lines(self.path, self.reading.max_row_bytes):
            n_lines = lines.count(b"\n") + (not lines.endswith(b"\n"))
            plain = self._plain_blocks(lines, n_lines)
            yield from blocks_of(self._documents(lines, n_before)) if plain is None else plain
            n_before += n_lines

    def _plain_blocks(self, lines: bytes, n_lines: int) -> list[Block] | None:
        """The documents if every line is an object with a text under the column's key, else None."""
        column = pa.schema([(self.reading.column, pa.string())])
        parse = pa.json.ParseOptions(explicit_schema=column, unexpected_field_behavior="ignore")
        read = pa.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
        try:
            values = pa.json.read_json(io.BytesIO(lines), read, parse).column(0)
            return [*arrow_blocks(values.chunks, str(self.path))] if len(values) == n_lines else None
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, InputError):
            return None

    def _documents(self, lines: bytes, n_before: int) -> Iterator[bytes]:
        for number, line in enumerate(lines.split(b"\n"), start=n_before + 1):
            if line.strip():
                value = self._value(line, number, "one JSON value")
                yield encode_row(value, self.reading.column, f"{self.path}, line {number:,}")

    def _value(self, text: bytes, line: int, what: str) -> Any:
        """The JSON value of a text that starts in this line of the file. what: it should be, for errors."""
        try:
            return json.loads(text.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            line += text.count(b"\n", 0, error.start)
            raise InputError(f"{self.path}, line {line:,}: not UTF-8; convert the file") from error
        except (ValueError, RecursionError) as error:
            line += getattr(error, "lineno", 1) - 1
            raise InputError(
                f"{self.path}, line {line:,}: not {what} ({error}); give a value per line, or one array in a file "
                "named .json"
            ) from error


class JsonFile(JsonLinesFile):
    """One array of JSON values, which is held in memory as a whole, or a value per line."""

    def _blocks(self) -> Iterator[Block]:
        with opened(self.path) as file:
            text = file.read(BLOCK_BYTES)
            if not text.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"["):
                yield from super()._blocks()
                return
            text += file.read()
        rows, column = self._value(text, 1, "an array of JSON values"), self.reading.column
        yield from blocks_of(encode_row(row, column, f"{self.path}, item {i:,} (from 0)") for i, row in enumerate(rows))
