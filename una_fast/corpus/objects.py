"""Python objects as sources: data frames, Arrow tables, Hugging Face datasets, iterables of texts or of rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from una_fast.corpus.reading import Reading
from una_fast.corpus.source import (
    BATCH_ROWS,
    Block,
    Source,
    TextSource,
    arrow_block,
    blocks_of,
    encode_row,
    missing_column,
)
from una_fast.errors import InputError

# the values from `start` to `stop` of a Series of each library
TO_ARROW: dict[str, Callable[[Any, int, int], Any]] = {
    "pandas": lambda series, start, stop: pa.array(series.iloc[start:stop], from_pandas=True),
    "polars": lambda series, start, stop: series.slice(start, stop - start).to_arrow(),
}


class DatasetSource(TextSource):
    """A Hugging Face Dataset or IterableDataset."""

    def __init__(self, dataset: Any, reading: Reading):
        super().__init__("dataset", reading)
        self.dataset = dataset

    def _blocks(self) -> Iterator[Block]:
        column, row = self.reading.column, 0
        for table in self.dataset.with_format("arrow").iter(batch_size=BATCH_ROWS):
            if column not in table.column_names:
                raise missing_column("the dataset", column, table.column_names)
            for chunk in table.column(column).chunks:
                yield arrow_block(chunk, f"the dataset, column {column!r}", row)
                row += len(chunk)


class ColumnSource(TextSource):
    """A column in memory, of `n_rows` values; `values(start, stop)` gives a slice of them as Arrow arrays."""

    def __init__(self, name: str, n_rows: int, values: Callable[[int, int], Any], reading: Reading):
        super().__init__(name, reading)
        self.n_rows = n_rows
        self.values = values

    def _blocks(self) -> Iterator[Block]:
        for start in range(0, self.n_rows, BATCH_ROWS):
            row = start
            try:
                values = self.values(start, min(start + BATCH_ROWS, self.n_rows))
            except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
                raise InputError(f"the {self.name}, rows from {start:,} (from 0): not all text ({error})") from error
            for chunk in values.chunks if isinstance(values, pa.ChunkedArray) else [values]:
                yield arrow_block(chunk, f"the {self.name}", row)
                row += len(chunk)


class IterableSource(TextSource):
    """An iterable of str, or of mappings with the column among their keys."""

    def __init__(self, rows: Iterable[Any], reading: Reading):
        super().__init__("iterable", reading)
        self.rows = rows

    def _blocks(self) -> Iterator[Block]:
        column = self.reading.column
        return blocks_of(
            encode_row(row, column, f"item {position} of the corpus (from 0)") for position, row in enumerate(self.rows)
        )


def open_table(table: Any, reading: Reading) -> Source | None:
    """The source of a dataset, an Arrow table, or a frame or series of pandas or polars; None for anything else."""
    if hasattr(table, "column_names") and hasattr(table, "iter"):
        return DatasetSource(table, reading)
    if isinstance(table, pa.Table):
        _check_column("Arrow table", table.column_names, reading.column)
        return _arrow_column("Arrow table", table.column(reading.column), reading)
    if isinstance(table, (pa.Array, pa.ChunkedArray)):
        return _arrow_column("Arrow array", table, reading)
    for library, to_arrow in TO_ARROW.items():
        module = sys.modules.get(library)  # not imported here: an object of it exists only if it is imported
        if module and isinstance(table, module.DataFrame):
            _check_column("DataFrame", list(table.columns), reading.column)
            name, series = f"DataFrame's column {reading.column!r}", table[reading.column]
            return ColumnSource(name, len(series), partial(to_arrow, series), reading)
        if module and isinstance(table, module.Series):
            return ColumnSource("Series", len(table), partial(to_arrow, table), reading)
    return None


def _arrow_column(name: str, values: Any, reading: Reading) -> Source:
    return ColumnSource(name, len(values), lambda start, stop: values.slice(start, stop - start), reading)


def _check_column(kind: str, names: list[Any], column: str) -> None:
    if column not in names:
        raise missing_column(f"the {kind}", column, names)
    if names.count(column) > 1:
        raise InputError(f"the {kind} has {names.count(column)} columns {column!r}: rename all but one")
