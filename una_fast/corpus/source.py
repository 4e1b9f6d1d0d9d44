"""Sources of documents, which yield tables of strings; and how texts, rows and Arrow arrays become such tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from una_fast.arrays import POINTER, StringTable, row_bounds
from una_fast.corpus.remote import RemoteFile
from una_fast.errors import InputError

BLOCK_BYTES = 1 << 20
BATCH_ROWS = 1 << 13  # of a table: about BLOCK_BYTES of ordinary sentences
# 1 MiB is about 180,000 English words, a long novel. The longest of the 1,000,000 sentences of wiki_large has a few
# kilobytes. A longer document means that a file is damaged, hostile, or has no line ends.
MAX_DOCUMENT_BYTES = 1 << 20
ROW_FACTOR = 8  # a raw row may be longer than its document: it has other columns, and escapes such as \u00e9


@dataclass(frozen=True)
class Reading:
    """How to read sources.

    Attributes:
        column: The column (key) of the text.
        quoting: Whether cells of .csv and .tsv may be in quotation marks; None for yes in .csv and no in .tsv.
        max_document_bytes: The longest document that is accepted, in bytes of UTF-8; None for any length.
    """

    column: str = "text"
    quoting: bool | None = None
    max_document_bytes: int | None = MAX_DOCUMENT_BYTES

    @property
    def max_row_bytes(self) -> int:
        """The longest row of a table in bytes, other columns included."""
        return ROW_FACTOR * (self.max_document_bytes or MAX_DOCUMENT_BYTES)


class Source(ABC):
    """One source of documents. `blocks` can be read once; `digest` is called after that."""

    name: str
    reading: Reading
    row = "row"  # what errors call a document

    def blocks(self) -> Iterator[StringTable]:
        """The documents, in order. Raises InputError for one that is longer than the reading's limit."""
        limit, n_documents = self.reading.max_document_bytes, 0
        for block in self._blocks():
            lengths = np.diff(block.offsets)
            if limit is not None and lengths.max(initial=0) > limit:
                number = n_documents + int(lengths.argmax()) + 1
                raise too_long(f"{getattr(self, 'path', self.name)}, {self.row} {number:,}", limit)
            n_documents += len(block)
            yield block

    @abstractmethod
    def _blocks(self) -> Iterator[StringTable]:
        """The documents, in order, about BLOCK_BYTES at a time."""

    @abstractmethod
    def digest(self) -> str:
        """xxh3_128 of a file's raw bytes (and its column, if it has columns), or of the text of any other source."""

    def identity(self) -> list[Any]:
        """What differs once the source has changed; nothing for an iterable, which is read only once."""
        return []


class FileSource(Source):
    """A file."""

    def __init__(self, path: Path | RemoteFile, reading: Reading):
        self.path = path
        self.name = path.name
        self.reading = reading

    def digest(self) -> str:
        """xxh3_128 of the raw bytes and, in a table, of the options that decide which documents it holds."""
        state = xxhash.xxh3_128()
        with naming_file(self.path), self.path.open("rb") as file:
            while piece := file.read(BLOCK_BYTES):
                state.update(piece)
        raw, key = state.hexdigest(), self._key()
        return raw if key is None else xxhash.xxh3_128_hexdigest(f"{raw} {key}".encode())

    def _key(self) -> str | None:
        """The options that decide, with the bytes of a table, which rows it holds; None for a file without columns."""
        return self.reading.column

    def identity(self) -> list[Any]:
        """What differs once the file has changed: its size in bytes and its times of change in ns.

        The time of the content's last change can be set back, the file's (ctime) cannot. Of a file at an address it is
        what `RemoteFile.identity` says. Raises InputError if the file is gone.
        """
        with naming_file(self.path):
            if isinstance(self.path, RemoteFile):
                return self.path.identity()
            about = self.path.stat()
            return [about.st_size, about.st_mtime_ns, about.st_ctime_ns]


class TextSource(Source):
    """A source whose digest is made of its text: of all documents, one after another, and of their lengths in bytes."""

    def __init__(self, name: str, reading: Reading, documents: Iterator[StringTable]):
        self.name = name
        self.reading = reading
        self._documents = documents
        self._text, self._lengths = xxhash.xxh3_128(), xxhash.xxh3_128()

    def _blocks(self) -> Iterator[StringTable]:
        for block in self._documents:
            self._lengths.update(np.diff(block.offsets).astype("<i8").data)
            self._text.update(block.utf8.data)
            yield block

    def digest(self) -> str:
        """xxh3_128 of the text; it does not depend on where blocks are cut."""
        return xxhash.xxh3_128_hexdigest(self._text.digest() + self._lengths.digest())


def encode_row(row: Any, column: str, where: str) -> bytes:
    """UTF-8 of the document of one row: a text, or the text under the key `column`."""
    if not isinstance(row, Mapping):
        return encode_sentence(row, where)
    if column not in row:
        raise missing_column(where, column, list(row))
    if row[column] is None:
        raise InputError(f"{where}: the value of {column!r} is null; drop the row or make it an empty text")
    return encode_sentence(row[column], f"{where}: the value of {column!r}")


def encode_sentence(sentence: Any, name: str) -> bytes:
    """UTF-8 of a str of the caller. name: how errors name it. Raises InputError for no str, or a lone surrogate."""
    if not isinstance(sentence, str):
        raise InputError(f"{name} is {type(sentence).__name__}, not str")
    try:
        return sentence.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} holds a lone surrogate, {sentence[error.start]!r} at character {error.start}, which is not text: "
            "decode its bytes again, or replace it"
        ) from error


def blocks_of(documents: Iterable[bytes]) -> Iterator[StringTable]:
    """Tables of about BLOCK_BYTES of documents of UTF-8."""
    held: list[bytes] = []
    n_bytes = 0
    for document in documents:
        held.append(document)
        n_bytes += len(document) + 1
        if n_bytes >= BLOCK_BYTES:
            yield block_of(held)
            held, n_bytes = [], 0
    if held:
        yield block_of(held)


def block_of(documents: Sequence[bytes]) -> StringTable:
    """The table of documents of UTF-8."""
    return StringTable(np.frombuffer(b"".join(documents), dtype=np.uint8), row_bounds([*map(len, documents)]))


def joined(blocks: Iterable[StringTable], n_bytes: int) -> Iterator[StringTable]:
    """The same documents in tables of at least `n_bytes` bytes, but for the last one."""
    held: list[StringTable] = []
    for block in blocks:
        held.append(block)
        if sum(len(each.utf8) for each in held) >= n_bytes:
            yield held[0].followed_by(*held[1:])
            held = []
    if held:
        yield held[0].followed_by(*held[1:])


def arrow_blocks(arrays: Iterable[pa.Array], where: str) -> Iterator[StringTable]:
    """A table for each Arrow array of text; its text is not copied."""
    row = 0
    for values in arrays:
        if values.null_count:
            null = row + values.is_null().index(True).as_py()
            raise InputError(f"{where}: row {null} (from 0) is null; drop it or make it an empty text")
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
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


def missing_column(where: str, column: str, names: Sequence[Any]) -> InputError:
    """The error for a table or a row without the column."""
    there = ", ".join(map(repr, names)) or "no column at all"
    return InputError(f"{where}: no column {column!r}, only {there}; name one with `column` (--column)")


@contextmanager
def naming_file(path: object) -> Iterator[None]:
    """Turn an error of the system about a file or folder into an InputError that names it."""
    try:
        yield
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: object, error: Exception) -> InputError:
    """The error for a file or folder that cannot be read."""
    return InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}")


def too_long(where: str, limit: int) -> InputError:
    """The error for a line or document beyond the limit."""
    return InputError(
        f"{where} is longer than {limit:,} bytes: split it into sentences, "
        "or raise the limit with max_document_bytes (in a command --max-document-bytes) if it is meant"
    )
