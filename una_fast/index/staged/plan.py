"""The plan of a build in stages: its splits, the number of hash ranges, and the names of all files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import xxhash

from una_fast.corpus.source import Block, FileSource
from una_fast.corpus.word_tokenizers import Split as WordSplit
from una_fast.corpus.word_tokenizers import probe_words, tokenizer_name
from una_fast.index.layout import SCORE_LAW
from una_fast.index.staged.work import MARK
from una_fast.storage.content import wrong_ids
from una_fast.storage.packs import Pack, read_meta, write_pack

OF_ARRAYS = ("rank", "ranked", "written", "checksum")  # stages whose files are valid as long as the arrays are there
STRING_KINDS = ("terms", "chunks")
HASH = 2  # the version of `hash_strings`, which says what hash range a string is in


@dataclass(frozen=True)
class Words:
    """How documents become words; pickled with the tasks."""

    tokenizer: str | WordSplit
    lowercase: bool

    def key(self) -> Any:
        """Values of JSON that are equal for equal settings only."""
        return [tokenizer_name(self.tokenizer), probe_words(self.tokenizer), self.lowercase, HASH]


@dataclass(frozen=True)
class Segment:
    """The documents of one file of stage read, which checked their lengths."""

    path: Path

    def blocks(self) -> Iterator[Block]:
        """The documents, as they came."""
        with Pack(self.path) as pack:
            bounds, bytes_to = pack.read("block_bounds"), pack.read("block_bytes")
            for i in range(len(bounds) - 1):
                rows, base = (bounds[i], bounds[i + 1]), bytes_to[i]
                data = pack.read("utf8", base, bytes_to[i + 1])
                starts, stops = pack.read("starts", *rows) - base, pack.read("stops", *rows) - base
                if wrong_ids(starts, len(data) + 1) or wrong_ids(stops, len(data) + 1) or (stops < starts).any():
                    pack.refuse()
                yield Block(data, starts, stops)


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
class Paths:
    """The files of the n tasks of a stage, in order. It is sent with each task, so it holds no list of them."""

    work: Path
    stage: str
    key: str
    n: int

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Path:
        return self.work / f"{self.stage}-{i}-{self.key}"

    def __iter__(self) -> Iterator[Path]:
        return map(self.__getitem__, range(self.n))


def read_runs(listing: Path) -> list[Path]:
    """The files that `Plan.write_runs` listed."""
    return [listing.parent / name for name in read_meta(listing)["names"]]


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
        """The files of all tasks of a stage; a file that says what is in the arrays lies beside them."""
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

    def add(self, source: FileSource | Segment, content: Any, identity: list[Any] | None, source_number: int) -> None:
        """Add the next split of the corpus. content: values of JSON that are equal for equal documents only."""
        key = key_of([content, self.words.key(), self.n_partitions, getattr(source, "reading", None)])
        self.splits.append(Split(len(self.splits), key, source, identity, source_number))


def key_of(value: Any) -> str:
    """A hash of the `repr` of a value, as 16 hexadecimal digits."""
    return xxhash.xxh3_64_hexdigest(repr(value).encode())


def segment_path(work: Path, key: str) -> Path:
    """The file of the segment of this content."""
    return work / f"segment-{key}"
