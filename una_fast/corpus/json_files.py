"""JSON: .jsonl, a value per line, and .json, an array of values or values one after another. A value is a row."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder

import pyarrow as pa
import pyarrow.json

from una_fast.corpus.source import (
    BLOCK_BYTES,
    Block,
    FileSource,
    arrow_block,
    blocks_of,
    encode_row,
    too_long,
    whole_lines,
)
from una_fast.corpus.text_file import LineReader
from una_fast.errors import InputError, counted

SPACE = re.compile(r"[ \t\n\r]*")
DECODER = JSONDecoder()


class JsonLinesFile(FileSource):
    """A JSON value per line: an object with the column among its keys, or a text. Blank lines hold no row."""

    n_lines = 0

    def _blocks(self) -> Iterator[Block]:
        """The documents: by Arrow if every line is a plain object, else line by line, to find the line of an error."""
        n_read = 0
        with LineReader(self.path, self.reading.max_row_bytes) as file:
            for lines in whole_lines(file):
                n_lines = lines.count(b"\n") + (not lines.endswith(b"\n"))
                plain = self._read_plain(lines, n_lines)
                yield from blocks_of(self._read_lines(lines, n_read)) if plain is None else plain
                n_read += n_lines
        self.n_lines = n_read

    def _read_plain(self, lines: bytes, n_lines: int) -> list[Block] | None:
        """The documents if every line is an object with a text under the column's key, else None."""
        column = pa.schema([(self.reading.column, pa.string())])
        parse = pa.json.ParseOptions(explicit_schema=column, unexpected_field_behavior="ignore")
        read = pa.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
        try:
            values = pa.json.read_json(io.BytesIO(lines), read, parse).column(0)
            blocks = [arrow_block(chunk, str(self.path), 0) for chunk in values.chunks]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, InputError):
            return None
        return blocks if len(values) == n_lines else None

    def _read_lines(self, lines: bytes, n_before: int) -> Iterator[bytes]:
        for number, line in enumerate(lines.split(b"\n"), start=n_before + 1):
            where = f"{self.path}, line {number:,}"
            try:
                rows = [json.loads(line.decode("utf-8-sig"))] if line.strip() else []
            except UnicodeDecodeError as error:
                raise InputError(f"{where}: byte {error.start} of the line is not UTF-8; convert the file") from error
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"{where}: not one JSON value ({error}); "
                    "if a value takes several lines, or they are in one array, name the file .json"
                ) from error
            yield from (encode_row(row, self.reading.column, where) for row in rows)

    def remark(self, n_documents: int) -> str:
        """The warning that lines are blank, or ""."""
        said = f"{self.path}: {counted(self.n_lines, 'line')} gave {counted(n_documents, 'document')}"
        blank = self.n_lines - n_documents
        return f"{said}: {counted(blank, 'blank line')}" if blank > 0 else ""


class JsonFile(FileSource):
    """JSON values, objects with the column among their keys or texts: in one array, or one after another."""

    def _blocks(self) -> Iterator[Block]:
        with LineReader(self.path, None) as file:
            rows = JsonValues(file, self.reading.max_row_bytes)
            yield from blocks_of(
                encode_row(row, self.reading.column, f"{self.path}, line {line:,}") for line, row in rows
            )


class JsonValues:
    """The values of a stream of JSON, with the line that each starts on; one value at a time is held in memory.

    Raises InputError for what is not JSON, and for a value of more than `max_characters`.
    """

    def __init__(self, file: LineReader, max_characters: int):
        self._file = file
        self._max_characters = max_characters
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""  # text that was read; from `_at` on it is not yet parsed
        self._at = 0
        self._line = 1

    def __iter__(self) -> Iterator[tuple[int, object]]:
        in_array, is_first = self._take("["), True
        while self._next():
            if in_array and self._take("]"):
                if self._next():
                    raise self._not_json("text follows the array")
                return
            if in_array and not is_first and not self._take(","):
                raise self._not_json("a comma or ] is missing")
            self._next()
            yield self._line, self._value()
            is_first = False
        if in_array:
            raise self._not_json("the array has no end")

    def _next(self) -> str:
        """The next character after white space, or "" at the end."""
        while True:
            self._advance(SPACE.match(self._text, self._at).end())  # type: ignore[union-attr]
            if self._at < len(self._text) or not self._read_more():
                return self._text[self._at : self._at + 1]

    def _take(self, character: str) -> bool:
        """Go behind the next character if it is this one."""
        found = self._next() == character
        self._at += found
        return found

    def _value(self) -> object:
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
            except (JSONDecodeError, RecursionError) as error:
                if isinstance(error, RecursionError) or not self._read_more():
                    raise self._not_json(str(error)) from error
                if len(self._text) - self._at > self._max_characters:
                    raise too_long(f"{self._where()}: this value", self._max_characters) from error
                continue
            self._advance(end)
            return value

    def _advance(self, to: int) -> None:
        self._line += self._text.count("\n", self._at, to)
        self._at = to

    def _read_more(self) -> bool:
        """Read as much again as is held, at least a block; False at the end of the file."""
        held = self._text[self._at :]
        piece = self._file.read(max(BLOCK_BYTES, len(held)))
        try:
            self._text, self._at = held + self._decode.decode(piece, final=not piece), 0
        except UnicodeDecodeError as error:
            raise InputError(f"{self._where()} or later: not UTF-8; convert the file") from error
        return bool(piece)

    def _where(self) -> str:
        return f"{self._file.path}, line {self._line:,}"

    def _not_json(self, why: str) -> InputError:
        return InputError(f"{self._where()}: not JSON ({why}); it must be an array of texts or objects, or objects")
