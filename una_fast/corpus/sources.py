"""A corpus argument as a stream of blocks of UTF-8 documents.

A corpus is one source or several in order:

- a path (str or os.PathLike) of a file: .txt (a sentence per line), .csv, .tsv, .jsonl, .json (a sentence per row, in
  one column; a JSON value may also be a plain text), each also with .gz, .bz2, .xz or .zst, or .parquet;
- a glob ("data/*.txt", "data/**/*.jsonl") or a folder: its files of these kinds, in sorted order;
- a pandas or polars DataFrame or an Arrow table (one column), a Series or an Arrow array;
- a Hugging Face Dataset or IterableDataset (one column);
- any other iterable of str or of mappings (one key): one sentence per item, newlines allowed. Generators are consumed
  once.

A list or tuple is several sources if it is not empty and each item is an os.PathLike, a str that ends in one of the
extensions above, a table, or an iterable that is neither a str nor a mapping; any other list is itself an iterable of
sentences.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from una_fast.corpus.objects import IterableSource, open_table
from una_fast.corpus.paths import open_path, source_class_of
from una_fast.corpus.reading import Reading
from una_fast.corpus.source import FileSource, Source
from una_fast.errors import InputError, counted


def open_sources(corpus: Any, reading: Reading) -> Sequence[Source]:
    """The sources of a corpus argument, in order. Raises InputError for an argument that is no corpus."""
    if isinstance(corpus, (list, tuple)) and corpus and all(map(_is_source, corpus)):
        return [source for item in corpus for source in _open_source(item, reading)]
    return _open_source(corpus, reading)


def source_digests(corpus: Any, column: str = "text", quoting: bool | None = None) -> list[dict[str, str]]:
    """{"name", "xxh3_128"} of each source, to recognise a corpus without splitting it. Consumes generators."""
    digests = []
    for source in open_sources(corpus, Reading(column, quoting, max_document_bytes=None)):
        if not isinstance(source, FileSource):
            for _ in source.blocks():
                pass
        digests.append({"name": source.name, "xxh3_128": source.digest()})
    return digests


def check_sources(folder: Path, indexed: list[dict[str, Any]], given: list[dict[str, Any]]) -> None:
    """Raise InputError if the digests `given` differ from the digests `indexed`. folder: of the index."""
    if len(indexed) != len(given):
        raise InputError(
            f"{folder}: made from {counted(len(indexed), 'source')}, and the corpus has {len(given)}: build it again"
        )
    for old, new in zip(indexed, given, strict=True):
        if old["xxh3_128"] != new["xxh3_128"]:
            raise InputError(
                f"{folder}: made from another corpus: {old['name']} had digest {old['xxh3_128']}, and {new['name']} "
                f"has {new['xxh3_128']}; build the index again or give the corpus it was made from"
            )


def _is_source(item: Any) -> bool:
    if isinstance(item, str):
        return source_class_of(item) is not None
    if isinstance(item, (bytes, bytearray, Mapping)):
        return False
    return isinstance(item, (os.PathLike, Iterable, pa.Table))


def _open_source(corpus: Any, reading: Reading) -> Sequence[Source]:
    if isinstance(corpus, (str, os.PathLike)):
        return open_path(corpus, reading)
    if isinstance(corpus, Mapping):
        raise InputError(f"the corpus is a mapping of {', '.join(map(repr, corpus))}: name one, as corpus['train']")
    if table := open_table(corpus, reading):
        return [table]
    if isinstance(corpus, Iterable) and not isinstance(corpus, (bytes, bytearray)):
        return [IterableSource(corpus, reading)]
    raise InputError(
        f"a corpus is a path, a table, a dataset or an iterable of str, or a list of these, not {type(corpus).__name__}"
    )
