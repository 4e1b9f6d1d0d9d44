"""An index built in stages that exchange files, within a given memory, on one machine or many.

scan      a split of the corpus becomes rows of numbers of its own, and its words and chunks, sorted by hash
merge     the strings of one hash range, of all splits, become distinct strings with their counts and first places
rank      a range of ranks is sorted; ties stand by first place
label     the rank of each string of a hash range in each split is written to files
number    the ids of the strings of a split are gathered
write     an array of the index is joined from its parts; then the arrays are moved into the folder

The process that builds reads the corpus, and hands out its splits as files. Every stage is a list of tasks (stages.py),
and every task writes one file that appears whole or not at all: a task that a lost worker has begun is run again, and
writes the same bytes. A build that is started again reads the corpus again, and takes the scans of equal splits.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from una_fast.arrays import check_id_range
from una_fast.corpus.source import Reading, joined
from una_fast.corpus.sources import CorpusReader
from una_fast.corpus.word_tokenizers import Split, probe_words, tokenizer_name
from una_fast.errors import InputError, InputWarning
from una_fast.index.executors import Runner, check_workers, open_runner
from una_fast.index.index import DTYPES, KIND, SCORE_LAW, VERSION, index_meta
from una_fast.index.stages import (
    ROWS,
    PackFiles,
    Words,
    cut_ranks,
    label_strings,
    merge_strings,
    number_split,
    rank_strings,
    read_meta,
    scan_split,
    write_array,
    write_pack,
)
from una_fast.storage import check_own, resolved
from una_fast.storage.files import checksum_of, locked, remove_partial, unwritable
from una_fast.storage.folder import Manifest, publish

LAYOUT = 5  # of the files of a scan: those of another version are not used


def build_in_stages(
    corpus: Any,
    tokenizer: str | Split,
    lowercase: bool,
    reading: Reading,
    folder: str | Path,
    memory: str | int | None,
    executor: Any,
    n_jobs: int | None,
    progress: bool,
) -> Path:
    """Build the index of a corpus in `folder`, whose path without links is returned.

    `una_fast.build_index` documents the arguments and errors.
    """
    target, reader = resolved(folder), CorpusReader(corpus, reading)
    check_own(target, KIND)
    probe = probe_words(tokenizer)
    made_by = repr([tokenizer_name(tokenizer), probe, lowercase, LAYOUT, SCORE_LAW])
    with open_runner(executor, n_jobs, memory, progress) as runner, open_work(target) as work:
        check_workers(executor, work)
        scans = _scan(reader, (tokenizer, lowercase), made_by, work, runner)
        for remark in reader.remarks:
            warnings.warn(remark, InputWarning, stacklevel=3)
        has_words = any(read_meta(path)["n_words"] for path in scans)
        if not has_words:
            _delete(work, "scan-*.pack")
        reader.check_words(has_words)
        checksums = _join(scans, reader.n_documents, runner)
        manifest = Manifest(KIND, VERSION, index_meta(reader.summaries, tokenizer, probe, lowercase), checksums)

        def move() -> Manifest:
            for name, file in manifest.files.items():
                (work / f"{name}.npy").replace(target / file)
            return manifest

        publish(target, KIND, move)
        _delete(work, "*.pack")
    return target


def work_folder(folder: Path) -> Path:
    """The folder beside `folder` for the files of its build."""
    return folder.parent / f".{folder.name}.building"


@contextmanager
def open_work(folder: Path) -> Iterator[Path]:
    """The work folder, made if it is not there, and locked while this process works; scans of an earlier build stay.

    At the end it is deleted if it is empty.

    Raises:
        InputError: the folder cannot be made, or another process builds there.
    """
    work = work_folder(folder)
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(work, error, "nothing was changed") from error
    with locked(work, wait=False) as is_free:
        if not is_free:
            raise InputError(f"{work}: another process is building there; wait for its end, or give another folder")
        remove_partial(work)
        _delete(work, *(f"{stage}-*" for stage in ("split", "merge", "rank", "label", "number", "write")), "*.npy")
        try:
            yield work
        finally:
            with suppress(OSError):
                _delete(work, "split-*.pack")
                work.rmdir()


def _delete(work: Path, *patterns: str) -> None:
    """Delete the files of a work folder whose names match one of the patterns."""
    for pattern in patterns:
        for path in [*work.glob(pattern)]:
            path.unlink(missing_ok=True)


def _scan(reader: CorpusReader, words: Words, made_by: str, work: Path, runner: Runner) -> PackFiles:
    """The scan of each split; one that an earlier build made of the same text in the same way is taken.

    The text of a split lies in a file until its scan is written.
    """
    n = 0

    def tasks() -> Iterator[tuple[Path, Words, Path]]:
        nonlocal n
        for block in joined(reader.blocks(), runner.budget.split_bytes()):
            split, scan = (work / f"{stage}-{n}.pack" for stage in ("split", "scan"))
            n += 1
            of = checksum_of([made_by.encode(), *(array.view(np.uint8).data for array in vars(block).values())])
            if not scan.exists() or read_meta(scan)["of"] != of:
                scan.unlink(missing_ok=True)
                write_pack(split, {"of": of}, vars(block))
                yield split, words, scan

    runner.run("scan", scan_split, tasks())
    scans = PackFiles(work, "scan", n)
    _delete(work, *({path.name for path in work.glob("scan-*.pack")} - {path.name for path in scans}))
    return scans


def _join(scans: PackFiles, n_documents: int, runner: Runner) -> dict[str, str]:
    """The stages after the scan. Returns the checksum of each array, which lies in the work folder."""
    work, budget = scans.work, runner.budget
    n_partitions = budget.n_partitions(sum(read_meta(path)["n_bytes"] for path in scans))
    merged = {kind: PackFiles(work, f"merge-{kind}", n_partitions) for kind in ROWS}
    labelled = {kind: PackFiles(work, f"label-{kind}", n_partitions) for kind in ROWS}
    numbered = PackFiles(work, "number", scans.n)
    tasks = ((kind, scans, i, n_partitions, n_documents, merged[kind][i]) for kind in ROWS for i in range(n_partitions))
    runner.run("merge", merge_strings, tasks)
    ranked: dict[str, PackFiles] = {}
    ranks: list[tuple[Any, ...]] = []
    for kind, paths in merged.items():
        check_id_range(sum(read_meta(path)["n"] for path in paths), "words" if kind == "terms" else "chunks")
        ranked[kind] = PackFiles(work, f"rank-{kind}", budget.n_ranges(sum(path.stat().st_size for path in paths)))
        spans = pairwise([None, *cut_ranks(paths, ranked[kind].n), None])
        ranks += [(kind, paths, *span, path) for path, span in zip(ranked[kind], spans, strict=True)]
    runner.run("rank", rank_strings, ranks)
    labels = ((merged[kind][i], ranked[kind], i, labelled[kind][i]) for kind in ROWS for i in range(n_partitions))
    runner.run("label", label_strings, labels)
    runner.run("number", number_split, ((i, scans[i], labelled, path) for i, path in enumerate(numbered)))
    outputs = {name: work / f"write-{name}.pack" for name in DTYPES}
    writes = []
    for name, output in outputs.items():
        table = name.partition("_")[0]
        parts = scans if table in ROWS.values() else ranked["chunks" if table == "chunks" else "terms"]
        writes.append((name, parts, numbered, work / f"{name}.npy", output))
    runner.run("write", write_array, writes)
    return {name: read_meta(output)["checksum"] for name, output in outputs.items()}
