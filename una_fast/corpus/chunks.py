"""Blocks of documents -> distinct chunks and their ids. A chunk is the text between two spaces (U+0020)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from una_fast._kernels.csr import relabel
from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, POINTER, Ragged, StringTable, check_id_range, row_bounds
from una_fast.corpus.source import Block
from una_fast.parallel import Workers

PLACES_A_TASK = 1 << 32


class ThreadSets:
    """Distinct strings that several threads find, numbered by first appearance.

    Each thread numbers strings in a set of its own. A string is added there with its place: the number of the task in
    the upper 32 bits, in which a thread's tasks ascend. So the sets can be joined in the order of the places, and the
    numbers depend neither on the threads nor on where the work is cut.
    """

    def __init__(self) -> None:
        self._sets: dict[int, StringSet] = {}

    def of_this_thread(self) -> StringSet:
        """The set of the calling thread."""
        thread = threading.get_ident()
        if thread not in self._sets:
            self._sets[thread] = StringSet()
        return self._sets[thread]

    def joined(self) -> tuple[StringTable, dict[StringSet, np.ndarray]]:
        """The distinct strings of all sets, and for each set the number of each of its strings in them, int32."""
        sets, self._sets = list(self._sets.values()), {}
        if len(sets) == 1:
            return StringTable(*sets[0].strings()), {sets[0]: np.arange(len(sets[0]), dtype=ID)}
        together = StringTable.from_strings([])
        for one in sets:
            together = together.followed_by(StringTable(*one.strings()))
        places = np.concatenate([np.empty(0, dtype=POINTER), *(one.first_places() for one in sets)])
        order, joined = np.argsort(places, kind="stable"), StringSet(len(places))
        numbers = np.empty(len(order), dtype=ID)
        numbers[order] = joined.add(together.utf8, together.offsets[:-1][order], together.offsets[1:][order])
        bounds = row_bounds([len(one) for one in sets])
        return StringTable(*joined.strings()), {one: numbers[bounds[i] : bounds[i + 1]] for i, one in enumerate(sets)}


class EncodedBlock(NamedTuple):
    """The chunks of a block by their numbers in a set."""

    chunks: StringSet
    ids: np.ndarray  # int32 (t,)
    lengths: np.ndarray  # int64 (n,), chunks of each document


class ChunkTable:
    """Distinct chunks of a corpus, and the corpus as their ids."""

    def __init__(self) -> None:
        self._chunks = ThreadSets()
        self._blocks: list[EncodedBlock] = []

    def add(self, blocks: Iterable[Block], workers: Workers) -> Iterator[Block]:
        """Add the documents of all `blocks`; gives each block back, in order, once it is added."""
        for (_, block), encoded in workers.map(self._encode, enumerate(blocks, len(self._blocks))):
            check_id_range(len(encoded.chunks), "chunks")
            self._blocks.append(encoded)
            yield block

    def result(self, workers: Workers) -> tuple[StringTable, Ragged]:
        """The distinct chunks, and int32 chunk ids of each document, at least one: an empty one has the empty chunk.

        The table is empty after that.
        """
        chunks, numbers = self._chunks.joined()
        check_id_range(len(chunks), "chunks")
        blocks, self._blocks = self._blocks, []
        bounds = row_bounds([len(block.ids) for block in blocks])
        ids = np.empty(bounds[-1], dtype=ID)

        def fill(i: int) -> None:
            relabel(blocks[i].ids, numbers[blocks[i].chunks], ids[bounds[i] : bounds[i + 1]])

        for _ in workers.map(fill, range(len(blocks))):
            pass
        lengths = [np.empty(0, dtype=POINTER), *(block.lengths for block in blocks)]
        return chunks, Ragged(ids, row_bounds(np.concatenate(lengths)))

    def _encode(self, numbered: tuple[int, Block]) -> EncodedBlock:
        number, block = numbered
        chunks = self._chunks.of_this_thread()
        return EncodedBlock(chunks, *chunks.add_chunks(block.data, block.starts, block.stops, PLACES_A_TASK * number))
