"""Columns of text: of .csv, .tsv and .parquet files, of data frames, Arrow tables and datasets; and iterables of rows.

Arrow reads them in batches of rows, and only the column that holds the text.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from una_fast.arrays import row_bounds
from una_fast.corpus.reading import Reading
from una_fast.corpus.source import (
    BATCH_ROWS,
    Block,
    FileSource,
    Source,
    TextSource,
    arrow_block,
    blocks_of,
    encode_row,
    missing_column,
)
from una_fast.corpus.text_file import LineReader
from una_fast.errors import InputError, counted

NO_QUOTING = "if its quotation marks are ordinary characters, give quoting=False (in a command --no-quoting)"


class CsvFile(FileSource):
    """A .csv or .tsv with a header.

    In a .csv cells may be in quotation marks. In a .tsv a quotation mark is an ordinary character, as most programs
    that write .tsv mean it. `Reading.quoting` overrides both.
    """

    _n_lines = 0

    @property
    def _has_tabs(self) -> bool:
        return ".tsv" in Path(self.name.lower()).suffixes[-2:]

    @property
    def _has_quotes(self) -> bool:
        return not self._has_tabs if self.reading.quoting is None else self.reading.quoting

    def _key(self) -> str:
        return self.reading.column + ("" if self._has_quotes else " without quotation marks")

    def _blocks(self) -> Iterator[Block]:
        try:
            yield from self._column(self.reading.column)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            hint = f"; {NO_QUOTING}" if self._has_quotes else ""
            raise InputError(f"{self.path} cannot be read as a table: {error}{hint}") from error

    def _column(self, column: str) -> Iterator[Block]:
        try:
            with LineReader(self.path, self.reading.max_row_bytes) as file, self._reader(file, [column]) as batches:
                yield from _blocks_of_arrays((batch.column(0) for batch in batches), f"{self.path}, column {column!r}")
                self._n_lines = file.n_lines
        except KeyError:
            with LineReader(self.path, self.reading.max_row_bytes) as file, self._reader(file, None) as batches:
                raise missing_column(str(self.path), column, batches.schema.names) from None

    def _reader(self, file: LineReader, columns: list[str] | None) -> pa.csv.CSVStreamingReader:
        return pa.csv.open_csv(
            pa.PythonFile(file, mode="r"),
            read_options=pa.csv.ReadOptions(block_size=self.reading.max_row_bytes),  # a row must fit
            parse_options=pa.csv.ParseOptions(
                delimiter="\t" if self._has_tabs else ",",
                quote_char='"' if self._has_quotes else False,
                newlines_in_values=self._has_quotes,
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types={self.reading.column: pa.string()},
                include_columns=columns,
                strings_can_be_null=False,
            ),
        )

    def remark(self, n_documents: int) -> str:
        """The warning that the lines under the header are not as many as the documents, or ""."""
        n_lines = self._n_lines - 1
        missing = n_lines - n_documents
        reason = f"{counted(missing, 'line')} blank or inside quotation marks; {NO_QUOTING}"
        if missing < 0:
            reason = "a carriage return ends a row too"
        elif not self._has_quotes:
            reason = counted(missing, "blank line")
        said = f"{self.path}: {counted(n_lines, 'line')} under the header gave {counted(n_documents, 'document')}"
        return f"{said}: {reason}" if missing else ""


class ParquetFile(FileSource):
    """A .parquet. A part is a range of row groups."""

    def split(self, n_bytes: int) -> list[FileSource] | None:
        """Parts of neighbouring row groups with about `n_bytes` of text; None if one row group has over twice that."""
        with self._opened() as file:
            groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
            sizes = [
                sum(c.total_uncompressed_size for c in columns if c.path_in_schema == self.reading.column)
                for columns in ([group.column(i) for i in range(group.num_columns)] for group in groups)
            ]
        if not sizes or max(sizes) > 2 * n_bytes:
            return None
        ends = row_bounds(sizes)
        cuts = {0, len(sizes), *np.searchsorted(ends, np.arange(n_bytes, ends[-1], n_bytes)).tolist()}
        return [ParquetFile(self.path, self.reading, part) for part in itertools.pairwise(sorted(cuts))]

    def _blocks(self) -> Iterator[Block]:
        column = self.reading.column
        with self._opened() as file:
            if column not in file.schema_arrow.names:
                raise missing_column(str(self.path), column, file.schema_arrow.names)
            first, stop = self.part or (0, file.num_row_groups)
            n_before = sum(file.metadata.row_group(i).num_rows for i in range(first))
            batches = file.iter_batches(BATCH_ROWS, row_groups=range(first, stop), columns=[column])
            arrays = (batch.column(0) for batch in batches)
            yield from _blocks_of_arrays(arrays, f"{self.path}, column {column!r}", n_before)

    @contextmanager
    def _opened(self) -> Iterator[pa.parquet.ParquetFile]:
        try:
            with pa.parquet.ParquetFile(self.path if isinstance(self.path, Path) else self.path.open("rb")) as file:
                yield file
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"{self.path} cannot be read as parquet: {error}") from error


def open_table(table: Any, reading: Reading) -> Source | None:
    """The source of a dataset, an Arrow table, or a frame or series of pandas or polars; None for anything else."""
    column = reading.column
    if hasattr(table, "column_names") and hasattr(table, "iter"):  # a Dataset or IterableDataset of Hugging Face
        return TextSource("dataset", reading, _dataset_blocks(table, column))
    if isinstance(table, pa.Table):
        name, values = "Arrow table", _column(table, "Arrow table", table.column_names, column)
    elif _is_a(table, "DataFrame"):
        name, values = f"DataFrame's column {column!r}", _column(table, "DataFrame", list(table.columns), column)
    elif isinstance(table, (pa.Array, pa.ChunkedArray)) or _is_a(table, "Series"):
        name, values = type(table).__name__, table
    else:
        return None
    return TextSource(name, reading, _blocks_of_arrays(_slices(name, values), f"the {name}"))


def open_iterable(rows: Iterable[Any], reading: Reading) -> Source:
    """The source of an iterable of str, or of mappings with the column among their keys."""
    documents = (encode_row(row, reading.column, f"item {i} of the corpus (from 0)") for i, row in enumerate(rows))
    return TextSource("iterable", reading, blocks_of(documents))


def _is_a(value: Any, kind: str) -> bool:
    """Whether a value is a DataFrame or Series of pandas or polars, which are imported if it is."""
    libraries = filter(None, map(sys.modules.get, ("pandas", "polars")))
    return any(isinstance(value, getattr(library, kind)) for library in libraries)


def _column(table: Any, kind: str, names: list[Any], column: str) -> Any:
    if column not in names:
        raise missing_column(f"the {kind}", column, names)
    if names.count(column) > 1:
        raise InputError(f"the {kind} has {names.count(column)} columns {column!r}: rename all but one")
    return table[column]


def _slices(name: str, values: Any) -> Iterator[pa.Array]:
    for row in range(0, len(values), BATCH_ROWS):
        part = getattr(values, "iloc", values)[row : row + BATCH_ROWS]
        try:
            if not isinstance(part, (pa.Array, pa.ChunkedArray)):
                part = part.to_arrow() if hasattr(part, "to_arrow") else pa.array(part, from_pandas=True)
        except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
            raise InputError(f"the {name}, rows from {row:,} (from 0): not all text ({error})") from error
        yield from part.chunks if isinstance(part, pa.ChunkedArray) else [part]


def _dataset_blocks(dataset: Any, column: str) -> Iterator[Block]:
    def arrays() -> Iterator[pa.Array]:
        for table in dataset.with_format("arrow").iter(batch_size=BATCH_ROWS):
            yield from _column(table, "dataset", table.column_names, column).chunks

    return _blocks_of_arrays(arrays(), f"the dataset, column {column!r}")


def _blocks_of_arrays(arrays: Iterable[pa.Array], where: str, row: int = 0) -> Iterator[Block]:
    """A block for each Arrow array of text. row: number of the first one."""
    for array in arrays:
        yield arrow_block(array, where, row)
        row += len(array)
