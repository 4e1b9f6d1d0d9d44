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

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from una_fast._kernels.words.chunks import first_invalid_utf8, split_lines
from una_fast.arrays import row_bounds
from una_fast.corpus.source import BLOCK_BYTES, Block, FileSource, Source, TextSource
from una_fast.corpus.tables import CsvFile, DatasetSource, JsonFile, ParquetFile
from una_fast.errors import InputError

TEXT = (".txt", ".txt.gz")
CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
JSON = (".jsonl", ".jsonl.gz")
PARQUET = (".parquet",)
EXTENSIONS = TEXT + CSV + JSON + PARQUET


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


def check_sources(folder: Path, indexed: list[dict[str, Any]], given: list[dict[str, Any]]) -> None:
    """Refuse the `given` digests where they are not those that the index in `folder` was made from."""
    if len(indexed) != len(given):
        raise InputError(f"{folder}: made from {len(indexed)} sources, and the corpus has {len(given)}: build it again")
    for old, new in zip(indexed, given, strict=True):
        if old["xxh3_128"] != new["xxh3_128"]:
            raise InputError(
                f"{folder}: made from another corpus: {old['name']} had digest {old['xxh3_128']}, and {new['name']} "
                f"has {new['xxh3_128']}; build the index again or give the corpus it was made from"
            )


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


class TextFile(FileSource):
    """A sentence per line."""

    def blocks(self) -> Iterator[Block]:
        """The lines, checked to be UTF-8."""
        n_bytes = n_lines = 0
        for piece in self.line_pieces():
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


class SentenceSource(TextSource):
    """An iterable of str."""

    def __init__(self, sentences: Iterable[str]):
        super().__init__("iterable")
        self.sentences = sentences

    def _blocks(self) -> Iterator[Block]:
        encoded: list[bytes] = []
        n_bytes = 0
        for position, sentence in enumerate(self.sentences):
            encoded.append(encode_sentence(sentence, f"item {position} of the corpus (from 0)"))
            n_bytes += len(encoded[-1])
            if n_bytes >= BLOCK_BYTES or len(encoded) >= BLOCK_BYTES:
                yield _bytes_block(encoded)
                encoded, n_bytes = [], 0
        if encoded:
            yield _bytes_block(encoded)


def encode_sentence(sentence: Any, name: str) -> bytes:
    """UTF-8 of a str that a caller gave; `name` says which one. Raises InputError for what is no text."""
    if not isinstance(sentence, str):
        raise InputError(f"{name} is {type(sentence).__name__}, not str")
    try:
        return sentence.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} holds a lone surrogate, {sentence[error.start]!r} at character {error.start}, which is no text: "
            "decode its bytes again, or replace it"
        ) from error


def _bytes_block(documents: list[bytes]) -> Block:
    bounds = row_bounds([len(document) for document in documents])
    return Block(np.frombuffer(b"".join(documents), dtype=np.uint8), bounds[:-1], bounds[1:])
