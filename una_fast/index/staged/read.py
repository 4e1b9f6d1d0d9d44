"""The sources of a corpus as splits: files that can be cut are read where they lie, the others become segments.

Stage read: a source that can only be read from its start becomes segments, files of documents of about one size.
Stage scan: a split of the corpus -> its rows in its own numbers, and runs of its distinct words and chunks.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from una_fast._kernels.words.strings import hash_strings
from una_fast.arrays import ID, POINTER, StringTable
from una_fast.corpus.source import Block, FileSource, Source
from una_fast.corpus.word_tokenizers import NAMED, word_tokenizer
from una_fast.corpus.words import Parser
from una_fast.errors import InputError
from una_fast.index.scores import count_documents
from una_fast.index.staged.executors import SMALLEST, Runner, Task
from una_fast.index.staged.plan import Plan, Segment, Split, Words, key_of, segment_path
from una_fast.parallel import Workers
from una_fast.storage.files import checksum_of
from una_fast.storage.packs import read_meta, write_pack

_ONE_AT_A_TIME = threading.Lock()  # held while a caller's word tokenizer runs, which may not be thread-safe


@dataclass(frozen=True)
class Input:
    """One source of the corpus.

    identity: of a file, None for another source; parts: of a file that is read in parts, else None; output: the file
    that lists the source's segments, or holds the digest of a file that is read in parts.
    """

    number: int
    source: Source
    identity: list[Any] | None
    parts: list[FileSource] | None
    output: Path


class Reader:
    """Turns the sources of a corpus into the splits of a plan."""

    def __init__(self, sources: Sequence[Source], words: Words, work: Path, runner: Runner):
        self._words = words
        self._work = work
        self._runner = runner
        self._read_here: set[int] = set()  # numbers of iterables, which cannot be read twice
        identities: list[list[Any] | None] = [
            source.identity() if isinstance(source, FileSource) else None for source in sources
        ]
        budget = runner.budget
        known = sum(identity[1] for identity in identities if identity)
        share = known // (2 * budget.slots) if None not in identities else budget.split_bytes()
        self._split_bytes = min(budget.split_bytes(), max(share, SMALLEST))
        self._inputs = []
        for number, (source, identity) in enumerate(zip(sources, identities, strict=True)):
            parts = source.split(self._split_bytes) if isinstance(source, FileSource) else None
            key = key_of([identity, source.reading, self._split_bytes])
            output = work / f"{'digest' if parts else 'read'}-{number}-{key}"
            self._inputs.append(Input(number, source, identity, parts, output))

    def plan(self) -> Plan:
        """The plan. Sources that can only be read from their start are read into segments first."""
        files = [i for i in self._inputs if isinstance(i.source, FileSource) and not i.parts]
        tasks = [Task(i.output, read_file, (i.source, i.identity, self._split_bytes, i.output)) for i in files]
        self._runner.run("read", tasks)
        for i in self._inputs:  # a caller's iterable may work in this process only
            if not isinstance(i.source, FileSource) and i.number not in self._read_here:
                write_segments(i.source, self._split_bytes, i.output)
                self._read_here.add(i.number)
        segments = {i.number: read_meta(i.output)["segments"] for i in self._inputs if not i.parts}
        sizes = [size for listed in segments.values() for _, size in listed]
        sizes += [i.identity[1] for i in self._inputs if i.parts and i.identity]
        plan = Plan(self._work, self._words, self._runner.budget.n_partitions(sum(sizes)))
        for i in self._inputs:
            for part in i.parts or []:
                plan.add(part, [i.identity, getattr(part, "part", None)], i.identity, i.number)
            for key, _ in segments.get(i.number, []):
                plan.add(Segment(segment_path(self._work, key)), key, None, i.number)
        splits = [(split.source, split.source_number) for split in plan.to_scan()]
        gone = {number for source, number in splits if isinstance(source, Segment) and not source.path.exists()}
        for number in gone:  # a result of scanning them was lost, and their segments are deleted: read them again
            self._inputs[number].output.unlink()
        return self.plan() if gone else plan

    def digest_tasks(self) -> list[Task]:
        """A task for each file that is read in parts."""
        return [Task(i.output, digest_file, (i.source, i.identity, i.output)) for i in self._inputs if i.parts]

    def remarks(self) -> list[str]:
        """The warning about each source, or ""."""
        return [read_meta(i.output).get("remark", "") for i in self._inputs]

    def summaries(self, n_documents: Mapping[int, int]) -> list[dict[str, Any]]:
        """Name, n_documents and xxh3_128 of each source; n_documents: by the number of the source."""
        for i in self._inputs:
            if not n_documents.get(i.number):
                raise InputError(f"{i.source.name}: it holds no sentence")
        return [
            {"name": i.source.name, "n_documents": n_documents[i.number], "xxh3_128": read_meta(i.output)["digest"]}
            for i in self._inputs
        ]


def read_file(source: FileSource, identity: list[str | int], n_bytes: int, output: Path) -> None:
    """The task of a file: writes its segments, and then `output`, which lists them."""
    write_segments(source, n_bytes, output)
    check_unchanged(source, identity)


def write_segments(source: Source, n_bytes: int, output: Path) -> dict[str, Any]:
    """Write the documents of `source` as segments beside `output`, and their list to `output`. Returns the list."""
    segments: list[list[Any]] = []
    held: list[Block] = []
    size = n_documents = 0
    for block in source.blocks():
        if len(block.starts):
            held.append(block)
            size += int(block.stops[-1] - block.starts[0])
            n_documents += len(block.starts)
        if size >= n_bytes:
            segments.append(_write_segment(held, output.parent))
            held, size = [], 0
    if held:
        segments.append(_write_segment(held, output.parent))
    if n_documents == 0:
        raise InputError(f"{source.name}: it holds no sentence")
    found = {"segments": segments, "digest": source.digest(), "remark": source.remark(n_documents)}
    write_pack(output, found, {})
    return found


def digest_file(source: FileSource, identity: list[str | int], output: Path) -> None:
    """The task of a file that is read in parts: writes the digest of the whole file."""
    digest = source.digest()
    check_unchanged(source, identity)
    write_pack(output, {"digest": digest}, {})


def check_unchanged(source: FileSource, identity: list[str | int]) -> None:
    """Raise InputError for a file whose size or time has changed since the build was started."""
    if source.identity() != identity:
        raise InputError(f"{source.path}: changed since the build was started: run the build again")


def _write_segment(blocks: list[Block], work: Path) -> list[Any]:
    """Write one segment; returns [its key, its bytes]. The key is a digest of the content."""
    texts, starts, stops = [], [], []
    base = 0
    for block in blocks:
        first, last = int(block.starts[0]), int(block.stops[-1])
        texts.append(block.data[first:last])
        starts.append(block.starts - first + base)
        stops.append(block.stops - first + base)
        base += last - first
    arrays = {
        "utf8": np.concatenate(texts),
        "starts": np.concatenate(starts),
        "stops": np.concatenate(stops),
        "block_bounds": np.cumsum([0, *map(len, starts)], dtype=POINTER),
        "block_bytes": np.cumsum([0, *map(len, texts)], dtype=POINTER),
    }
    key = checksum_of(np.ascontiguousarray(array).view(np.uint8).data for array in arrays.values())
    path = segment_path(work, key)
    if not path.exists():
        write_pack(path, {}, arrays)
    return [key, len(arrays["utf8"])]


def scan_tasks(plan: Plan) -> list[Task]:
    """A task for each split that is to be scanned."""
    splits = plan.to_scan()
    for split in splits:  # rows may be left whose runs are gone: without them the task counts as not done
        (plan.work / split.names[0]).unlink(missing_ok=True)
    return [
        Task(plan.work / split.names[0], scan_split, (split, plan.words, plan.n_partitions, plan.work))
        for split in splits
    ]


def scan_split(split: Split, words: Words, n_partitions: int, work: Any) -> None:
    """The task of a split: writes the file of its runs, then the file of its rows."""
    parser, here = Parser(word_tokenizer(words.tokenizer, words.lowercase)), Workers(1)
    with nullcontext() if parser.tokenizer.name in NAMED else _ONE_AT_A_TIME:
        parser.add(split.source.blocks(), here)
    chunks, sentences, vocabulary, word_ids = parser.result(here)
    if isinstance(split.source, FileSource):
        check_unchanged(split.source, split.identity or [])
    meta = {"n_documents": len(sentences), "scripts": parser.scripts.state()}
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
        rows |= {f"{kind}_{name}": array for name, array in row.items()}
        meta[f"{kind}_values"] = len(ids.values)
    row_name, run_name = split.names
    write_pack(work / run_name, {}, runs)
    write_pack(work / row_name, meta, rows)


def _by_partition(strings: StringTable, n_partitions: int) -> tuple[np.ndarray, np.ndarray]:
    """int64 (n,): the strings sorted by hash range, then by number; int64 (P + 1,): the bounds of the P ranges."""
    partition = (hash_strings(strings.utf8, strings.offsets).astype(np.uint64) * np.uint64(n_partitions)) >> np.uint64(
        32
    )
    order = np.argsort(partition.astype(np.uint16), kind="stable")
    return order, np.searchsorted(partition[order], np.arange(n_partitions + 1))
