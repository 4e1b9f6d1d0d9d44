"""Python objects as sources: data frames, Arrow tables, Hugging Face datasets, iterables of texts or of rows."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
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
        name, values = "Arrow table", _column(table, "Arrow table", table.column_names, reading.column)
    elif isinstance(table, (pa.Array, pa.ChunkedArray)):
        name, values = "Arrow array", table
    elif _is_a(table, "DataFrame"):
        name = f"DataFrame's column {reading.column!r}"
        values = _column(table, "DataFrame", list(table.columns), reading.column)
    elif _is_a(table, "Series"):
        name, values = "Series", table
    else:
        return None
    return TextSource(name, reading, _column_blocks(name, values))


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


def _dataset_blocks(dataset: Any, column: str) -> Iterator[Block]:
    row = 0
    for table in dataset.with_format("arrow").iter(batch_size=BATCH_ROWS):
        if column not in table.column_names:
            raise missing_column("the dataset", column, table.column_names)
        for chunk in table.column(column).chunks:
            yield arrow_block(chunk, f"the dataset, column {column!r}", row)
            row += len(chunk)


def _column_blocks(name: str, values: Any) -> Iterator[Block]:
    for row in range(0, len(values), BATCH_ROWS):
        part = getattr(values, "iloc", values)[row : row + BATCH_ROWS]
        try:
            if not isinstance(part, (pa.Array, pa.ChunkedArray)):
                part = part.to_arrow() if hasattr(part, "to_arrow") else pa.array(part, from_pandas=True)
        except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
            raise InputError(f"the {name}, rows from {row:,} (from 0): not all text ({error})") from error
        for chunk in part.chunks if isinstance(part, pa.ChunkedArray) else [part]:
            yield arrow_block(chunk, f"the {name}", row)
            row += len(chunk)
