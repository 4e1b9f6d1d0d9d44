"""Reads the sentences of files. Each format has a reader, which yields them in blocks (see documents.py).

Remote files (s3, gs, hdfs, http, ...) are read through fsspec, which finds credentials in the environment.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from una_fast.arrays import StringTable
from una_fast.corpus.documents import (
    BATCH_ROWS,
    BLOCK_BYTES,
    Reading,
    arrow_blocks,
    blocks_of,
    encode_row,
    missing_column,
    too_long,
)
from una_fast.errors import InputError, as_input_errors, counted, failed, warn_user
from una_fast.imports import naming_extras


@dataclass(frozen=True)
class RemoteFile:
    """A remote file with the methods of `pathlib.Path` that reading a corpus needs."""

    system: Any  # a file system of fsspec
    path: str

    def __str__(self) -> str:
        return str(self.system.unstrip_protocol(self.path))

    @property
    def name(self) -> str:
        """The file name, without the query of an address."""
        return PurePosixPath(self.path.partition("?")[0]).name

    def identity(self) -> list[str | int]:
        """Return the file's address, its size in bytes, and a hash of the server's metadata."""
        return [str(self), self.system.size(self.path) or 0, self.system.ukey(self.path)]

    def open(self, mode: str = "rb") -> IO[bytes]:
        """Open the file for reading bytes. The result is seekable if the server supports it."""
        file: IO[bytes] = self.system.open(self.path, mode)
        return file


File = Path | RemoteFile
CONVERT = "convert the file, for example with iconv -f latin1 -t utf-8 (or -f utf-16)"
NO_QUOTING = "if its quotation marks are ordinary characters, give quoting=False (in a command --no-quoting)"
MOST_CSV_BYTES = 2**31 - 1  # per row, because Arrow's block sizes are int32
REMOTE_GLOB = re.compile(r"[*\[]")  # without ?, which starts the query of an address
COMPRESSIONS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": lambda file: pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd"),
}


def remote_files(address: str) -> list[RemoteFile]:
    """List the file at an address, the files in a folder, or the matches of a glob, sorted. Omits hidden files."""
    with naming_extras("remote"):
        import fsspec
    with as_input_errors(address, "opened"):
        system, path = fsspec.core.url_to_fs(address)
    path = path.rstrip("/")
    with as_input_errors(address, "read"):
        if address.lower().startswith(("http:", "https:")):  # web servers do not list folders
            paths = [path]
        elif REMOTE_GLOB.search(path):
            paths = [name for name, info in system.glob(path, detail=True).items() if info["type"] == "file"]
        else:
            paths = system.find(path) if system.isdir(path) else [path] * system.exists(path)
    root = REMOTE_GLOB.split(path)[0].rpartition("/")[0]
    return [RemoteFile(system, name) for name in sorted(paths) if "/." not in name[len(root) :]]  # no hidden files


@contextmanager
def opened(path: File) -> Iterator[io.BufferedReader]:
    """Open a file for reading bytes, decompressed according to its extension."""
    ending = Path(path.name).suffix.lower()
    try:
        with path.open("rb") as raw:
            file: Any = COMPRESSIONS[ending](raw) if ending in COMPRESSIONS else raw
            with io.BufferedReader(file) as buffered:
                yield buffered
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if ending in COMPRESSIONS and getattr(error, "errno", None) is None:
            raise InputError(f"{path}: the compressed data is damaged or cut short ({error})") from error
        raise failed(path, "read", error) from error


def whole_lines(path: File, max_line_bytes: int | None) -> Iterator[tuple[int, bytes]]:
    """Divide a file into parts that end at line ends. Yield the number of each part's first line, and the part.

    A part has about BLOCK_BYTES. A line much longer than `max_line_bytes` is not read to its end: InputError is raised.
    """
    number = 1
    with opened(path) as file:
        while lines := file.read(BLOCK_BYTES):
            rest = file.readline(max_line_bytes + 1 if max_line_bytes else -1)
            n_ends = lines.count(b"\n")
            if max_line_bytes and len(rest) > max_line_bytes:
                raise too_long(f"{path}, line {number + n_ends:,}", max_line_bytes)
            yield number, lines + rest
            number += n_ends + rest.endswith(b"\n")


def decoded(path: File, number: int, text: bytes) -> str:
    """Decode UTF-8 text that starts in line `number` of a file."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        number += text.count(b"\n", 0, error.start)
        raise InputError(f"{path}, line {number:,}: not UTF-8; {CONVERT}") from error


def text_lines(path: File, reading: Reading) -> Iterator[StringTable]:
    """Read a .txt with one sentence per line. Blank lines are sentences too, so line n of the file is row n - 1."""
    for number, lines in whole_lines(path, reading.max_sentence_bytes):
        decoded(path, number, lines)
        yield split_lines(lines if number > 1 else lines.removeprefix(codecs.BOM_UTF8))


def split_lines(lines: bytes) -> StringTable:
    r"""Split text into lines. A line ends with \n, \r\n, or the end of the text."""
    if not lines.endswith(b"\n"):
        lines += b"\n"
    if b"\r" in lines:
        lines = lines.replace(b"\r\n", b"\n")
    ends = np.flatnonzero(np.frombuffer(lines, dtype=np.uint8) == ord("\n"))
    text = np.frombuffer(lines.replace(b"\n", b""), dtype=np.uint8)
    return StringTable(text, np.append(0, ends - np.arange(len(ends))))


def json_rows(path: File, reading: Reading) -> Iterator[StringTable]:
    """Read a .json or .jsonl with one JSON value per line, or with one array of values, which must fit in memory.

    A value is a string, or an object with the key `reading.column`. Blank lines are skipped.
    """
    with opened(path) as file:
        if file.peek().removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"["):
            rows = _json_value(path, 1, file.read(), "an array of JSON values")
            yield from blocks_of(
                encode_row(row, reading.column, f"{path}, item {i:,} (from 0)") for i, row in enumerate(rows)
            )
            return
    for number, lines in whole_lines(path, reading.max_row_bytes):
        # Python parses line by line what Arrow cannot read, and names the line of an error
        yield from _plain_objects(path, reading, lines) or blocks_of(_json_lines(path, reading, number, lines))


def _plain_objects(path: File, reading: Reading, lines: bytes) -> list[StringTable]:
    """Read JSON lines with Arrow. Return [] unless each line is an object with a str under the key `reading.column`."""
    column = pa.schema([(reading.column, pa.string())])
    parse = pa.json.ParseOptions(explicit_schema=column, unexpected_field_behavior="ignore")
    read = pa.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    try:
        values = pa.json.read_json(io.BytesIO(lines), read, parse).column(0)
        n_lines = lines.count(b"\n") + (not lines.endswith(b"\n"))
        return [*arrow_blocks(values.chunks, str(path))] if len(values) == n_lines else []
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, InputError):
        return []


def _json_lines(path: File, reading: Reading, number: int, lines: bytes) -> Iterator[bytes]:
    for at, line in enumerate(lines.split(b"\n"), start=number):
        if line.strip():
            yield encode_row(_json_value(path, at, line, "one JSON value"), reading.column, f"{path}, line {at:,}")


def _json_value(path: File, number: int, text: bytes, what: str) -> Any:
    """Parse a JSON value that starts in line `number` of a file. what: the expected value, for messages."""
    value = decoded(path, number, text).removeprefix("\ufeff")
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        number += getattr(error, "lineno", 1) - 1
        raise InputError(
            f"{path}, line {number:,}: not {what} ({error}); give a value per line, or one array"
        ) from error


def has_quotes(name: str, reading: Reading) -> bool:
    """Return whether cells of a .csv or .tsv may be in quotation marks.

    By default, cells of a .tsv may not: most programs write quotation marks into a .tsv as ordinary characters.
    """
    return not _has_tabs(name) if reading.quoting is None else reading.quoting


def _has_tabs(name: str) -> bool:
    return ".tsv" in Path(name.lower()).suffixes[-2:]


def csv_rows(path: File, reading: Reading) -> Iterator[StringTable]:
    """Read the column `reading.column` of a .csv or .tsv with a header. Warns if quoted cells contain line ends."""
    column, n_documents, n_line_ends = reading.column, 0, 0
    try:
        with _csv_batches(path, reading, [column]) as batches:
            for block in arrow_blocks((batch.column(0) for batch in batches), f"{path}, column {column!r}"):
                n_documents += len(block)
                n_line_ends += int(np.count_nonzero(block.utf8 == ord("\n")))
                yield block
    except KeyError:
        with _csv_batches(path, reading, None) as batches:
            raise missing_column(str(path), column, batches.schema.names) from None
    if n_line_ends:
        line_ends, sentences = counted(n_line_ends, "line end"), counted(n_documents, "sentence")
        warn_user(f"{path}: quoted cells contain {line_ends} ({sentences} read); {NO_QUOTING}")


@contextmanager
def _csv_batches(path: File, reading: Reading, columns: list[str] | None) -> Iterator[pa.csv.CSVStreamingReader]:
    """Open a .csv or .tsv as batches of rows with these columns, or with all if `columns` is None."""
    quotes = has_quotes(path.name, reading)
    convert = pa.csv.ConvertOptions(
        column_types={reading.column: pa.string()}, include_columns=columns, strings_can_be_null=False
    )
    parse = pa.csv.ParseOptions(
        delimiter="\t" if _has_tabs(path.name) else ",", quote_char='"' if quotes else False, newlines_in_values=quotes
    )
    longest = min(reading.max_row_bytes or MOST_CSV_BYTES, MOST_CSV_BYTES)
    read = pa.csv.ReadOptions(block_size=longest)  # a block contains at least one row
    try:
        with opened(path) as file, pa.csv.open_csv(pa.PythonFile(file, mode="r"), read, parse, convert) as batches:
            yield batches
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        if "straddl" in str(error):
            raise too_long(f"{path}: a row", longest) from error
        is_encoding = isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error)
        hint = f"; {CONVERT if is_encoding else NO_QUOTING}" if is_encoding or quotes else ""
        raise InputError(f"{path} cannot be read as a table: {error}{hint}") from error


def parquet_rows(path: File, reading: Reading) -> Iterator[StringTable]:
    """Read the column `reading.column` of a .parquet."""
    column = reading.column
    try:
        with path.open("rb") as file, pa.parquet.ParquetFile(file) as table:
            if column not in table.schema_arrow.names:
                raise missing_column(str(path), column, table.schema_arrow.names)
            arrays = (batch.column(0) for batch in table.iter_batches(BATCH_ROWS, columns=[column]))
            yield from arrow_blocks(arrays, f"{path}, column {column!r}")
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path} cannot be read as parquet: {error}") from error


Reader = Callable[[File, Reading], Iterator[StringTable]]
READERS: dict[str, Reader] = {
    ".txt": text_lines,
    ".csv": csv_rows,
    ".tsv": csv_rows,
    ".jsonl": json_rows,
    ".json": json_rows,
}
EXTENSIONS = {name + ending: reader for name, reader in READERS.items() for ending in ("", *COMPRESSIONS)}
EXTENSIONS[".parquet"] = parquet_rows
KNOWN = f"{', '.join(READERS)} (each also with {', '.join(COMPRESSIONS)}) and .parquet"
