"""JSON: .jsonl, a value per line, and .json, one array of values or a value per line. A value is a row."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.json

from una_fast.corpus.source import BLOCK_BYTES, Block, FileSource, arrow_block, blocks_of, encode_row, whole_lines
from una_fast.corpus.text_file import LineReader
from una_fast.errors import InputError


class JsonLinesFile(FileSource):
    """A JSON value per line: an object with the column among its keys, or a text. Blank lines hold no row."""

    def _blocks(self) -> Iterator[Block]:
        """The documents: by Arrow if every line is a plain object, else line by line, to find the line of an error."""
        n_before = 0
        with LineReader(self.path, self.reading.max_row_bytes) as file:
            for lines in whole_lines(file):
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
            blocks = [arrow_block(chunk, str(self.path), 0) for chunk in values.chunks]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, InputError):
            return None
        return blocks if len(values) == n_lines else None

    def _documents(self, lines: bytes, n_before: int) -> Iterator[bytes]:
        for number, line in enumerate(lines.split(b"\n"), start=n_before + 1):
            if line.strip():
                where = f"{self.path}, line {number:,}"
                yield encode_row(self._value(line, where), self.reading.column, where)

    def _value(self, line: bytes, where: str) -> object:
        try:
            return json.loads(line.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise InputError(f"{where}: byte {error.start} of the line is not UTF-8; convert the file") from error
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{where}: not one JSON value ({error}); give a value per line, or one array in a file named .json"
            ) from error


class JsonFile(JsonLinesFile):
    """One array of JSON values, which is held in memory as a whole, or a value per line."""

    def _blocks(self) -> Iterator[Block]:
        with LineReader(self.path, None) as file:
            text = file.read(BLOCK_BYTES)
            if not text.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
                yield from super()._blocks()
                return
            text += b"".join(iter(lambda: file.read(BLOCK_BYTES), b""))
        try:
            rows = json.loads(text.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            line = text.count(b"\n", 0, error.start) + 1
            raise InputError(f"{self.path}, line {line:,}: not UTF-8; convert the file") from error
        except (ValueError, RecursionError) as error:
            line = getattr(error, "lineno", 1)
            raise InputError(f"{self.path}, line {line:,}: not an array of JSON values ({error})") from error
        column = self.reading.column
        yield from blocks_of(encode_row(row, column, f"{self.path}, item {i:,} (from 0)") for i, row in enumerate(rows))
