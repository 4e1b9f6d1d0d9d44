"""A corpus argument as a stream of blocks of UTF-8 documents.

A corpus is one source or several in order:

- a path (str or os.PathLike): .txt (a sentence per line), .csv, .tsv, .jsonl (a sentence per row, in one column),
  each also with .gz, or .parquet;
- a Hugging Face Dataset or IterableDataset (one column);
- any other iterable of str: one sentence per item, newlines allowed. Generators are consumed once.

A list or tuple is several sources if it is not empty and each item is an os.PathLike, a str that ends in one of the
extensions above, a dataset, or an iterable that is not a str; any other list is itself an iterable of sentences.

In a .txt file lines end at a newline, one carriage return before it is dropped, and so is a byte order mark at the
start; a carriage return elsewhere is content. A blank line is a document without words, so rows are line numbers.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import xxhash

from una_fast._kernels.strings import first_invalid_utf8, split_lines
from una_fast.arrays import POINTER
from una_fast.errors import InputError

BLOCK_BYTES = 1 << 20
BATCH_ROWS = 1 << 13  # about BLOCK_BYTES of ordinary sentences
TEXT = (".txt", ".txt.gz")
CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
JSON = (".jsonl", ".jsonl.gz")
PARQUET = (".parquet",)
EXTENSIONS = TEXT + CSV + JSON + PARQUET


@dataclass(frozen=True)
class Block:
    """Documents ``data[starts[i]:stops[i]]``. data: uint8 (B,), valid UTF-8 there; starts, stops: int64 (n,)."""

    data: np.ndarray
    starts: np.ndarray
    stops: np.ndarray


class Source(ABC):
    """One source of documents: `blocks` may be read once, `digest` after that."""

    name: str

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """The documents, in order."""

    @abstractmethod
    def digest(self) -> str:
        """xxh3_128 of a file's raw bytes, or of the text of any other source."""


def open_sources(corpus: Any, column: str) -> list[Source]:
    """The sources of a corpus argument, in order. Raises InputError for what is none."""
    if isinstance(corpus, (list, tuple)) and corpus and all(map(_is_source, corpus)):
        return [_open_source(item, column) for item in corpus]
    return [_open_source(corpus, column)]


def source_digests(corpus: Any, column: str = "text") -> list[dict[str, str]]:
    """{"name", "xxh3_128"} of each source, to recognise a corpus without parsing it. Consumes generators."""
    digests = []
    for source in open_sources(corpus, column):
        if not isinstance(source, FileSource):
            for _ in source.blocks():
                pass
        digests.append({"name": source.name, "xxh3_128": source.digest()})
    return digests


def _is_source(item: Any) -> bool:
    if isinstance(item, str):
        return item.lower().endswith(EXTENSIONS)
    return isinstance(item, (os.PathLike, Iterable)) and not isinstance(item, (bytes, bytearray))


def _is_dataset(corpus: Any) -> bool:
    return hasattr(corpus, "column_names") and hasattr(corpus, "iter")


def _open_source(corpus: Any, column: str) -> Source:
    if isinstance(corpus, (str, os.PathLike)):
        return _open_file(Path(corpus), column)
    if isinstance(corpus, dict):
        raise InputError(f"the corpus is a mapping of {', '.join(map(repr, corpus))}: name one, as corpus['train']")
    if _is_dataset(corpus):
        return DatasetSource(corpus, column)
    if isinstance(corpus, Iterable) and not isinstance(corpus, (bytes, bytearray)):
        return SentenceSource(corpus)
    raise InputError(
        f"a corpus is a path, a dataset or an iterable of str, or a list of these, not {type(corpus).__name__}"
    )


def _open_file(path: Path, column: str) -> Source:
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.is_dir():
        raise InputError(f"{path} is a folder: name its files, as a list")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty")
    name = path.name.lower()
    if name.endswith(TEXT):
        return TextFile(path)
    if name.endswith(CSV):
        return CsvFile(path, column)
    if name.endswith(JSON):
        return JsonFile(path, column)
    if name.endswith(PARQUET):
        return ParquetFile(path, column)
    raise InputError(f"{path}: unknown kind of file; known are {', '.join(EXTENSIONS)}")


class FileSource(Source):
    """A file, possibly gzipped."""

    def __init__(self, path: Path):
        self.path = path
        self.name = path.name

    def digest(self) -> str:
        """xxh3_128 of the raw bytes."""
        state = xxhash.xxh3_128()
        with self.path.open("rb") as file:
            while piece := file.read(BLOCK_BYTES):
                state.update(piece)
        return state.hexdigest()

    def open(self) -> IO[bytes]:
        """The bytes, uncompressed."""
        if self.path.name.lower().endswith(".gz"):
            return gzip.open(self.path, "rb")  # type: ignore[return-value]
        return self.path.open("rb")

    def _line_pieces(self) -> Iterator[bytes]:
        """Pieces of whole lines, of about BLOCK_BYTES."""
        started: list[bytes] = []  # a line that has not ended yet
        try:
            with self.open() as file:
                while piece := file.read(BLOCK_BYTES):
                    cut = piece.rfind(b"\n") + 1
                    if cut:
                        yield b"".join([*started, piece[:cut]])
                        started = []
                    started.append(piece[cut:])
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{self.path}: the gzip data is damaged or cut short ({error})") from error
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror or error}") from error
        if last := b"".join(started):
            yield last


class TextFile(FileSource):
    """A sentence per line."""

    def blocks(self) -> Iterator[Block]:
        """The lines, checked to be UTF-8."""
        n_bytes = n_lines = 0
        for piece in self._line_pieces():
            data = np.frombuffer(piece, dtype=np.uint8)
            starts, stops = split_lines(data)
            invalid = first_invalid_utf8(data)
            if invalid >= 0:
                line = n_lines + int(np.searchsorted(starts, invalid, side="right"))
                raise InputError(
                    f"{self.path}, line {line}: byte {n_bytes + invalid} of the text is not UTF-8; convert the file, "
                    f"for example with iconv -f latin1 -t utf-8"
                )
            if n_bytes == 0 and piece.startswith(b"\xef\xbb\xbf"):
                starts[0] = 3
            n_bytes += len(piece)
            n_lines += len(starts)
            yield Block(data, starts, stops)


class CsvFile(FileSource):
    """A sentence per row of a .csv or .tsv with a header; quoting as pyarrow reads it."""

    def __init__(self, path: Path, column: str):
        super().__init__(path)
        self.column = column

    def blocks(self) -> Iterator[Block]:
        """The column's values."""
        row = 0
        try:
            with self.open() as file, self._reader(file) as reader:
                for batch in reader:
                    yield _arrow_block(batch.column(0), f"{self.path}, column {self.column!r}", row)
                    row += batch.num_rows
        except KeyError:
            with self.open() as file, self._reader(file, every_column=True) as reader:
                raise missing_column(str(self.path), self.column, reader.schema.names) from None
        except (pa.ArrowInvalid, EOFError, OSError, zlib.error) as error:
            raise InputError(f"{self.path} cannot be read as a table: {error}") from error

    def _reader(self, file: IO[bytes], every_column: bool = False) -> pa.csv.CSVStreamingReader:
        tabs = ".tsv" in self.path.suffixes[-2:]
        return pa.csv.open_csv(
            pa.PythonFile(file, mode="r"),
            read_options=pa.csv.ReadOptions(block_size=8 * BLOCK_BYTES),  # a row must fit
            parse_options=pa.csv.ParseOptions(delimiter="\t" if tabs else ",", newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types={self.column: pa.string()},
                include_columns=None if every_column else [self.column],
                strings_can_be_null=False,
            ),
        )


class JsonFile(FileSource):
    """A JSON object per line, the sentence under one key."""

    def __init__(self, path: Path, column: str):
        super().__init__(path)
        self.column = column

    def blocks(self) -> Iterator[Block]:
        """The key's values."""
        parse = pa.json.ParseOptions(
            explicit_schema=pa.schema([(self.column, pa.string())]), unexpected_field_behavior="ignore"
        )
        row = 0
        for piece in self._line_pieces():
            read = pa.json.ReadOptions(use_threads=False, block_size=len(piece) + 1)
            try:
                values = pa.json.read_json(io.BytesIO(piece), read, parse).column(0)
            except pa.ArrowInvalid as error:
                raise InputError(f"{self.path}, rows from {row + 1}: not JSON with a text {self.column!r} per line "
                                 f"({error})") from error
            if values.null_count:
                first = values.is_null().index(True).as_py()
                line = [line for line in piece.split(b"\n") if line.strip()][first]
                raise missing_column(f"{self.path}, row {row + first + 1}", self.column, list(json.loads(line)))
            for chunk in values.chunks:
                yield _arrow_block(chunk, str(self.path), row)
                row += len(chunk)


class ParquetFile(FileSource):
    """A sentence per row, in one column."""

    def __init__(self, path: Path, column: str):
        super().__init__(path)
        self.column = column

    def blocks(self) -> Iterator[Block]:
        """The column's values."""
        row = 0
        try:
            with pa.parquet.ParquetFile(self.path) as file:
                if self.column not in file.schema_arrow.names:
                    raise missing_column(str(self.path), self.column, file.schema_arrow.names)
                for batch in file.iter_batches(BATCH_ROWS, columns=[self.column]):
                    yield _arrow_block(batch.column(0), f"{self.path}, column {self.column!r}", row)
                    row += batch.num_rows
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"{self.path} cannot be read as parquet: {error}") from error


class TextSource(Source):
    """A source whose digest is that of its text: of all documents on end, then of their lengths in bytes."""

    def __init__(self, name: str):
        self.name = name
        self._text = xxhash.xxh3_128()
        self._lengths = xxhash.xxh3_128()

    def blocks(self) -> Iterator[Block]:
        """The documents, in order."""
        for block in self._blocks():
            self._lengths.update((block.stops - block.starts).astype("<i8").tobytes())
            if len(block.starts):
                self._text.update(block.data[block.starts[0] : block.stops[-1]].tobytes())
            yield block

    def digest(self) -> str:
        """The same however the documents come in blocks."""
        return xxhash.xxh3_128_hexdigest(self._text.digest() + self._lengths.digest())

    @abstractmethod
    def _blocks(self) -> Iterator[Block]:
        """Blocks whose documents lie one right after the other."""


class DatasetSource(TextSource):
    """A Hugging Face Dataset or IterableDataset."""

    def __init__(self, dataset: Any, column: str):
        super().__init__("dataset")
        self.dataset = dataset
        self.column = column

    def _blocks(self) -> Iterator[Block]:
        row = 0
        for table in self.dataset.with_format("arrow").iter(batch_size=BATCH_ROWS):
            if self.column not in table.column_names:
                raise missing_column("the dataset", self.column, table.column_names)
            for chunk in table.column(self.column).chunks:
                yield _arrow_block(chunk, f"the dataset, column {self.column!r}", row)
                row += len(chunk)


class SentenceSource(TextSource):
    """An iterable of str."""

    def __init__(self, sentences: Iterable[str]):
        super().__init__("sentences")
        self.sentences = sentences

    def _blocks(self) -> Iterator[Block]:
        encoded: list[bytes] = []
        n_bytes = 0
        for position, sentence in enumerate(self.sentences):
            encoded.append(_encode(sentence, position))
            n_bytes += len(encoded[-1])
            if n_bytes >= BLOCK_BYTES or len(encoded) >= BLOCK_BYTES:
                yield _bytes_block(encoded)
                encoded, n_bytes = [], 0
        if encoded:
            yield _bytes_block(encoded)


def missing_column(where: str, column: str, names: list[str]) -> InputError:
    """The error for a table without the column."""
    return InputError(f"{where}: there is no column {column!r}, only {', '.join(map(repr, names))}; name one as `column`")


def _encode(sentence: Any, position: int) -> bytes:
    if not isinstance(sentence, str):
        raise InputError(f"item {position} of the corpus (from 0) is {type(sentence).__name__}, not str")
    try:
        return sentence.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"item {position} of the corpus (from 0) holds a lone surrogate, {sentence[error.start]!r} at character "
            f"{error.start}, which is no text: decode its bytes again, or replace it"
        ) from error


def _bytes_block(documents: list[bytes]) -> Block:
    bounds = np.zeros(len(documents) + 1, dtype=POINTER)
    np.cumsum([len(document) for document in documents], out=bounds[1:])
    return Block(np.frombuffer(b"".join(documents), dtype=np.uint8), bounds[:-1], bounds[1:])


def _arrow_block(values: pa.Array, where: str, first_row: int) -> Block:
    """The documents of an Arrow array of strings, without a copy where its layout allows it."""
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        text = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
        if not any(is_text(text) for is_text in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
            raise InputError(f"{where} holds {values.type}, not text")
        values = values.cast(pa.large_string())
    if values.null_count:
        row = first_row + values.is_null().index(True).as_py()
        raise InputError(f"{where}: row {row} (from 0) is null; drop it or make it an empty text")
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InputError(f"{where}, rows from {first_row} (from 0): {error}") from error
    _, offsets, data = values.buffers()
    width = np.int64 if pa.types.is_large_string(values.type) else np.int32
    n = len(values)
    bounds = np.frombuffer(offsets, dtype=width)[values.offset : values.offset + n + 1].astype(POINTER) if n else (
        np.zeros(1, dtype=POINTER)
    )
    return Block(np.frombuffer(data or b"", dtype=np.uint8), bounds[:-1], bounds[1:])
