"""Columns of text: of .csv, .tsv and .parquet files, of data frames, Arrow tables and datasets; and iterables of rows.

Arrow reads them in batches of rows, and only the column that holds the text.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from una_fast.arrays import StringTable
from una_fast.corpus.files import opened
from una_fast.corpus.source import (
    BATCH_ROWS,
    FileSource,
    Reading,
    Source,
    TextSource,
    arrow_blocks,
    blocks_of,
    encode_row,
    missing_column,
    too_long,
)
from una_fast.errors import InputError, InputWarning, counted

NO_QUOTING = "if its quotation marks are ordinary characters, give quoting=False (in a command --no-quoting)"


class CsvFile(FileSource):
    """A .csv or .tsv with a header.

    In a .csv cells may be in quotation marks. In a .tsv a quotation mark is an ordinary character, as most programs
    that write .tsv mean it. `Reading.quoting` overrides both.
    """

    @property
    def _has_tabs(self) -> bool:
        return ".tsv" in Path(self.name.lower()).suffixes[-2:]

    @property
    def _has_quotes(self) -> bool:
        return not self._has_tabs if self.reading.quoting is None else self.reading.quoting

    def _key(self) -> str:
        return self.reading.column + ("" if self._has_quotes else " without quotation marks")

    def _blocks(self) -> Iterator[StringTable]:
        """The documents. Warns of cells in quotation marks that hold line ends."""
        column, n_documents, n_line_ends = self.reading.column, 0, 0
        try:
            with self._opened([column]) as batches:
                for block in arrow_blocks((batch.column(0) for batch in batches), f"{self.path}, column {column!r}"):
                    n_documents += len(block)
                    n_line_ends += int(np.count_nonzero(block.utf8 == ord("\n")))
                    yield block
        except KeyError:
            with self._opened(None) as batches:
                raise missing_column(str(self.path), column, batches.schema.names) from None
        if n_line_ends:
            line_ends, documents = counted(n_line_ends, "line end"), counted(n_documents, "document")
            said = f"{self.path}: {line_ends} in quotation marks, inside of {documents}; {NO_QUOTING}"
            warnings.warn(said, InputWarning, stacklevel=2)

    @contextmanager
    def _opened(self, columns: list[str] | None) -> Iterator[pa.csv.CSVStreamingReader]:
        """Batches of rows. columns: those to read, or None for all."""
        convert = pa.csv.ConvertOptions(
            column_types={self.reading.column: pa.string()}, include_columns=columns, strings_can_be_null=False
        )
        parse = pa.csv.ParseOptions(
            delimiter="\t" if self._has_tabs else ",",
            quote_char='"' if self._has_quotes else False,
            newlines_in_values=self._has_quotes,
        )
        read = pa.csv.ReadOptions(block_size=self.reading.max_row_bytes)  # a row must fit
        try:
            with opened(self.path) as file:
                with pa.csv.open_csv(pa.PythonFile(file, mode="r"), read, parse, convert) as batches:
                    yield batches
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            if "straddl" in str(error):
                raise too_long(f"{self.path}: a row", self.reading.max_row_bytes) from error
            hint = f"; {NO_QUOTING}" if self._has_quotes else ""
            raise InputError(f"{self.path} cannot be read as a table: {error}{hint}") from error


class ParquetFile(FileSource):
    """A .parquet."""

    def _blocks(self) -> Iterator[StringTable]:
        column = self.reading.column
        try:
            with pa.parquet.ParquetFile(self.path if isinstance(self.path, Path) else self.path.open("rb")) as file:
                if column not in file.schema_arrow.names:
                    raise missing_column(str(self.path), column, file.schema_arrow.names)
                arrays = (batch.column(0) for batch in file.iter_batches(BATCH_ROWS, columns=[column]))
                yield from arrow_blocks(arrays, f"{self.path}, column {column!r}")
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"{self.path} cannot be read as parquet: {error}") from error


def open_object(corpus: Any, reading: Reading) -> Source | None:
    """The source of a dataset, an Arrow table, a frame or series of pandas or polars, or an iterable; else None."""
    column, kind = reading.column, type(corpus).__name__
    of_frames = hasattr(corpus, "iloc") or hasattr(corpus, "to_arrow")  # of pandas, or of polars
    if hasattr(corpus, "column_names") and hasattr(corpus, "iter"):  # a Dataset or IterableDataset of Hugging Face
        tables = corpus.with_format("arrow").iter(batch_size=BATCH_ROWS)
        arrays = (array for table in tables for array in _column(table, "dataset", table.column_names, column).chunks)
        return TextSource("dataset", reading, arrow_blocks(arrays, f"the dataset, column {column!r}"))
    if isinstance(corpus, pa.Table):
        corpus = _column(corpus, kind := "Arrow table", corpus.column_names, column)
    elif of_frames and hasattr(corpus, "columns"):
        corpus = _column(corpus, kind, list(corpus.columns), column)
        kind = f"DataFrame's column {column!r}"
    elif not (of_frames or isinstance(corpus, (pa.Array, pa.ChunkedArray))):
        if not isinstance(corpus, Iterable) or isinstance(corpus, (bytes, bytearray)):
            return None
        rows = (encode_row(row, column, f"item {i} of the corpus (from 0)") for i, row in enumerate(corpus))
        return TextSource("iterable", reading, blocks_of(rows))
    return TextSource(kind, reading, arrow_blocks(_slices(kind, corpus), f"the {kind}"))


def _column(table: Any, kind: str, names: list[Any], column: str) -> Any:
    if column not in names:
        raise missing_column(f"the {kind}", column, names)
    if names.count(column) > 1:
        raise InputError(f"the {kind} has {names.count(column)} columns {column!r}: rename all but one")
    return table[column]


def _slices(name: str, values: Any) -> Iterator[pa.Array]:
    """The values of a frame's column in Arrow arrays of at most BATCH_ROWS."""
    for row in range(0, len(values), BATCH_ROWS):
        part = getattr(values, "iloc", values)[row : row + BATCH_ROWS]
        try:
            if not isinstance(part, (pa.Array, pa.ChunkedArray)):
                part = part.to_arrow() if hasattr(part, "to_arrow") else pa.array(part, from_pandas=True)
        except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
            raise InputError(f"the {name}, rows from {row:,} (from 0): not all text ({error})") from error
        yield from part.chunks if isinstance(part, pa.ChunkedArray) else [part]
