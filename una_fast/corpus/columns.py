"""Values of a column -> documents: Arrow arrays of text, and rows that are JSON values or Python objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from una_fast.arrays import POINTER
from una_fast.corpus.source import Block, encode_sentence
from una_fast.errors import InputError

TEXT_TYPES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
BATCH_ROWS = 1 << 13  # about BLOCK_BYTES of ordinary sentences


def missing_column(where: str, column: str, names: Sequence[Any]) -> InputError:
    """The error for a table or a row without the column."""
    there = ", ".join(map(repr, names)) or "no column at all"
    return InputError(f"{where}: no column {column!r}, only {there}; name one with `column`")


def encode_row(row: Any, column: str, where: str) -> bytes:
    """UTF-8 of the document of one row: a text, or the text under the key `column`."""
    if not isinstance(row, Mapping):
        return encode_sentence(row, where)
    if column not in row:
        raise missing_column(where, column, list(row))
    if row[column] is None:
        raise InputError(f"{where}: the value of {column!r} is null; drop the row or make it an empty text")
    return encode_sentence(row[column], f"{where}: the value of {column!r}")


def arrow_block(values: pa.Array, where: str, first_row: int) -> Block:
    """The documents of an Arrow array of text, without a copy of the text if its type is string or large_string."""
    if values.null_count:
        row = first_row + values.is_null().index(True).as_py()
        raise InputError(f"{where}: row {row} (from 0) is null; drop it or make it an empty text")
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if len(values) == 0:
        return Block(np.empty(0, dtype=np.uint8), np.empty(0, dtype=POINTER), np.empty(0, dtype=POINTER))
    if not any(is_kind(values.type) for is_kind in TEXT_TYPES):
        raise InputError(f"{where} holds {values.type}, not text")
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InputError(f"{where}, rows from {first_row} (from 0): {error}") from error
    values = values.cast(pa.large_string())  # offsets become int64, and the text is not copied
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, dtype=POINTER)[values.offset : values.offset + len(values) + 1]
    return Block(np.frombuffer(data or b"", dtype=np.uint8), bounds[:-1], bounds[1:])
