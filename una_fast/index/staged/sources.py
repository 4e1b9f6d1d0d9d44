"""The sources of a corpus as splits: files that can be cut are read where they lie, the others become segments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from una_fast.corpus.source import FileSource, Source
from una_fast.errors import InputError
from una_fast.index.staged.plan import SMALLEST, Budget, Plan, Words, key_of
from una_fast.index.staged.read import Segment, digest_file, read_file, write_segments
from una_fast.index.staged.tasks import Runner, Task
from una_fast.storage.packs import Pack


class Reader:
    """Turns the sources of a corpus into the splits of a plan. identities: of the files, None for other sources."""

    def __init__(
        self, sources: list[Source], identities: list[list[Any] | None], words: Words, work: Path, budget: Budget
    ):
        self._sources = sources
        self._identities = identities
        self._words = words
        self._work = work
        self._budget = budget
        self._read_here: set[int] = set()  # numbers of iterables, which cannot be read twice
        known = sum(identity[1] for identity in identities if identity)
        share = known // (2 * budget.slots) if None not in identities else budget.split_bytes()
        self._split_bytes = min(budget.split_bytes(), max(share, SMALLEST))
        self._parts = [s.split(self._split_bytes) if isinstance(s, FileSource) else None for s in sources]

    def plan(self, runner: Runner) -> Plan:
        """The plan. Sources that can only be read from their start are read into segments first."""
        self._read_all(runner)
        plan = self._planned()
        gone = [s for s in plan.to_scan() if isinstance(s.source, Segment) and not s.source.path.exists()]
        if gone:  # a result of scanning them was lost, and their segments are deleted: read their sources again
            for number in {split.source_number for split in gone}:
                self._output(number).unlink()
            self._read_all(runner)
        return plan

    def _read_all(self, runner: Runner) -> None:
        runner.run("read", self._read_tasks())
        for number, source in enumerate(self._sources):  # a caller's iterable may work in this process only
            if not isinstance(source, FileSource) and number not in self._read_here:
                write_segments(source, self._split_bytes, self._output(number))
                self._read_here.add(number)

    def _planned(self) -> Plan:
        found = [None if parts else self._read(number) for number, parts in enumerate(self._parts)]
        text_bytes = sum(
            sum(size for _, size in meta["segments"]) if meta else (identity or [0, 0])[1]
            for meta, identity in zip(found, self._identities, strict=True)
        )
        plan = Plan(self._work, self._words, self._budget.n_partitions(text_bytes))
        for number, (meta, parts) in enumerate(zip(found, self._parts, strict=True)):
            for part in parts or []:
                plan.add(part, self._identities[number], number)
            if meta:
                plan.add_segments(meta["segments"], number)
        return plan

    def digest_tasks(self) -> list[Task]:
        """A task for each file that is read in parts."""
        return [
            Task(self._output(number), digest_file, (source, self._identities[number], self._output(number)))
            for number, (source, parts) in enumerate(zip(self._sources, self._parts, strict=True))
            if parts
        ]

    def remarks(self) -> list[str]:
        """The warning about each source, or ""."""
        return [self._read(number).get("remark", "") for number in range(len(self._sources))]

    def summaries(self, n_documents: dict[int, int]) -> list[dict[str, Any]]:
        """Name, n_documents and xxh3_128 of each source; n_documents: by the number of the source."""
        summaries = []
        for number, source in enumerate(self._sources):
            if not n_documents.get(number):
                raise InputError(f"{source.name}: it holds no sentence")
            digest = self._read(number)["digest"]
            summaries.append({"name": source.name, "n_documents": n_documents[number], "xxh3_128": digest})
        return summaries

    def _read_tasks(self) -> list[Task]:
        return [
            Task(output, read_file, (source, self._identities[number], self._split_bytes, output))
            for number, (source, parts) in enumerate(zip(self._sources, self._parts, strict=True))
            if isinstance(source, FileSource) and not parts
            for output in [self._output(number)]
        ]

    def _output(self, number: int) -> Path:
        stage = "digest" if self._parts[number] else "read"
        return (
            self._work
            / f"{stage}-{number}-{key_of([self._identities[number], self._sources[number].reading, self._split_bytes])}"
        )

    def _read(self, number: int) -> dict[str, Any]:
        with Pack(self._output(number)) as pack:
            return pack.meta
