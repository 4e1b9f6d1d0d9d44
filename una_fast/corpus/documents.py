"""Reads sentences from objects in memory. A block is a `StringTable` of sentences with about BLOCK_BYTES of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from una_fast.arrays import StringTable
from una_fast.errors import InputError

Item = TypeVar("Item")

BLOCK_BYTES = 1 << 20
BATCH_ROWS = 1 << 13  # rows per batch: about BLOCK_BYTES of ordinary sentences
MAX_SENTENCE_BYTES = 1 << 20  # a long novel; a longer sentence means a damaged or hostile file, or no line ends
TEXT = (pa.string(), pa.large_string(), pa.string_view())


@dataclass(frozen=True)
class Reading:
    """Options for reading a corpus, as `una_fast.build_index` documents them."""

    column: str = "text"
    quoting: bool | None = None
    max_sentence_bytes: int | None = MAX_SENTENCE_BYTES

    @property
    def max_row_bytes(self) -> int | None:
        """The longest accepted row of a table, with all its columns; 0 or None for any length."""
        return self.max_sentence_bytes and 8 * self.max_sentence_bytes  # for other columns, and escapes as \u00e9


def encode_row(row: Any, column: str, where: str) -> bytes:
    """Encode a row's text in UTF-8. row: a str or a mapping with the key `column`. where: a name for error messages."""
    if not isinstance(row, Mapping):
        return encode_sentence(row, where)
    if column not in row:
        raise missing_column(where, column, list(row))
    if row[column] is None:
        raise InputError(f"{where}: the value of {column!r} is null; drop the row or make it an empty text")
    return encode_sentence(row[column], f"{where}: the value of {column!r}")


def encode_sentence(sentence: Any, name: str) -> bytes:
    """Encode a sentence in UTF-8. name: the sentence's name in messages."""
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
    """Yield the items in lists of at least `least` bytes each. The last list may be smaller."""
    group: list[Item] = []
    size = 0
    for item in items:
        group.append(item)
        size += n_bytes(item)
        if size >= least:
            yield group
            group, size = [], 0
    if group:
        yield group


def blocks_of(documents: Iterable[bytes]) -> Iterator[StringTable]:
    """Collect sentences, encoded in UTF-8, into blocks of about BLOCK_BYTES."""
    return map(StringTable.from_bytes, _groups(documents, lambda document: len(document) + 1, BLOCK_BYTES))


def joined(blocks: Iterable[StringTable], n_bytes: int) -> Iterator[StringTable]:
    """Join blocks into larger ones of at least `n_bytes` bytes. The last one may be smaller."""
    for first, *others in _groups(blocks, lambda block: len(block.utf8), n_bytes):
        yield first.followed_by(*others)


def arrow_blocks(arrays: Iterable[pa.Array], where: str) -> Iterator[StringTable]:
    """Convert each Arrow array of text to a block, without copying the text. where: the arrays' name in messages."""
    row = 0
    for values in arrays:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if values.null_count:
            null = row + values.is_null().index(True).as_py()
            raise InputError(f"{where}: row {null} (from 0) is null; drop it or make it an empty text")
        if len(values):  # an empty array may have another type, and no buffer of offsets
            if values.type not in TEXT:
                raise InputError(f"{where} contains {values.type}, not text")
            try:
                values.validate(full=True)
            except pa.ArrowInvalid as error:
                raise InputError(f"{where}, at or after row {row:,} (from 0): {error}") from error
            yield StringTable.from_arrow(values.cast(pa.large_string()))
        row += len(values)


def object_blocks(corpus: Any, reading: Reading) -> tuple[str, Iterator[StringTable]] | None:
    """Read a Hugging Face dataset, an Arrow table, a frame or series of pandas or polars, or an iterable.

    Returns the corpus's name for messages, and its sentences in blocks. Returns None for any other type.
    """
    column, kind = reading.column, type(corpus).__name__
    is_frame = hasattr(corpus, "iloc") or hasattr(corpus, "to_arrow")  # a frame or series of pandas, or of polars
    if hasattr(corpus, "column_names") and hasattr(corpus, "iter"):  # a Dataset or IterableDataset of Hugging Face
        tables = corpus.with_format("arrow").iter(batch_size=BATCH_ROWS)
        arrays = (array for table in tables for array in _column(table, "dataset", table.column_names, column).chunks)
        return "dataset", arrow_blocks(arrays, f"the dataset, column {column!r}")
    if isinstance(corpus, pa.Table):
        corpus = _column(corpus, kind := "Arrow table", corpus.column_names, column)
    elif is_frame and hasattr(corpus, "columns"):
        corpus = _column(corpus, kind, list(corpus.columns), column)
        kind = f"DataFrame's column {column!r}"
    elif not (is_frame or isinstance(corpus, (pa.Array, pa.ChunkedArray))):
        if not isinstance(corpus, Iterable) or isinstance(corpus, (bytes, bytearray)):
            return None
        rows = (encode_row(row, column, f"item {i} of the corpus (from 0)") for i, row in enumerate(corpus))
        return "iterable", blocks_of(rows)
    return kind, arrow_blocks(_slices(kind, corpus), f"the {kind}")


def _column(table: Any, kind: str, names: list[Any], column: str) -> Any:
    if column not in names:
        raise missing_column(f"the {kind}", column, names)
    if names.count(column) > 1:
        raise InputError(f"the {kind} has {names.count(column)} columns {column!r}: rename all but one")
    return table[column]


def _slices(name: str, values: Any) -> Iterator[pa.Array]:
    """Convert a column to Arrow arrays of at most BATCH_ROWS rows. name: the column's name in messages."""
    for row in range(0, len(values), BATCH_ROWS):
        part = getattr(values, "iloc", values)[row : row + BATCH_ROWS]
        try:
            if not isinstance(part, (pa.Array, pa.ChunkedArray)):
                part = part.to_arrow() if hasattr(part, "to_arrow") else pa.array(part, from_pandas=True)
        except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
            raise InputError(
                f"the {name}, at or after row {row:,} (from 0): not all text ({error}): convert it, e.g. with "
                "astype(str)"
            ) from error
        yield from part.chunks if isinstance(part, pa.ChunkedArray) else [part]


def missing_column(where: str, column: str, names: Sequence[Any], argument: str = "`column` (--column)") -> InputError:
    """Make the error for a missing column. names: the existing ones; argument: the argument that names a column."""
    existing = ", ".join(map(repr, names)) or "no column at all"
    return InputError(f"{where}: no column {column!r}, only {existing}; name one with {argument}")


def too_long(where: str, limit: int) -> InputError:
    """Make the error for a line or sentence of more than `limit` bytes."""
    return InputError(
        f"{where} is longer than {limit:,} bytes: split it into sentences or, if this length is intended, raise the "
        "limit with max_sentence_bytes (in a command --max-sentence-bytes)"
    )
