"""The sources of a corpus as splits: files that can be cut are read where they lie, the others become segments.

Stage read: the digest of each file; a source that can only be read from its start becomes segments, files of documents
of about one size. Stage scan: a split -> its rows in its own numbers, and its distinct words and chunks by hash range.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash

from una_fast._kernels.words.strings import hash_strings
from una_fast.arrays import ID, StringTable, row_bounds
from una_fast.corpus.source import BATCH_ROWS, Block, FileSource, Source
from una_fast.corpus.word_tokenizers import NAMED, probe_words, tokenizer_name, word_tokenizer
from una_fast.corpus.word_tokenizers import Split as WordSplit
from una_fast.corpus.words import Parser
from una_fast.index.layout import SCORE_LAW
from una_fast.index.scores import count_documents
from una_fast.index.staged.executors import SMALLEST, Budget
from una_fast.index.staged.packs import Pack, PackFiles, read_meta, write_pack
from una_fast.parallel import Workers

LAYOUT = 4  # of the files of a build: those of another version are not used
ROWS = {"terms": "words", "chunks": "sentences"}  # the arrays of rows whose ids name these strings
_ONE_AT_A_TIME = threading.Lock()  # held while a caller's word tokenizer runs, which may not be thread-safe

Words = tuple[str | WordSplit, bool]  # the arguments of `word_tokenizer`; pickled with the tasks
Identity = list[str | int]


@dataclass(frozen=True)
class Segment:
    """The documents of one file of stage read, which checked their lengths."""

    path: Path

    def blocks(self) -> Iterator[Block]:
        """The documents, as they came."""
        with Pack(self.path) as pack:
            starts, stops = pack.read("starts"), pack.read("stops")
            for row in range(0, len(starts), BATCH_ROWS):
                first, last = starts[row : row + BATCH_ROWS], stops[row : row + BATCH_ROWS]
                yield Block(pack.read("utf8", first[0], last[-1]), first - first[0], last - first[0])


class Split(NamedTuple):
    """A run of documents of source number `source`. identity: of their file; None for a segment."""

    documents: FileSource | Segment
    identity: Identity | None
    source: int


class Plan:
    """The sources of a build, and the tasks that read them.

    Attributes:
        reads: For each source the file with its digest, its remark and the sizes of its segments.
        key: A hash of the corpus, the settings and the budget: builds of one key exchange the same files.
        kept: Files that are of this build in any case: an iterable is read whenever the build is started.
        tasks: Of stage read, as `Runner.run` takes them.
    """

    def __init__(self, sources: Sequence[Source], words: Words, work: Path, budget: Budget):
        self._identities = [source.identity() if isinstance(source, FileSource) else None for source in sources]
        n_bytes = _split_bytes(self._identities, budget)
        self.reads = PackFiles(work, "read", len(sources))
        self.kept: set[Path] = set()
        self.tasks: dict[Path, tuple[Any, ...]] = {}
        self._parts: list[list[FileSource] | None] = []
        made_from: list[Any] = [tokenizer_name(words[0]), probe_words(words[0]), words[1], LAYOUT, SCORE_LAW, n_bytes]
        made_from += [budget.task, self._identities, [source.reading for source in sources]]
        for source, identity, read in zip(sources, self._identities, self.reads, strict=True):
            parts = source.split(n_bytes) if isinstance(source, FileSource) else None
            self._parts.append(parts)
            if identity is not None:
                self.tasks[read] = source, identity, None if parts else n_bytes
            else:  # a caller's iterable may work in this process only
                self.kept |= write_segments(source, n_bytes, read)
                made_from.append(read_meta(read)["digest"])
        self.key = xxhash.xxh3_64_hexdigest(repr(made_from).encode())

    def splits(self) -> tuple[list[Split], int]:
        """The corpus in its order, and the bytes of its text, once stage read is done."""
        splits, n_bytes = [], 0
        for number, (identity, parts, read) in enumerate(zip(self._identities, self._parts, self.reads, strict=True)):
            sizes = read_meta(read)["segments"]
            splits += [Split(part, identity, number) for part in parts or ()]
            splits += [Split(Segment(segment_path(read, i)), None, number) for i in range(len(sizes))]
            n_bytes += int(identity[1]) if parts and identity else sum(sizes)
        return splits, n_bytes


def _split_bytes(identities: Sequence[Identity | None], budget: Budget) -> int:
    """Bytes of the text of a split; less in a small corpus of files, so that each slot has at least two splits."""
    size = sum(int(identity[1]) for identity in identities if identity)
    most = budget.split_bytes()
    return most if None in identities else min(most, max(size // (2 * budget.slots), SMALLEST))


def read_file(source: FileSource, identity: Identity, n_bytes: int | None, output: Path) -> None:
    """The task of a file: its segments of about `n_bytes`, None for a file that is read in parts, and its digest."""
    if n_bytes is None:
        write_pack(output, {"segments": [], "digest": source.digest(), "remark": ""}, {})
    else:
        write_segments(source, n_bytes, output)
    source.check_unchanged(identity)


def write_segments(source: Source, n_bytes: int, output: Path) -> set[Path]:
    """Write the documents of `source` as segments beside `output`, and to `output` their sizes and the digest.

    Returns the paths of all these files.
    """
    sizes: list[int] = []
    held: list[Block] = []
    size = n_documents = 0

    def write() -> None:
        texts = [block.data[block.starts[0] : block.stops[-1]] for block in held]
        moved = row_bounds([*map(len, texts)])[:-1] - [block.starts[0] for block in held]
        starts = np.concatenate([block.starts + by for block, by in zip(held, moved, strict=True)])
        stops = np.concatenate([block.stops + by for block, by in zip(held, moved, strict=True)])
        arrays = {"utf8": np.concatenate(texts), "starts": starts, "stops": stops}
        write_pack(segment_path(output, len(sizes)), {}, arrays)
        sizes.append(size)
        held.clear()

    for block in source.blocks():
        if len(block.starts):
            held.append(block)
            size += int(block.stops[-1] - block.starts[0])
            n_documents += len(block.starts)
        if size >= n_bytes:
            write()
            size = 0
    if held:
        write()
    write_pack(output, {"segments": sizes, "digest": source.digest(), "remark": source.remark(n_documents)}, {})
    return {output, *(segment_path(output, i) for i in range(len(sizes)))}


def segment_path(read: Path, i: int) -> Path:
    """The file of segment i of the source whose file of stage read is `read`."""
    return read.with_name(read.name.replace("read", "segment").replace(".pack", f"-{i}.pack"))


def scan_split(split: Split, words: Words, n_partitions: int, output: Path) -> None:
    """The task of a split: its rows of words and chunks, and both kinds of strings sorted by hash range.

    For each kind: `utf8`, `offsets`: its strings; `numbers`, int32: those that the split gave them by first appearance;
    `bounds`: of the hash ranges. `values`, int32, and `lengths` of the rows that name them, by these numbers. Of words
    also `frequency` and `ratio`, as `count_documents` has them.
    """
    parser, here = Parser(word_tokenizer(*words)), Workers(1)
    with nullcontext() if parser.tokenizer.name in NAMED else _ONE_AT_A_TIME:
        parser.add(split.documents.blocks(), here)
    chunks, sentences, vocabulary, word_ids = parser.result(here)
    if isinstance(split.documents, FileSource):
        split.documents.check_unchanged(split.identity or [])
    arrays: dict[str, np.ndarray] = {}
    for kind, strings, ids in (("terms", vocabulary, word_ids), ("chunks", chunks, sentences)):
        order, bounds = _by_partition(strings, n_partitions)
        of_kind = {**vars(strings.take(order)), "numbers": order.astype(ID), "bounds": bounds}
        if kind == "terms":
            frequency, ratio = count_documents(ids, len(strings))
            of_kind |= {"frequency": frequency.astype(ID)[order], "ratio": ratio[order]}
        arrays |= {f"{kind}_{name}": array for name, array in of_kind.items()}
        arrays |= {f"{ROWS[kind]}_values": ids.values, f"{ROWS[kind]}_lengths": ids.lengths().astype(ID)}
    write_pack(output, {"n_documents": len(sentences), "n_words": len(word_ids.values)}, arrays)


def _by_partition(strings: StringTable, n_partitions: int) -> tuple[np.ndarray, np.ndarray]:
    """int64 (n,): the strings sorted by hash range, then by number; int64 (P + 1,): the bounds of the P ranges."""
    hashes = hash_strings(strings.utf8, strings.offsets).astype(np.uint64)
    partition = hashes * np.uint64(n_partitions) >> np.uint64(32)
    order = np.argsort(partition.astype(np.uint16), kind="stable")
    return order, np.searchsorted(partition[order], np.arange(n_partitions + 1))
