"""The plan of a build in stages: its budget of memory, its splits, the number of hash ranges, and its files' names."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import xxhash

from una_fast.corpus.source import FileSource
from una_fast.corpus.word_tokenizers import Split as WordSplit
from una_fast.corpus.word_tokenizers import probe_words, tokenizer_name
from una_fast.errors import InputError
from una_fast.index.layout import SCORE_LAW
from una_fast.index.staged.read import Segment, segment_path
from una_fast.index.staged.work import MARK
from una_fast.storage.packs import Pack, write_pack

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]I?|)B?\s*", re.IGNORECASE)
BASE = 300 << 20  # bytes: a process with numpy and pyarrow imported, and the tables of the coordinator
LEAST = 512 << 20
TEXT_FACTOR = 10  # bytes that scanning a split takes for each byte of its text (measured by bench.scale.staged)
RANK_FACTOR = 4  # bytes that sorting a range of ranks takes for each byte of its strings and scores
SMALLEST, LARGEST = 1 << 20, 128 << 20  # bytes of text of a split: larger ones save nothing more
MAX_PARTITIONS = 4096
OF_ARRAYS = ("rank", "ranked", "written", "checksum")  # stages whose files are valid as long as the arrays are there
STRING_KINDS = ("terms", "chunks")
HASH = 2  # the version of `hash_strings`, which says what hash range a string is in


def parse_memory(memory: str | int) -> int:
    """Bytes of "2GB", "512MiB" or a number. Raises InputError for anything else, and below 512 MiB."""
    match = SIZE.fullmatch(str(memory))
    if not match or isinstance(memory, bool):
        raise InputError(f"memory is {memory!r}: give a size, as '2GB' or '512MiB'")
    n_bytes = int(float(match[1]) * UNITS[match[2].upper()])
    if n_bytes < LEAST:
        raise InputError(f"memory is {memory!r}: a build takes at least {LEAST >> 20} MiB; give that or more")
    return n_bytes


def half_of_memory() -> int:
    """Half of the memory of this machine, in bytes; 2 GiB where the system does not say."""
    try:
        return max(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2, LEAST)
    except (AttributeError, ValueError, OSError):
        return 2 << 30


@dataclass(frozen=True)
class Budget:
    """task: bytes of memory that one task may take; slots: how many tasks run at once."""

    task: int
    slots: int

    @classmethod
    def of(cls, memory: int, processes: int, threads: int) -> Budget:
        """The budget of `processes` processes, of `threads` threads each, that share `memory` bytes.

        Raises InputError if that is not enough for the smallest splits.
        """
        task = (memory - processes * BASE) // (processes * threads)
        if task < TEXT_FACTOR * SMALLEST:
            least = processes * (BASE + threads * TEXT_FACTOR * SMALLEST)
            raise InputError(
                f"memory: {processes * threads} tasks at once take at least {least >> 20:,} MiB: give more memory, or "
                "fewer workers"
            )
        return cls(task, processes * threads)

    def split_bytes(self) -> int:
        """Bytes of the text of a split."""
        return min(max(self.task // TEXT_FACTOR, SMALLEST), LARGEST)

    def n_partitions(self, text_bytes: int) -> int:
        """How many hash ranges: a task holds the distinct strings of one, and their numbers in all splits."""
        return min(max(-(-text_bytes // (self.task // 2)), 1), MAX_PARTITIONS)

    def n_ranges(self, n_bytes: int) -> int:
        """How many ranges of ranks, for `n_bytes` bytes of distinct strings and scores."""
        return max(-(-RANK_FACTOR * n_bytes // self.task), 1)


@dataclass(frozen=True)
class Words:
    """How documents become words; pickled with the tasks."""

    tokenizer: str | WordSplit
    lowercase: bool

    def key(self) -> Any:
        """Values of JSON that are equal for equal settings only."""
        return [tokenizer_name(self.tokenizer), probe_words(self.tokenizer), self.lowercase, HASH]


@dataclass(frozen=True)
class Split:
    """A run of documents. key: a hash of its source and settings; identity: of its file, None for a segment."""

    number: int
    key: str
    source: FileSource | Segment
    identity: list[Any] | None
    source_number: int

    @property
    def names(self) -> tuple[str, str]:
        """The names of the files of its rows and of its runs."""
        return f"rows-{self.number}-{self.key}", f"runs-{self.number}-{self.key}"


@dataclass(frozen=True)
class Paths(Sequence[Path]):
    """The files of the tasks of a stage, in order. It is sent with each task, so it holds no list of them."""

    work: Path
    stage: str
    key: str
    n: int

    def __len__(self) -> int:
        return self.n

    @overload
    def __getitem__(self, i: int) -> Path: ...
    @overload
    def __getitem__(self, i: slice) -> list[Path]: ...
    def __getitem__(self, i: int | slice) -> Path | list[Path]:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(self.n))]
        if not 0 <= i < self.n:
            raise IndexError(i)
        return self.work / f"{self.stage}-{i}-{self.key}"


def read_runs(listing: Path) -> list[Path]:
    """The files that `Plan.write_runs` listed."""
    with Pack(listing) as pack:
        return [listing.parent / name for name in pack.meta["names"]]


@dataclass
class Plan:
    """The splits of a corpus in its order, and the number of hash ranges of their strings."""

    work: Path
    words: Words
    n_partitions: int
    splits: list[Split] = field(default_factory=list)

    @cached_property
    def key(self) -> str:
        """A hash of the complete plan, which the names of the files of later stages end in."""
        return key_of([SCORE_LAW, *(split.key for split in self.splits)])

    def write_runs(self) -> Path:
        """Write the list of the files of the runs, in the order of the splits; returns the file with it."""
        path = self.paths("runs", "all", 1)[0]
        if not path.exists():
            write_pack(path, {"names": [split.names[1] for split in self.splits]}, {})
        return path

    def paths(self, stage: str, kind: str, n: int) -> Paths:
        """The files of all tasks of a stage. Those that say what is in the arrays lie beside the arrays."""
        return Paths(self.arrays if stage in OF_ARRAYS else self.work, f"{stage}-{kind}", self.key, n)

    @property
    def arrays(self) -> Path:
        """The folder that becomes the index."""
        return self.work / f"arrays-{self.key}"

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the files of the complete plan that do not end in its key."""
        return frozenset([MARK, *(name for split in self.splits for name in split.names)])

    @property
    def written(self) -> Paths:
        """For each split the file that says that its rows are in the arrays."""
        return self.paths("written", "rows", len(self.splits))

    @property
    def ranked(self) -> Path:
        """The list of what stage rank has put into the arrays."""
        return self.paths("ranked", "all", 1)[0]

    def labels(self, kind: str) -> Paths:
        """The files of stage label."""
        return self.paths("label", kind, self.n_partitions)

    def is_labelled(self) -> bool:
        """True if the stages from merge to label are done."""
        files = [self.ranked, *(path for kind in STRING_KINDS for path in self.labels(kind))]
        return all(path.exists() for path in files)

    def to_scan(self) -> list[Split]:
        """The splits whose rows or runs a later stage needs, and that are not there."""
        labelled = self.is_labelled()

        def is_needed(split: Split) -> bool:
            rows, runs = ((self.work / name).exists() for name in split.names)
            return not (rows or self.written[split.number].exists()) or not (runs or labelled)

        return [split for split in self.splits if is_needed(split)]

    def keeps(self, name: str) -> bool:
        """Whether a file of the work folder belongs to this plan."""
        return name in self.names or name.endswith(self.key) or name.startswith(("read-", "digest-", "segment-"))

    def add(self, source: FileSource | Segment, identity: list[Any] | None, source_number: int) -> None:
        """Add the next split of the corpus."""
        content = source.path.name if isinstance(source, Segment) else [identity, getattr(source, "part", None)]
        key = key_of([content, self.words.key(), self.n_partitions, _reading_key(source)])
        self.splits.append(Split(len(self.splits), key, source, identity, source_number))

    def add_segments(self, segments: list[list[Any]], source_number: int) -> None:
        """Add a source that was read into segments."""
        for key, _ in segments:
            self.add(Segment(segment_path(self.work, key)), None, source_number)


def key_of(value: Any) -> str:
    """A hash of the `repr` of a value, as 16 hexadecimal digits."""
    return xxhash.xxh3_64_hexdigest(repr(value).encode())


def _reading_key(source: FileSource | Segment) -> Any:
    return source.reading if isinstance(source, FileSource) else None
