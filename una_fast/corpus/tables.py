"""Sources with columns: .csv, .tsv, .jsonl, .parquet, Hugging Face datasets. Arrow reads them, in batches of rows."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import xxhash

from una_fast.arrays import POINTER
from una_fast.corpus.source import BLOCK_BYTES, Block, FileSource, TextSource
from una_fast.errors import InputError

TEXT_TYPES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
BATCH_ROWS = 1 << 13  # about BLOCK_BYTES of ordinary sentences


class TableFile(FileSource):
    """A file of rows: the sentences are the values of one column."""

    def __init__(self, path: Path, column: str):
        super().__init__(path)
        self.column = column

    def digest(self) -> str:
        """xxh3_128 of the raw bytes and the column's name: another column is another corpus."""
        return xxhash.xxh3_128_hexdigest(f"{super().digest()} {self.column}".encode())


class CsvFile(TableFile):
    """A .csv or .tsv with a header; quoting as pyarrow reads it."""

    def blocks(self) -> Iterator[Block]:
        """The values of the column."""
        row = 0
        try:
            with self.open() as file, self._reader(file) as reader:
                for batch in reader:
                    yield _arrow_block(batch.column(0), f"{self.path}, column {self.column!r}", row)
                    row += batch.num_rows
        except KeyError:
            with self.open() as file, self._reader(file, every_column=True) as reader:
                raise missing_column(str(self.path), self.column, reader.schema.names) from None
        except (pa.ArrowInvalid, EOFError, OSError, zlib.error) as error:
            raise InputError(f"{self.path} cannot be read as a table: {error}") from error

    def _reader(self, file: IO[bytes], every_column: bool = False) -> pa.csv.CSVStreamingReader:
        tabs = ".tsv" in self.path.suffixes[-2:]
        return pa.csv.open_csv(
            pa.PythonFile(file, mode="r"),
            read_options=pa.csv.ReadOptions(block_size=8 * BLOCK_BYTES),  # a row must fit
            parse_options=pa.csv.ParseOptions(delimiter="\t" if tabs else ",", newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types={self.column: pa.string()},
                include_columns=None if every_column else [self.column],
                strings_can_be_null=False,
            ),
        )


class JsonFile(TableFile):
    """A JSON object per line; the column is a key."""

    def blocks(self) -> Iterator[Block]:
        """The values of the key."""
        parse = pa.json.ParseOptions(
            explicit_schema=pa.schema([(self.column, pa.string())]), unexpected_field_behavior="ignore"
        )
        row = 0
        for piece in self.line_pieces():
            read = pa.json.ReadOptions(use_threads=False, block_size=len(piece) + 1)
            try:
                values = pa.json.read_json(io.BytesIO(piece), read, parse).column(0)
            except pa.ArrowInvalid as error:
                raise InputError(
                    f"{self.path}, rows from {row + 1}: not JSON with a text {self.column!r} per line ({error})"
                ) from error
            if values.null_count:
                raise self._null_value(piece, values.is_null().index(True).as_py(), row)
            for chunk in values.chunks:
                yield _arrow_block(chunk, str(self.path), row)
                row += len(chunk)

    def _null_value(self, piece: bytes, place: int, row: int) -> InputError:
        """The error for the object at this `place` of a piece that starts at `row`."""
        keys = json.loads([line for line in piece.split(b"\n") if line.strip()][place])
        where = f"{self.path}, row {row + place + 1}"
        if self.column in keys:
            return InputError(f"{where}: the value of {self.column!r} is null; drop it or make it an empty text")
        return missing_column(where, self.column, list(keys))


class ParquetFile(TableFile):
    """A .parquet; only the column is read."""

    def blocks(self) -> Iterator[Block]:
        """The values of the column."""
        row = 0
        try:
            with pa.parquet.ParquetFile(self.path) as file:
                if self.column not in file.schema_arrow.names:
                    raise missing_column(str(self.path), self.column, file.schema_arrow.names)
                for batch in file.iter_batches(BATCH_ROWS, columns=[self.column]):
                    yield _arrow_block(batch.column(0), f"{self.path}, column {self.column!r}", row)
                    row += batch.num_rows
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"{self.path} cannot be read as parquet: {error}") from error


class DatasetSource(TextSource):
    """A Hugging Face Dataset or IterableDataset."""

    def __init__(self, dataset: Any, column: str):
        super().__init__("dataset")
        self.dataset = dataset
        self.column = column

    def _blocks(self) -> Iterator[Block]:
        row = 0
        for table in self.dataset.with_format("arrow").iter(batch_size=BATCH_ROWS):
            if self.column not in table.column_names:
                raise missing_column("the dataset", self.column, table.column_names)
            for chunk in table.column(self.column).chunks:
                yield _arrow_block(chunk, f"the dataset, column {self.column!r}", row)
                row += len(chunk)


def missing_column(where: str, column: str, names: list[str]) -> InputError:
    """The error for a table without the column."""
    return InputError(f"{where}: no column {column!r}, only {', '.join(map(repr, names))}; name one with `column`")


def _arrow_block(values: pa.Array, where: str, first_row: int) -> Block:
    """The documents of an Arrow array of text, in place where its layout is that of a block."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if not any(is_kind(values.type) for is_kind in TEXT_TYPES):
        raise InputError(f"{where} holds {values.type}, not text")
    if values.null_count:
        row = first_row + values.is_null().index(True).as_py()
        raise InputError(f"{where}: row {row} (from 0) is null; drop it or make it an empty text")
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InputError(f"{where}, rows from {first_row} (from 0): {error}") from error
    values = values.cast(pa.large_string())  # widens the offsets, and leaves the text where it is
    _, offsets, data = values.buffers()
    if len(values) == 0:
        return Block(np.empty(0, dtype=np.uint8), np.empty(0, dtype=POINTER), np.empty(0, dtype=POINTER))
    bounds = np.frombuffer(offsets, dtype=POINTER)[values.offset : values.offset + len(values) + 1]
    return Block(np.frombuffer(data or b"", dtype=np.uint8), bounds[:-1], bounds[1:])
