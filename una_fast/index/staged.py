"""An index built in stages that exchange files, within a given memory, on one machine or many.

The process that builds reads the corpus, and hands out its splits as files. Every stage is a list of tasks, whose
functions stages.py describes, and every task writes one file that appears whole or not at all: a task that a lost
worker has begun is run again, and writes the same bytes. A build that is started again reads the corpus again, and
takes the scans of equal splits.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from una_fast.arrays import StringTable, check_id_range
from una_fast.corpus.source import Reading, joined
from una_fast.corpus.sources import all_blank, open_sources, read_blocks
from una_fast.corpus.word_tokenizers import Split, probe_words, tokenizer_name
from una_fast.errors import InputError
from una_fast.index.executors import Runner, check_workers
from una_fast.index.index import DTYPES, KIND, SCORE_LAW, VERSION, index_meta
from una_fast.index.stages import (
    ROWS,
    PackFiles,
    cut_ranks,
    label_strings,
    merge_strings,
    rank_strings,
    read_meta,
    scan_split,
    write_array,
    write_pack,
)
from una_fast.parallel import n_cores
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
    target, sources = resolved(folder), open_sources(corpus, reading)
    check_own(target, KIND)
    probe = probe_words(tokenizer)
    made_by = repr([tokenizer_name(tokenizer), probe, lowercase, LAYOUT, SCORE_LAW])
    workers = ThreadPoolExecutor(n_cores(n_jobs)) if executor is None else nullcontext(executor)
    with workers as executor, open_work(target) as work:
        runner = Runner.on(executor, memory, progress)
        check_workers(executor, work)
        summaries: list[dict[str, Any]] = []
        scans = _scan(read_blocks(sources, summaries), tokenizer, lowercase, made_by, work, runner)
        n_documents = sum(source["n_documents"] for source in summaries)
        about = [read_meta(path) for path in scans]
        if not any(meta["n_words"] for meta in about):
            _delete(work, "scan-*.pack")
            raise all_blank(n_documents)
        n_partitions = runner.n_partitions(sum(meta["n_bytes"] for meta in about))
        checksums = _join(scans, n_partitions, n_documents, runner)
        manifest = Manifest(KIND, VERSION, index_meta(summaries, tokenizer, probe, lowercase), checksums)

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
        _delete(work, *(f"{stage}-*.pack" for stage in ("split", "merge", "rank", "label")), "*.npy")
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


def _scan(
    blocks: Iterator[StringTable],
    tokenizer: str | Split,
    lowercase: bool,
    made_by: str,
    work: Path,
    runner: Runner,
) -> PackFiles:
    """The scan of each split; one that an earlier build made of the same text in the same way is taken.

    The text of a split lies in a file until its scan is written.
    """
    n = 0

    def tasks() -> Iterator[tuple[Any, ...]]:
        nonlocal n
        for block in joined(blocks, runner.split_bytes()):
            split, scan = (work / f"{stage}-{n}.pack" for stage in ("split", "scan"))
            n += 1
            of = checksum_of([made_by.encode(), *(array.data for array in vars(block).values())])
            if not scan.exists() or read_meta(scan)["of"] != of:
                scan.unlink(missing_ok=True)
                write_pack(split, {"of": of}, vars(block))
                yield split, tokenizer, lowercase, scan

    runner.run("scan", scan_split, tasks())
    scans = PackFiles(work, "scan", n)
    _delete(work, *({path.name for path in work.glob("scan-*.pack")} - {path.name for path in scans}))
    return scans


def _join(scans: PackFiles, n: int, n_documents: int, runner: Runner) -> dict[str, str]:
    """The stages after the scan, with n hash ranges. Returns the checksums of the arrays, which lie in the folder."""
    ranked, labelled = {}, {}
    for kind in ROWS:
        merged, ranked[kind], labelled[kind] = (
            PackFiles(scans.work, f"{stage}-{kind}", n) for stage in ("merge", "rank", "label")
        )
        merges = ((kind, scans, i, n_documents, merged) for i in range(n))
        check_id_range(sum(runner.run("merge", merge_strings, merges)), kind)
        spans = pairwise([None, *cut_ranks(merged), None])
        runner.run("rank", rank_strings, ((kind, merged, *span, ranked[kind][i]) for i, span in enumerate(spans)))
        labels = ((merged[i], ranked[kind], i, path) for i, path in enumerate(labelled[kind]))
        runner.run("label", label_strings, labels)
    writes = []
    for name in DTYPES:
        kind = "chunks" if name.startswith(("chunks", "sentences")) else "terms"
        parts = scans if name.startswith(tuple(ROWS.values())) else ranked[kind]
        writes.append((name, parts, labelled[kind], scans.work / f"{name}.npy"))
    return dict(zip(DTYPES, runner.run("write", write_array, writes), strict=True))
