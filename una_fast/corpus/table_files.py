"""Files of rows, of which one column holds the text: .csv, .tsv and .parquet. Arrow reads them in batches of rows."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import xxhash

from una_fast.corpus.columns import BATCH_ROWS, arrow_block, missing_column
from una_fast.corpus.line_reader import LineReader
from una_fast.corpus.source import Block, FileSource
from una_fast.errors import InputError, counted

NO_QUOTING = "if its quotation marks are ordinary characters, give quoting=False (in a command --no-quoting)"


class TableFile(FileSource):
    """A file of rows."""

    def digest(self) -> str:
        """xxh3_128 of the raw bytes and the column's name: another column is another corpus."""
        return xxhash.xxh3_128_hexdigest(f"{super().digest()} {self._key()}".encode())

    def _key(self) -> str:
        """What besides the bytes says which documents they hold."""
        return self.reading.column


class CsvFile(TableFile):
    """A .csv or .tsv with a header.

    In a .csv cells may be in quotation marks. In a .tsv a quotation mark is an ordinary character, as most programs
    that write .tsv mean it. `Reading.quoting` decides otherwise.
    """

    n_lines = 0

    @property
    def _tabs(self) -> bool:
        return ".tsv" in self.path.suffixes[-2:]

    @property
    def _quoting(self) -> bool:
        return not self._tabs if self.reading.quoting is None else self.reading.quoting

    def _key(self) -> str:
        return self.reading.column + ("" if self._quoting else " without quotation marks")

    def _blocks(self) -> Iterator[Block]:
        """The values of the column."""
        column, row = self.reading.column, 0
        try:
            with LineReader(self.path, self.reading.max_row_bytes) as file:
                with self._reader(file) as reader:
                    for batch in reader:
                        yield arrow_block(batch.column(0), f"{self.path}, column {column!r}", row)
                        row += batch.num_rows
                self.n_lines = file.n_lines
        except KeyError:
            with (
                LineReader(self.path, self.reading.max_row_bytes) as file,
                self._reader(file, every_column=True) as reader,
            ):
                raise missing_column(str(self.path), column, reader.schema.names) from None
        except pa.ArrowInvalid as error:
            hint = f"; {NO_QUOTING}" if self._quoting else ""
            raise InputError(f"{self.path} cannot be read as a table: {error}{hint}") from error

    def _reader(self, file: LineReader, every_column: bool = False) -> pa.csv.CSVStreamingReader:
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
                include_columns=None if every_column else [self.reading.column],
                strings_can_be_null=False,
            ),
        )

    def remark(self, n_documents: int) -> str:
        """Lines under the header that gave no document of their own, or documents that had no line of their own."""
        lines = self.n_lines - 1
        if lines == n_documents:
            return ""
        said = f"{self.path}: {counted(lines, 'line')} under the header gave {counted(n_documents, 'document')}"
        if lines < n_documents:
            return f"{said}: a carriage return ends a row too"
        if not self._quoting:
            return f"{said}: {counted(lines - n_documents, 'blank line')}"
        return f"{said}: {counted(lines - n_documents, 'line')} blank or inside quotation marks; {NO_QUOTING}"


class ParquetFile(TableFile):
    """A .parquet; only the column is read."""

    def _blocks(self) -> Iterator[Block]:
        """The values of the column."""
        column, row = self.reading.column, 0
        try:
            with pa.parquet.ParquetFile(self.path) as file:
                if column not in file.schema_arrow.names:
                    raise missing_column(str(self.path), column, file.schema_arrow.names)
                for batch in file.iter_batches(BATCH_ROWS, columns=[column]):
                    yield arrow_block(batch.column(0), f"{self.path}, column {column!r}", row)
                    row += batch.num_rows
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"{self.path} cannot be read as parquet: {error}") from error
