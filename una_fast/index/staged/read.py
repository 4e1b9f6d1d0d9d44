"""The sources of a corpus as splits: files that can be cut are read where they lie, the others become segments.

Stage read: a source that can only be read from its start becomes segments, files of documents of about one size.
Stage scan: a split of the corpus -> its rows in its own numbers, and runs of its distinct words and chunks.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from una_fast._kernels.words.strings import hash_strings
from una_fast.arrays import ID, StringTable, row_bounds
from una_fast.corpus.scripts import ScriptSample
from una_fast.corpus.source import BATCH_ROWS, Block, FileSource, Source
from una_fast.corpus.word_tokenizers import NAMED, probe_words, tokenizer_name, word_tokenizer
from una_fast.corpus.word_tokenizers import Split as WordSplit
from una_fast.corpus.words import Parser
from una_fast.errors import InputError
from una_fast.index.layout import SCORE_LAW
from una_fast.index.scores import count_documents
from una_fast.index.staged.executors import SMALLEST, Budget, Runner, Task
from una_fast.index.staged.packs import Pack, PackFiles, read_meta, write_pack
from una_fast.index.staged.work import State
from una_fast.parallel import Workers

LAYOUT = 3  # of the files of a build: those of another version are not used
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


@dataclass(frozen=True)
class Split:
    """A run of documents.

    Attributes:
        documents: Where they are read.
        identity: Of their file; None for a segment.
        source_number: The place of their source in the corpus.
    """

    documents: FileSource | Segment
    identity: Identity | None
    source_number: int


@dataclass(frozen=True)
class Plan:
    """A corpus in its order.

    Attributes:
        state: How far the build has come.
        splits: The corpus.
        n_partitions: The number of hash ranges of its strings.
        reads: For each source the file with its digest and its remark.
        digests: The tasks that write these for files that are read where they lie.
    """

    state: State
    splits: list[Split]
    n_partitions: int
    reads: PackFiles
    digests: list[Task]


def plan_build(sources: Sequence[Source], words: Words, work: Path, runner: Runner) -> Plan:
    """The plan of a build. Stage read is done then, and the files of another build are deleted."""
    identities = [source.identity() if isinstance(source, FileSource) else None for source in sources]
    n_bytes = _split_bytes(identities, runner.budget)
    reads, given = PackFiles(work, "read", len(sources)), set[Path]()
    made_from: list[Any] = [tokenizer_name(words[0]), probe_words(words[0]), words[1], LAYOUT, SCORE_LAW, n_bytes]
    made_from += [runner.budget.task, identities, [source.reading for source in sources]]
    for source, identity, read in zip(sources, identities, reads, strict=True):
        if identity is None:  # a caller's iterable may work in this process only
            given |= write_segments(source, n_bytes, read)
            made_from.append(read_meta(read)["digest"])
    state = State(work, xxhash.xxh3_64_hexdigest(repr(made_from).encode()), given)
    parts = [source.split(n_bytes) if isinstance(source, FileSource) else None for source in sources]
    tasks: dict[bool, list[Task]] = {True: [], False: []}
    for source, identity, read, cut in zip(sources, identities, reads, parts, strict=True):
        if identity is not None:
            tasks[bool(cut)].append(Task(read, digest_file if cut else read_file, (source, identity, n_bytes)))
    runner.run("read", tasks[False])
    splits, size = [], 0
    for number, (identity, read, cut) in enumerate(zip(identities, reads, parts, strict=True)):
        sizes = [] if cut else read_meta(read)["segments"]
        splits += [Split(part, identity, number) for part in cut or []]
        splits += [Split(Segment(segment_path(read, i)), None, number) for i in range(len(sizes))]
        size += int(identity[1]) if cut and identity else sum(sizes)
    return Plan(state, splits, runner.budget.n_partitions(size), reads, tasks[True])


def _split_bytes(identities: Sequence[Identity | None], budget: Budget) -> int:
    """Bytes of the text of a split; less in a small corpus of files, so that each slot has at least two splits."""
    size = sum(int(identity[1]) for identity in identities if identity)
    most = budget.split_bytes()
    return most if None in identities else min(most, max(size // (2 * budget.slots), SMALLEST))


def read_file(source: FileSource, identity: Identity, n_bytes: int, output: Path) -> None:
    """The task of a file: writes its segments, and then `output` as `write_segments`."""
    write_segments(source, n_bytes, output)
    source.check_unchanged(identity)


def digest_file(source: FileSource, identity: Identity, _: int, output: Path) -> None:
    """The task of a file that is read in parts: writes the digest of the whole file."""
    digest = source.digest()
    source.check_unchanged(identity)
    write_pack(output, {"digest": digest, "remark": ""}, {})


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
    if n_documents == 0:
        raise no_sentence(source)
    write_pack(output, {"segments": sizes, "digest": source.digest(), "remark": source.remark(n_documents)}, {})
    return {output, *(segment_path(output, i) for i in range(len(sizes)))}


def no_sentence(source: Source) -> InputError:
    """The error for a source without a document."""
    return InputError(f"{source.name}: it holds no sentence")


def segment_path(read: Path, i: int) -> Path:
    """The file of segment i of the source whose file of stage read is `read`."""
    return read.with_name(read.name.replace("read", "segment").replace(".pack", f"-{i}.pack"))


def scan(plan: Plan, words: Words, work: Path, runner: Runner) -> None:
    """Stage scan of a build."""
    rows, runs = (PackFiles(work, stage, len(plan.splits)) for stage in ("rows", "runs"))
    tasks = [
        Task(path, scan_split, (split, words, plan.n_partitions, runs[i]))
        for i, (path, split) in enumerate(zip(rows, plan.splits, strict=True))
    ]
    runner.run("scan", [*tasks, *plan.digests])
    sample, n_documents, n_words = ScriptSample(), [0] * plan.reads.n, 0
    for split, path in zip(plan.splits, rows, strict=True):
        meta = read_meta(path)
        sample.n_characters += meta["scripts"]["n_characters"]
        sample.runs += meta["scripts"]["runs"]
        n_documents[split.source_number] += meta["n_documents"]
        n_words += meta["n_words"]
    remark = sample.remark(tokenizer_name(words[0]))
    plan.state.finish("scan", {"n_documents": n_documents, "n_words": n_words, "remark": remark}, "segment-*.pack")


def scan_split(split: Split, words: Words, n_partitions: int, run_file: Path, row_file: Path) -> None:
    """The task of a split: writes the file of its runs, then the file of its rows."""
    parser, here = Parser(word_tokenizer(*words)), Workers(1)
    with nullcontext() if parser.tokenizer.name in NAMED else _ONE_AT_A_TIME:
        parser.add(split.documents.blocks(), here)
    chunks, sentences, vocabulary, word_ids = parser.result(here)
    if isinstance(split.documents, FileSource):
        split.documents.check_unchanged(split.identity or [])
    meta = {"n_documents": len(sentences), "n_words": len(word_ids.values), "scripts": vars(parser.scripts)}
    runs: dict[str, np.ndarray] = {}
    rows: dict[str, np.ndarray] = {}
    for kind, strings, ids in (("terms", vocabulary, word_ids), ("chunks", chunks, sentences)):
        order, bounds = _by_partition(strings, n_partitions)
        taken, numbers = strings.take(order), order.astype(ID)
        run = {"utf8": taken.utf8, "offsets": taken.offsets, "numbers": numbers, "bounds": bounds}
        if kind == "terms":
            frequency, ratio = count_documents(ids, len(strings))
            run |= {"frequency": frequency.astype(ID)[order], "ratio": ratio[order]}
        runs |= {f"{kind}_{name}": array for name, array in run.items()}
        row = {"values": ids.values, "lengths": ids.lengths().astype(ID), "numbers": numbers}
        rows |= {f"{ROWS[kind]}_{name}": array for name, array in row.items()}
    write_pack(run_file, {}, runs)
    write_pack(row_file, meta, rows)


def _by_partition(strings: StringTable, n_partitions: int) -> tuple[np.ndarray, np.ndarray]:
    """int64 (n,): the strings sorted by hash range, then by number; int64 (P + 1,): the bounds of the P ranges."""
    hashes = hash_strings(strings.utf8, strings.offsets).astype(np.uint64)
    partition = hashes * np.uint64(n_partitions) >> np.uint64(32)
    order = np.argsort(partition.astype(np.uint16), kind="stable")
    return order, np.searchsorted(partition[order], np.arange(n_partitions + 1))
