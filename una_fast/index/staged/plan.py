"""The plan of a build in stages: its splits, the number of hash ranges, and the names of all files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash

from una_fast.corpus.source import BATCH_ROWS, Block, FileSource
from una_fast.storage.content import wrong_ids
from una_fast.storage.packs import Pack, read_meta

ROWS = {"terms": "words", "chunks": "sentences"}  # the arrays of rows whose ids name these strings


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
                data = pack.read("utf8", first[0], last[-1])
                first, last = first - first[0], last - first[0]
                if wrong_ids(first, len(data) + 1) or wrong_ids(last, len(data) + 1) or (last < first).any():
                    pack.refuse()
                yield Block(data, first, last)


@dataclass(frozen=True)
class Split:
    """A run of documents. number: its place in the corpus; identity: of its file, None for a segment."""

    number: int
    source: FileSource | Segment
    identity: list[Any] | None
    source_number: int


@dataclass(frozen=True)
class Paths:
    """The files of the n tasks of a stage, in order. It is sent with each task, so it holds no list of them."""

    work: Path
    stage: str
    key: str
    n: int

    def __getitem__(self, i: int | str) -> Path:
        return self.work / f"{self.stage}-{i}-{self.key}"

    def __iter__(self) -> Iterator[Path]:
        return map(self.__getitem__, range(self.n))


@dataclass(frozen=True)
class Plan:
    """The splits of a corpus in its order, and the number of hash ranges of their strings.

    key: a hash of the corpus, the settings and the cuts, in which the names of all files end that depend on them.
    """

    work: Path
    key: str
    splits: list[Split]
    n_partitions: int

    def of_splits(self, stage: str) -> Paths:
        """A file for each split: its `rows` and `runs`, and the `ids` of its numbers."""
        return self.paths(stage, len(self.splits))

    def of_ranges(self, stage: str, kind: str) -> Paths:
        """A file for each hash range of the terms or chunks."""
        return self.paths(f"{stage}-{kind}", self.n_partitions)

    def of_arrays(self, stage: str) -> Paths:
        """A file for each array of the index, by its name: `array`, the array itself, and `checksum`."""
        return self.paths(stage, 0)

    def paths(self, stage: str, n: int) -> Paths:
        """The files of the n tasks of a stage."""
        return Paths(self.work, stage, self.key, n)

    def of_ranks(self, n: dict[str, int]) -> dict[str, Paths]:
        """For terms and chunks, a file for each of their `n` ranges of ranks; another `memory` makes others."""
        return {kind: self.paths(f"rank-{kind}-{n[kind]}", n[kind]) for kind in ROWS}

    @property
    def ranked(self) -> Path:
        """The numbers of ranges of ranks, written when all of them are there."""
        return self.work / f"ranked-{self.key}"

    def is_labelled(self) -> bool:
        """True if the stages from merge to label are done."""
        if not self.ranked.exists():
            return False
        files = [*(self.of_ranges("label", kind) for kind in ROWS), *self.of_ranks(read_meta(self.ranked)).values()]
        return all(path.exists() for paths in files for path in paths)

    def to_scan(self) -> list[Split]:
        """The splits whose rows or runs a later stage needs, and that are not there."""
        stages = ("rows",) if self.is_labelled() else ("rows", "runs")
        files = [self.of_splits(stage) for stage in stages]
        return [split for split in self.splits if not all(of[split.number].exists() for of in files)]

    def keeps(self, name: str) -> bool:
        """Whether a file of the work folder belongs to this plan."""
        return name.endswith(self.key) or name.startswith(("read-", "segment-"))


def key_of(value: Any) -> str:
    """A hash of the `repr` of a value, as 16 hexadecimal digits."""
    return xxhash.xxh3_64_hexdigest(repr(value).encode())
