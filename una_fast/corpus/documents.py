"""Turns texts, rows and Arrow arrays into blocks: tables of documents, about BLOCK_BYTES of text each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from una_fast.arrays import StringTable, row_bounds
from una_fast.errors import InputError

Item = TypeVar("Item")

BLOCK_BYTES = 1 << 20
BATCH_ROWS = 1 << 13  # rows per batch: about BLOCK_BYTES of ordinary sentences
# About 180,000 English words, a long novel. The longest of a million Wikipedia sentences has a few kilobytes. A longer
# document means that a file is damaged, hostile, or has no line ends.
MAX_DOCUMENT_BYTES = 1 << 20
TEXT = (pa.string(), pa.large_string(), pa.string_view())
ROW_FACTOR = 8  # a row may be longer than its document, because of other columns and escapes such as \u00e9


@dataclass(frozen=True)
class Reading:
    """How to read sources.

    Attributes:
        column: The column (key) of the text.
        quoting: Whether cells of .csv and .tsv may be in quotation marks; None: yes in .csv, no in .tsv.
        max_document_bytes: The longest accepted document, in bytes of UTF-8; 0 or None for any length.
    """

    column: str = "text"
    quoting: bool | None = None
    max_document_bytes: int | None = MAX_DOCUMENT_BYTES

    @property
    def max_row_bytes(self) -> int | None:
        """The longest row of a table in bytes, including other columns; 0 or None for any length."""
        return self.max_document_bytes and ROW_FACTOR * self.max_document_bytes


def encode_row(row: Any, column: str, where: str) -> bytes:
    """Encode the document of one row in UTF-8. The row is a text, or a mapping with the text under `column`."""
    if not isinstance(row, Mapping):
        return encode_sentence(row, where)
    if column not in row:
        raise missing_column(where, column, list(row))
    if row[column] is None:
        raise InputError(f"{where}: the value of {column!r} is null; drop the row or make it an empty text")
    return encode_sentence(row[column], f"{where}: the value of {column!r}")


def encode_sentence(sentence: Any, name: str) -> bytes:
    """Encode a sentence in UTF-8. Raises InputError if it is not a str or has a lone surrogate.

    name: how errors name it.
    """
    if not isinstance(sentence, str):
        raise InputError(f"{name} is {type(sentence).__name__}, not str")
    try:
        return sentence.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} contains a lone surrogate, {sentence[error.start]!r} at character {error.start}, which is not "
            "text: decode its bytes again, or replace it"
        ) from error


def _groups(items: Iterable[Item], n_bytes: Callable[[Item], int], least: int) -> Iterator[list[Item]]:
    """Yield lists of items with at least `least` bytes per list, except for the last one."""
    held: list[Item] = []
    size = 0
    for item in items:
        held.append(item)
        size += n_bytes(item)
        if size >= least:
            yield held
            held, size = [], 0
    if held:
        yield held


def blocks_of(documents: Iterable[bytes]) -> Iterator[StringTable]:
    """Yield tables of the documents (UTF-8), of about BLOCK_BYTES each."""
    return map(block_of, _groups(documents, lambda document: len(document) + 1, BLOCK_BYTES))


def block_of(documents: Sequence[bytes]) -> StringTable:
    """Make a table of documents in UTF-8."""
    return StringTable(np.frombuffer(b"".join(documents), dtype=np.uint8), row_bounds([*map(len, documents)]))


def joined(blocks: Iterable[StringTable], n_bytes: int) -> Iterator[StringTable]:
    """Join blocks into tables of at least `n_bytes` bytes, except for the last one."""
    for first, *others in _groups(blocks, lambda block: len(block.utf8), n_bytes):
        yield first.followed_by(*others)


def arrow_blocks(arrays: Iterable[pa.Array], where: str) -> Iterator[StringTable]:
    """Yield a table for each Arrow array of text, without copying the text. where: for errors."""
    row = 0
    for values in arrays:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if values.null_count:
            null = row + values.is_null().index(True).as_py()
            raise InputError(f"{where}: row {null} (from 0) is null; drop it or make it an empty text")
        if len(values):  # an empty array may have another type, and no buffer of bounds
            if values.type not in TEXT:
                raise InputError(f"{where} contains {values.type}, not text")
            try:
                values.validate(full=True)
            except pa.ArrowInvalid as error:
                raise InputError(f"{where}, rows from {row} (from 0): {error}") from error
            yield StringTable.from_arrow(values.cast(pa.large_string()))
        row += len(values)


def missing_column(where: str, column: str, names: Sequence[Any], argument: str = "`column` (--column)") -> InputError:
    """Make the error for a table or row that lacks the column named by `argument`."""
    there = ", ".join(map(repr, names)) or "no column at all"
    return InputError(f"{where}: no column {column!r}, only {there}; name one with {argument}")


def too_long(where: str, limit: int) -> InputError:
    """Make the error for a line or document beyond the limit."""
    return InputError(
        f"{where} is longer than {limit:,} bytes: split it into sentences, "
        "or raise the limit with max_document_bytes (in a command --max-document-bytes) if it is meant"
    )
