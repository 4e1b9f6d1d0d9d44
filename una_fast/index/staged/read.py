"""The sources of a corpus as splits: files that can be cut are read where they lie, the others become segments.

Stage read: a source that can only be read from its start becomes segments, files of documents of about one size.
Stage scan: a split of the corpus -> its rows in its own numbers, and runs of its distinct words and chunks.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from una_fast._kernels.words.strings import hash_strings
from una_fast.arrays import ID, StringTable
from una_fast.corpus.source import Block, FileSource, Source
from una_fast.corpus.word_tokenizers import NAMED, probe_words, tokenizer_name, word_tokenizer
from una_fast.corpus.word_tokenizers import Split as WordSplit
from una_fast.corpus.words import Parser
from una_fast.errors import InputError
from una_fast.index.layout import SCORE_LAW
from una_fast.index.scores import count_documents
from una_fast.index.staged.executors import SMALLEST, Budget, Runner, Task
from una_fast.index.staged.plan import ROWS, Plan, Segment, Split, key_of
from una_fast.index.staged.work import delete_work
from una_fast.parallel import Workers
from una_fast.storage.files import checksum_of
from una_fast.storage.packs import read_meta, write_pack

HASH = 2  # the version of `hash_strings`, which says what hash range a string is in
_ONE_AT_A_TIME = threading.Lock()  # held while a caller's word tokenizer runs, which may not be thread-safe

Words = tuple[str | WordSplit, bool]  # the arguments of `word_tokenizer`; pickled with the tasks


@dataclass(frozen=True)
class Input:
    """One source of the corpus.

    identity: of a file, None for another source; parts: of a file that is read in parts, else None; output: the file
    that lists the source's segments, or holds the digest of a file that is read in parts.
    """

    source: Source
    identity: list[Any] | None
    parts: list[FileSource] | None
    output: Path

    def digest_task(self) -> Task:
        """The task of a file that is read in parts."""
        return Task(self.output, digest_file, (self.source, self.identity))

    def summary(self, n_documents: int) -> dict[str, Any]:
        """Name, n_documents and xxh3_128 of the source."""
        if not n_documents:
            raise InputError(f"{self.source.name}: it holds no sentence")
        return {"name": self.source.name, "n_documents": n_documents, "xxh3_128": read_meta(self.output)["digest"]}


def plan_build(sources: Sequence[Source], words: Words, work: Path, runner: Runner) -> tuple[list[Input], Plan]:
    """The inputs and the plan of a build. Stage read is done then, and files of another plan are deleted."""
    identities = [source.identity() if isinstance(source, FileSource) else None for source in sources]
    split_bytes = _split_bytes(identities, runner.budget)
    inputs, reads = [], []
    for number, (source, identity) in enumerate(zip(sources, identities, strict=True)):
        parts = source.split(split_bytes) if isinstance(source, FileSource) else None
        key = key_of([identity, source.reading, split_bytes])
        output = work / f"read-{number}-{key}"
        inputs.append(Input(source, identity, parts, output))
        if isinstance(source, FileSource) and not parts:
            reads.append(Task(output, read_file, (source, identity, split_bytes)))
    runner.run("read", reads)
    for given in inputs:
        if not isinstance(given.source, FileSource):  # a caller's iterable may work in this process only
            write_segments(given.source, split_bytes, given.output)
    while True:
        plan = _plan(inputs, words, work, runner.budget)
        delete_work(work, plan.keeps)
        segments = [(split.source_number, split.source) for split in plan.to_scan()]
        gone = {number for number, source in segments if isinstance(source, Segment) and not source.path.exists()}
        if not gone:
            return inputs, plan
        for number in gone:  # a result of scanning them was lost, and their segments are deleted
            inputs[number].output.unlink()
        runner.run("read", reads)


def _split_bytes(identities: list[list[Any] | None], budget: Budget) -> int:
    """Bytes of the text of a split; less in a small corpus of files, so that each slot has at least two splits."""
    most = budget.split_bytes()
    if None in identities:
        return most
    size = sum(identity[1] for identity in identities if identity)
    return min(most, max(size // (2 * budget.slots), SMALLEST))


def _plan(inputs: list[Input], words: Words, work: Path, budget: Budget) -> Plan:
    tokenizer, lowercase = words
    splits: list[Split] = []
    contents: list[Any] = []  # equal for equal documents only
    size = 0
    for number, given in enumerate(inputs):
        for part in given.parts or []:
            splits.append(Split(len(splits), part, given.identity, number))
            contents.append([given.identity, part.reading, part.part])
        size += given.identity[1] if given.parts and given.identity else 0
        for key, n_bytes in [] if given.parts else read_meta(given.output)["segments"]:
            splits.append(Split(len(splits), Segment(segment_path(work, key)), None, number))
            contents.append(key)
            size += n_bytes
    n_partitions = budget.n_partitions(size)
    made_by = [tokenizer_name(tokenizer), probe_words(tokenizer), lowercase, HASH, SCORE_LAW, n_partitions]
    return Plan(work, key_of([made_by, contents]), splits, n_partitions)


def read_file(source: FileSource, identity: list[str | int], n_bytes: int, output: Path) -> None:
    """The task of a file: writes its segments, and then `output`, which lists them."""
    write_segments(source, n_bytes, output)
    source.check_unchanged(identity)


def write_segments(source: Source, n_bytes: int, output: Path) -> None:
    """Write the documents of `source` as segments beside `output`, and their list to `output`."""
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
    write_pack(output, {"segments": segments, "digest": source.digest(), "remark": source.remark(n_documents)}, {})


def digest_file(source: FileSource, identity: list[str | int], output: Path) -> None:
    """The task of a file that is read in parts: writes the digest of the whole file."""
    digest = source.digest()
    source.check_unchanged(identity)
    write_pack(output, {"digest": digest, "remark": ""}, {})


def segment_path(work: Path, key: str) -> Path:
    """The file of the segment of this content."""
    return work / f"segment-{key}"


def _write_segment(blocks: list[Block], work: Path) -> list[Any]:
    """Write one segment; returns [its key, its bytes]. The key is a digest of the content."""
    texts, starts, stops, base = [], [], [], 0
    for block in blocks:
        first, last = int(block.starts[0]), int(block.stops[-1])
        texts.append(block.data[first:last])
        starts.append(block.starts - first + base)
        stops.append(block.stops - first + base)
        base += last - first
    arrays = {"utf8": np.concatenate(texts), "starts": np.concatenate(starts), "stops": np.concatenate(stops)}
    key = checksum_of(np.ascontiguousarray(array).view(np.uint8).data for array in arrays.values())
    path = segment_path(work, key)
    if not path.exists():
        write_pack(path, {}, arrays)
    return [key, base]


def scan_tasks(plan: Plan, words: Words) -> list[Task]:
    """A task for each split that is to be scanned."""
    tasks = []
    for split in plan.to_scan():
        rows, runs = (plan.of_splits(stage)[split.number] for stage in ("rows", "runs"))
        rows.unlink(missing_ok=True)  # it may be left without its runs, and then the task is not done
        tasks.append(Task(rows, scan_split, (split, words, plan.n_partitions, runs)))
    return tasks


def scan_split(split: Split, words: Words, n_partitions: int, run_file: Path, row_file: Path) -> None:
    """The task of a split: writes the file of its runs, then the file of its rows."""
    parser, here = Parser(word_tokenizer(*words)), Workers(1)
    with nullcontext() if parser.tokenizer.name in NAMED else _ONE_AT_A_TIME:
        parser.add(split.source.blocks(), here)
    chunks, sentences, vocabulary, word_ids = parser.result(here)
    if isinstance(split.source, FileSource):
        split.source.check_unchanged(split.identity or [])
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
