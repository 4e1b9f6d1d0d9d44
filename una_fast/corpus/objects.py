"""Python objects as sources: data frames, Arrow tables, Hugging Face datasets, iterables of texts or of rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
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


def _arrow_slice(values: Any, start: int, stop: int) -> Any:
    return values.slice(start, stop - start)


# the values from `start` to `stop` of a Series of each library
AS_ARROW: dict[str, Callable[[Any, int, int], Any]] = {
    "pandas": lambda series, start, stop: pa.array(series.iloc[start:stop], from_pandas=True),
    "polars": lambda series, start, stop: series.slice(start, stop - start).to_arrow(),
}


def open_iterable(rows: Iterable[Any], reading: Reading) -> Source:
    """The source of an iterable of str, or of mappings with the column among their keys."""
    documents = (
        encode_row(row, reading.column, f"item {position} of the corpus (from 0)") for position, row in enumerate(rows)
    )
    return TextSource("iterable", reading, blocks_of(documents))


def open_table(table: Any, reading: Reading) -> Source | None:
    """The source of a dataset, an Arrow table, or a frame or series of pandas or polars; None for anything else."""
    if hasattr(table, "column_names") and hasattr(table, "iter"):  # a Dataset or IterableDataset of Hugging Face
        return TextSource("dataset", reading, _dataset_blocks(table, reading.column))
    if isinstance(table, pa.Table):
        _check_column("Arrow table", table.column_names, reading.column)
        return _column("Arrow table", table.column(reading.column), _arrow_slice, reading)
    if isinstance(table, (pa.Array, pa.ChunkedArray)):
        return _column("Arrow array", table, _arrow_slice, reading)
    for library, as_arrow in AS_ARROW.items():
        module = sys.modules.get(library)  # not imported here: an object of it exists only if it is imported
        if module and isinstance(table, module.DataFrame):
            _check_column("DataFrame", list(table.columns), reading.column)
            return _column(f"DataFrame's column {reading.column!r}", table[reading.column], as_arrow, reading)
        if module and isinstance(table, module.Series):
            return _column("Series", table, as_arrow, reading)
    return None


def _dataset_blocks(dataset: Any, column: str) -> Iterator[Block]:
    row = 0
    for table in dataset.with_format("arrow").iter(batch_size=BATCH_ROWS):
        if column not in table.column_names:
            raise missing_column("the dataset", column, table.column_names)
        for chunk in table.column(column).chunks:
            yield arrow_block(chunk, f"the dataset, column {column!r}", row)
            row += len(chunk)


def _column(name: str, values: Any, as_arrow: Callable[[Any, int, int], Any], reading: Reading) -> Source:
    return TextSource(name, reading, _column_blocks(name, values, as_arrow))


def _column_blocks(name: str, values: Any, as_arrow: Callable[[Any, int, int], Any]) -> Iterator[Block]:
    for start in range(0, len(values), BATCH_ROWS):
        row = start
        try:
            part = as_arrow(values, start, min(start + BATCH_ROWS, len(values)))
        except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
            raise InputError(f"the {name}, rows from {start:,} (from 0): not all text ({error})") from error
        for chunk in part.chunks if isinstance(part, pa.ChunkedArray) else [part]:
            yield arrow_block(chunk, f"the {name}", row)
            row += len(chunk)


def _check_column(kind: str, names: list[Any], column: str) -> None:
    if column not in names:
        raise missing_column(f"the {kind}", column, names)
    if names.count(column) > 1:
        raise InputError(f"the {kind} has {names.count(column)} columns {column!r}: rename all but one")
