"""A source of documents, which yields tables of strings, and how texts, rows and Arrow arrays become such tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import xxhash

from una_fast.arrays import POINTER, StringTable, row_bounds
from una_fast.corpus.remote import RemoteFile, as_input_errors
from una_fast.errors import InputError

BLOCK_BYTES = 1 << 20
BATCH_ROWS = 1 << 13  # of a table: about BLOCK_BYTES of ordinary sentences
# 1 MiB is about 180,000 English words, a long novel. The longest of a million sentences of Wikipedia has a few
# kilobytes. A longer document means that a file is damaged, hostile, or has no line ends.
MAX_DOCUMENT_BYTES = 1 << 20
ROW_FACTOR = 8  # a row may be longer than its document, because of other columns and escapes such as \u00e9


@dataclass(frozen=True)
class Reading:
    """How to read sources.

    Attributes:
        column: The column (key) of the text.
        quoting: Whether cells of .csv and .tsv may be in quotation marks; None: yes in .csv, no in .tsv.
        max_document_bytes: The longest document that is accepted, in bytes of UTF-8; None for any length.
    """

    column: str = "text"
    quoting: bool | None = None
    max_document_bytes: int | None = MAX_DOCUMENT_BYTES

    @property
    def max_row_bytes(self) -> int | None:
        """The longest row of a table in bytes, including other columns; None for any length."""
        return self.max_document_bytes and ROW_FACTOR * self.max_document_bytes


@dataclass
class Source:
    """One source of documents, whose `blocks` can be read once.

    Attributes:
        name: for messages and manifests.
        limit: the longest document that is accepted, in bytes of UTF-8; None for any length.
        documents: in order, about BLOCK_BYTES at a time.
        file: that contains the documents, if it is a file.
        key: the options that determine the rows of a file, besides its bytes; None for a file without columns.
    """

    name: str
    limit: int | None
    documents: Iterator[StringTable]
    file: Path | RemoteFile | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        self._text, self._lengths = xxhash.xxh3_128(), xxhash.xxh3_128()

    def blocks(self) -> Iterator[StringTable]:
        """Yield the documents, in order. Raises InputError for a document that is longer than the limit."""
        limit, n_documents = self.limit, 0
        for block in self.documents:
            lengths = np.diff(block.offsets)
            if limit is not None and lengths.max(initial=0) > limit:
                row = "line" if self.file and self.key is None else "row"
                raise too_long(f"{self.file or self.name}, {row} {n_documents + int(lengths.argmax()) + 1:,}", limit)
            if self.file is None:
                self._lengths.update(lengths.astype("<i8").data)
                self._text.update(block.utf8.data)
            n_documents += len(block)
            yield block

    def digest(self) -> str:
        """Return xxh3_128 of a file's bytes and key, or of the texts of `blocks` and their lengths."""
        if self.file is None:
            return xxhash.xxh3_128_hexdigest(self._text.digest() + self._lengths.digest())
        state = xxhash.xxh3_128()
        with as_input_errors(self.file, "read"), self.file.open("rb") as file:
            while piece := file.read(BLOCK_BYTES):
                state.update(piece)
        raw = state.hexdigest()
        return raw if self.key is None else xxhash.xxh3_128_hexdigest(f"{raw} {self.key}".encode())

    def identity(self) -> list[Any]:
        """Return what a change of the file changes: its size in bytes, mtime and ctime in ns.

        A user can set back mtime, but not ctime. For a file at an address it is `RemoteFile.identity`. Raises
        InputError if the file is gone.
        """
        if self.file is None:  # read only once
            return []
        with as_input_errors(self.file, "read"):
            if isinstance(self.file, RemoteFile):
                return self.file.identity()
            about = self.file.stat()
            return [about.st_size, about.st_mtime_ns, about.st_ctime_ns]


def encode_row(row: Any, column: str, where: str) -> bytes:
    """Encode the document of one row in UTF-8: a text, or the text under the key `column`."""
    if not isinstance(row, Mapping):
        return encode_sentence(row, where)
    if column not in row:
        raise missing_column(where, column, list(row))
    if row[column] is None:
        raise InputError(f"{where}: the value of {column!r} is null; drop the row or make it an empty text")
    return encode_sentence(row[column], f"{where}: the value of {column!r}")


def encode_sentence(sentence: Any, name: str) -> bytes:
    """Encode a str of the caller in UTF-8. Raises InputError if it is not a str or has a lone surrogate.

    name: how errors name it.
    """
    if not isinstance(sentence, str):
        raise InputError(f"{name} is {type(sentence).__name__}, not str")
    try:
        return sentence.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} holds a lone surrogate, {sentence[error.start]!r} at character {error.start}, which is not text: "
            "decode its bytes again, or replace it"
        ) from error


Item = TypeVar("Item")


def _groups(items: Iterable[Item], n_bytes: Callable[[Item], int], least: int) -> Iterator[list[Item]]:
    """Group the items in lists of at least `least` bytes, except the last one."""
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
    """Yield tables of about BLOCK_BYTES of documents in UTF-8."""
    return map(block_of, _groups(documents, lambda document: len(document) + 1, BLOCK_BYTES))


def block_of(documents: Sequence[bytes]) -> StringTable:
    """Make a table of documents in UTF-8."""
    return StringTable(np.frombuffer(b"".join(documents), dtype=np.uint8), row_bounds([*map(len, documents)]))


def joined(blocks: Iterable[StringTable], n_bytes: int) -> Iterator[StringTable]:
    """Yield the same documents in tables of at least `n_bytes` bytes, except the last one."""
    for first, *others in _groups(blocks, lambda block: len(block.utf8), n_bytes):
        yield first.followed_by(*others)


def arrow_blocks(arrays: Iterable[pa.Array], where: str) -> Iterator[StringTable]:
    """Yield a table for each Arrow array of text, without copying the text."""
    row = 0
    for values in arrays:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if values.null_count:
            null = row + values.is_null().index(True).as_py()
            raise InputError(f"{where}: row {null} (from 0) is null; drop it or make it an empty text")
        kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
        if len(values) and not any(is_kind(values.type) for is_kind in kinds):
            raise InputError(f"{where} holds {values.type}, not text")
        try:
            values.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InputError(f"{where}, rows from {row} (from 0): {error}") from error
        if len(values):  # an empty array may have no buffer of bounds
            values = values.cast(pa.large_string())
            _, offsets, data = values.buffers()
            bounds = np.frombuffer(offsets, dtype=POINTER)[values.offset : values.offset + len(values) + 1]
            utf8 = np.frombuffer(data or b"", dtype=np.uint8)[bounds[0] : bounds[-1]]
            yield StringTable(utf8, bounds - bounds[0])
        row += len(values)


def missing_column(where: str, column: str, names: Sequence[Any], argument: str = "`column` (--column)") -> InputError:
    """Make the error for a table or a row without the column that an argument names."""
    there = ", ".join(map(repr, names)) or "no column at all"
    return InputError(f"{where}: no column {column!r}, only {there}; name one with {argument}")


def too_long(where: str, limit: int) -> InputError:
    """Make the error for a line or document beyond the limit."""
    return InputError(
        f"{where} is longer than {limit:,} bytes: split it into sentences, "
        "or raise the limit with max_document_bytes (in a command --max-document-bytes) if it is meant"
    )
