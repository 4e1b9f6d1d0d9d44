"""Tables with one column of text: .csv, .tsv and .parquet files. Arrow reads them in batches of rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from una_fast.arrays import row_bounds
from una_fast.corpus.reading import Reading
from una_fast.corpus.remote import RemoteFile
from una_fast.corpus.source import BATCH_ROWS, Block, FileSource, arrow_block, missing_column
from una_fast.corpus.text_file import LineReader
from una_fast.errors import InputError, counted

NO_QUOTING = "if its quotation marks are ordinary characters, give quoting=False (in a command --no-quoting)"


class CsvFile(FileSource):
    """A .csv or .tsv with a header.

    In a .csv cells may be in quotation marks. In a .tsv a quotation mark is an ordinary character, as most programs
    that write .tsv mean it. `Reading.quoting` overrides both.
    """

    def __init__(self, path: Path | RemoteFile, reading: Reading):
        super().__init__(path, reading)
        self._n_lines = 0
        self._tabs = ".tsv" in Path(self.name.lower()).suffixes[-2:]
        self._quoting = not self._tabs if reading.quoting is None else reading.quoting

    def _key(self) -> str:
        return self.reading.column + ("" if self._quoting else " without quotation marks")

    def _blocks(self) -> Iterator[Block]:
        try:
            yield from self._column(self.reading.column)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            hint = f"; {NO_QUOTING}" if self._quoting else ""
            raise InputError(f"{self.path} cannot be read as a table: {error}{hint}") from error

    def _column(self, column: str) -> Iterator[Block]:
        row = 0
        try:
            with LineReader(self.path, self.reading.max_row_bytes) as file:
                with self._reader(file, [column]) as reader:
                    for batch in reader:
                        yield arrow_block(batch.column(0), f"{self.path}, column {column!r}", row)
                        row += batch.num_rows
                self._n_lines = file.n_lines
        except KeyError:
            with LineReader(self.path, self.reading.max_row_bytes) as file, self._reader(file, None) as reader:
                raise missing_column(str(self.path), column, reader.schema.names) from None

    def _reader(self, file: LineReader, columns: list[str] | None) -> pa.csv.CSVStreamingReader:
        return pa.csv.open_csv(
            pa.PythonFile(file, mode="r"),
            read_options=pa.csv.ReadOptions(block_size=self.reading.max_row_bytes),  # a row must fit
            parse_options=pa.csv.ParseOptions(
                delimiter="\t" if self._tabs else ",",
                quote_char='"' if self._quoting else False,
                newlines_in_values=self._quoting,
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types={self.reading.column: pa.string()},
                include_columns=columns,
                strings_can_be_null=False,
            ),
        )

    def remark(self, n_documents: int) -> str:
        """The warning that the lines under the header are not as many as the documents, or ""."""
        lines = self._n_lines - 1
        missing = lines - n_documents
        reason = f"{counted(missing, 'line')} blank or inside quotation marks; {NO_QUOTING}"
        if missing < 0:
            reason = "a carriage return ends a row too"
        elif not self._quoting:
            reason = counted(missing, "blank line")
        said = f"{self.path}: {counted(lines, 'line')} under the header gave {counted(n_documents, 'document')}"
        return f"{said}: {reason}" if missing else ""


class ParquetFile(FileSource):
    """A .parquet; only the column is read. A part is a range of row groups."""

    def split(self, n_bytes: int) -> list[FileSource] | None:
        """Parts of neighbouring row groups with about `n_bytes` of text; None if one row group has over twice that."""
        try:
            with pa.parquet.ParquetFile(self._opened()) as file:
                sizes = _column_sizes(file, self.reading.column)
        except (pa.ArrowInvalid, OSError) as error:
            raise self._unreadable(error) from error
        if not sizes or max(sizes) > 2 * n_bytes:
            return None
        ends = row_bounds(sizes)
        cuts = {0, len(sizes), *np.searchsorted(ends, np.arange(n_bytes, ends[-1], n_bytes)).tolist()}
        return [ParquetFile(self.path, self.reading, part) for part in itertools.pairwise(sorted(cuts))]

    def _blocks(self) -> Iterator[Block]:
        column = self.reading.column
        try:
            with pa.parquet.ParquetFile(self._opened()) as file:
                if column not in file.schema_arrow.names:
                    raise missing_column(str(self.path), column, file.schema_arrow.names)
                first, stop = self.part or (0, file.num_row_groups)
                row = sum(file.metadata.row_group(i).num_rows for i in range(first))
                for batch in file.iter_batches(BATCH_ROWS, row_groups=range(first, stop), columns=[column]):
                    yield arrow_block(batch.column(0), f"{self.path}, column {column!r}", row)
                    row += batch.num_rows
        except (pa.ArrowInvalid, OSError) as error:
            raise self._unreadable(error) from error

    def _opened(self) -> Any:
        return self.path if isinstance(self.path, Path) else self.path.open("rb")

    def _unreadable(self, error: Exception) -> InputError:
        return InputError(f"{self.path} cannot be read as parquet: {error}")


def _column_sizes(file: pa.parquet.ParquetFile, column: str) -> list[int]:
    """The uncompressed bytes of the column in each row group; of all columns if none has its name."""
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    columns = [[group.column(i) for i in range(group.num_columns)] for group in groups]
    sizes = [[c.total_uncompressed_size for c in group if c.path_in_schema == column] for group in columns]
    return [sum(size) or group.total_byte_size for size, group in zip(sizes, groups, strict=True)]
