"""Blocks of documents -> distinct chunks and their ids. A chunk is the text between two spaces (U+0020)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from una_fast._kernels.words.chunks import split_chunks
from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, POINTER, Ragged, StringTable, check_id_range, row_bounds
from una_fast.corpus.source import Block, FileSource, Source
from una_fast.errors import InputError, InputWarning
from una_fast.parallel import Mapper, Workers


class EncodedBlock(NamedTuple):
    """A block in terms of its own distinct chunks, numbered by first appearance."""

    utf8: np.ndarray  # uint8: the distinct chunks
    offsets: np.ndarray  # int64 (c + 1,)
    ids: np.ndarray  # int32 (t,)
    lengths: np.ndarray  # int64 (n,), chunks of each document


class ChunkTable:
    """Distinct chunks of a corpus, and the corpus as their ids.

    A thread numbers the chunks of a block in a table of their own, which fits its cache. Only the distinct chunks of a
    block are then looked up in the common table, in the order of the blocks. So the numbers depend neither on the
    threads nor on where blocks are cut.
    """

    def __init__(self) -> None:
        self._chunks = StringSet()
        self._ids = [np.empty(0, dtype=ID)]
        self._lengths = [np.empty(0, dtype=POINTER)]

    def read(self, source: Source, workers: Workers, each_block: Callable[[Block], None]) -> dict[str, Any]:
        """Add all documents of `source`, calling `each_block` in order. Returns its name, n_documents and xxh3_128."""
        blocks = source.blocks()
        if isinstance(source, FileSource):  # a caller's iterable may work in the caller's thread only
            blocks = workers.read_ahead(blocks)
        n_documents = self.add(blocks, workers, each_block)
        if n_documents == 0:
            raise InputError(f"{source.name}: it holds no sentence")
        if remark := source.remark(n_documents):
            warnings.warn(remark, InputWarning, stacklevel=5)  # the caller of build_index
        return {"name": source.name, "n_documents": n_documents, "xxh3_128": source.digest()}

    def add(self, blocks: Iterable[Block], workers: Mapper, each_block: Callable[[Block], None]) -> int:
        """Add the documents of all `blocks`, calling `each_block` in order. Returns how many there are."""
        n_documents = 0
        for block, encoded in workers.map(encode_block, blocks):
            numbers = self._chunks.add(encoded.utf8, encoded.offsets[:-1], encoded.offsets[1:])
            check_id_range(len(self._chunks), "chunks")
            self._ids.append(numbers[encoded.ids])
            self._lengths.append(encoded.lengths)
            n_documents += len(encoded.lengths)
            each_block(block)
        return n_documents

    def chunks(self) -> StringTable:
        """The distinct chunks."""
        return StringTable(*self._chunks.strings())

    def sentences(self) -> Ragged:
        """int32 chunk ids of each document, at least one: an empty document has one chunk, the empty text."""
        ids, self._ids = np.concatenate(self._ids), []
        return Ragged(ids, row_bounds(np.concatenate(self._lengths)))


def encode_block(block: Block) -> EncodedBlock:
    """Split the documents of a block, and number its chunks."""
    starts, stops, indptr = split_chunks(block.data, block.starts, block.stops)
    chunks = StringSet()
    ids = chunks.add(block.data, starts, stops)
    utf8, offsets = chunks.strings()
    return EncodedBlock(utf8, offsets, ids, np.diff(indptr))
