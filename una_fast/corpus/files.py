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
from una_fast.corpus.source import BLOCK_BYTES, FileSource, arrow_blocks, blocks_of, encode_row, too_long, unreadable
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
            start = file.peek(4096)[:4096]
            # a byte order mark, or the zero bytes of ASCII characters
            if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or start.count(0) * 4 > len(start) > 3:
                raise InputError(
                    f"{path}: it looks like UTF-16 or UTF-32, and UTF-8 is needed: convert it, for example with "
                    f"iconv -f UTF-16 -t UTF-8 {path.name} > utf8-{path.name}"
                )
            yield file
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if ending in COMPRESSIONS and getattr(error, "errno", None) is None:
            raise InputError(f"{path}: the compressed data is damaged or cut short ({error})") from error
        raise unreadable(path, error) from error


def whole_lines(path: Path | RemoteFile, max_line_bytes: int | None) -> Iterator[tuple[int, bytes]]:
    """The text of a file in parts of about BLOCK_BYTES that end where a line ends, each with its place in bytes.

    A line that is too long is refused before it fills the memory.
    """
    at = 0
    with opened(path) as file:
        while lines := file.read(BLOCK_BYTES):
            rest = file.readline(-1 if max_line_bytes is None else max_line_bytes + 1)
            if max_line_bytes is not None and len(rest) > max_line_bytes:
                raise too_long(f"{path}, line {line_number(path, at + len(lines)):,}", max_line_bytes)
            yield at, lines + rest
            at += len(lines) + len(rest)


def line_number(path: Path | RemoteFile, at: int) -> int:
    """The number, from 1, of the line that holds byte `at` of the text; counted for error messages only."""
    with opened(path) as file:
        return 1 + sum(file.read(min(BLOCK_BYTES, at - start)).count(b"\n") for start in range(0, at, BLOCK_BYTES))


class TextFile(FileSource):
    """A sentence per line."""

    row = "line"

    def _blocks(self) -> Iterator[StringTable]:
        for at, lines in whole_lines(self.path, self.reading.max_document_bytes):
            if not StringTable(np.frombuffer(lines, dtype=np.uint8), np.array([0, len(lines)])).is_utf8():
                raise _not_utf8(self.path, line_number(self.path, at), lines)
            yield split_lines(lines if at else lines.removeprefix(codecs.BOM_UTF8))

    def _key(self) -> None:
        return None


def split_lines(lines: bytes) -> StringTable:
    r"""The lines of a text. A line ends at a newline or at the end of the text; one \r before does not belong to it."""
    if not lines.endswith(b"\n"):
        lines += b"\n"
    if b"\r" in lines:
        lines = lines.replace(b"\r\n", b"\n")
    ends = np.flatnonzero(np.frombuffer(lines, dtype=np.uint8) == ord("\n"))
    text = np.frombuffer(lines.replace(b"\n", b""), dtype=np.uint8)
    return StringTable(text, np.append(0, ends - np.arange(len(ends))))


def _not_utf8(path: Path | RemoteFile, number: int, lines: bytes) -> InputError:
    """The error for `lines`, of which the first has this number, that cannot be decoded."""
    try:
        lines.decode("utf-8")
    except UnicodeDecodeError as error:
        number += lines.count(b"\n", 0, error.start)
    return InputError(
        f"{path}, line {number:,}: not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"
    )


class JsonLinesFile(FileSource):
    """A JSON value per line: an object with the column among its keys, or a text. Blank lines hold no row."""

    def _blocks(self) -> Iterator[StringTable]:
        """The documents: by Arrow if every line is a plain object, else line by line, to find the line of an error."""
        number = 1
        for _, lines in whole_lines(self.path, self.reading.max_row_bytes):
            n_lines = lines.count(b"\n") + (not lines.endswith(b"\n"))
            yield from self._plain_blocks(lines, n_lines) or blocks_of(self._documents(number, lines))
            number += n_lines

    def _plain_blocks(self, lines: bytes, n_lines: int) -> list[StringTable]:
        """The documents if every line is an object with a text under the column's key, else none."""
        column = pa.schema([(self.reading.column, pa.string())])
        parse = pa.json.ParseOptions(explicit_schema=column, unexpected_field_behavior="ignore")
        read = pa.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
        try:
            values = pa.json.read_json(io.BytesIO(lines), read, parse).column(0)
            return [*arrow_blocks(values.chunks, str(self.path))] if len(values) == n_lines else []
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, InputError):
            return []

    def _documents(self, number: int, lines: bytes) -> Iterator[bytes]:
        for at, line in enumerate(lines.split(b"\n"), start=number):
            if line.strip():
                value = self._value(at, line, "one JSON value")
                yield encode_row(value, self.reading.column, f"{self.path}, line {at:,}")

    def _value(self, number: int, text: bytes, what: str) -> Any:
        """The JSON value of a text that starts in the line of this number. what: it should be, for errors."""
        try:
            return json.loads(text.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise _not_utf8(self.path, number, text) from error
        except (ValueError, RecursionError) as error:
            number += getattr(error, "lineno", 1) - 1
            raise InputError(
                f"{self.path}, line {number:,}: not {what} ({error}); give a value per line, or one array in a file "
                "named .json"
            ) from error


class JsonFile(JsonLinesFile):
    """One array of JSON values, which is held in memory as a whole, or a value per line."""

    def _blocks(self) -> Iterator[StringTable]:
        with opened(self.path) as file:
            text = file.read(BLOCK_BYTES)
            if not text.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"["):
                yield from super()._blocks()
                return
            text += file.read()
        rows, column = self._value(1, text, "an array of JSON values"), self.reading.column
        yield from blocks_of(encode_row(row, column, f"{self.path}, item {i:,} (from 0)") for i, row in enumerate(rows))
