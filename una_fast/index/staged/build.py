"""Builds an index in stages, from a corpus to a folder, and the folder beside it that the stages work in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from una_fast.arrays import check_id_range
from una_fast.corpus.reading import Reading
from una_fast.corpus.source import Source
from una_fast.corpus.sources import open_sources
from una_fast.corpus.word_tokenizers import Split, probe_words
from una_fast.corpus.words import warn
from una_fast.errors import InputError, counted
from una_fast.index.layout import DTYPES, KIND, VERSION, index_meta
from una_fast.index.staged.executors import Runner, check_workers, is_cluster, open_runner
from una_fast.index.staged.merge import cut_ranks, label_strings, merge_strings, number_split, rank_strings, write_array
from una_fast.index.staged.packs import PackFiles, is_whole, read_meta, write_pack
from una_fast.index.staged.read import ROWS, Plan, read_file, scan_split
from una_fast.storage import check_own, resolved
from una_fast.storage.files import locked, remove_partial, unwritable
from una_fast.storage.folder import Manifest, publish

Tasks = dict[Path, tuple[Any, ...]]  # as `Runner.run` takes them
STATE = "build.pack"  # the key of the build whose files lie in the work folder


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
    target, words = resolved(folder), (tokenizer, lowercase)
    sources = open_sources(corpus, reading)
    check_own(target, KIND)
    with open_runner(executor, n_jobs, memory, progress) as runner, open_work(target) as work:
        if is_cluster(executor):
            check_workers(executor, work)
        plan = Plan(sources, words, work, runner.budget)
        _begin(work, plan)
        runner.run("read", read_file, plan.tasks)
        splits, n_bytes = plan.splits()
        n_partitions = runner.budget.n_partitions(n_bytes)
        scans = PackFiles(work, "scan", len(splits))
        tasks = {path: (split, words, n_partitions) for path, split in zip(scans, splits, strict=True)}
        runner.run("scan", scan_split, tasks)
        n_documents = [0] * len(sources)
        for split, path in zip(splits, scans, strict=True):
            n_documents[split.source] += read_meta(path)["n_documents"]
        reads = [*map(read_meta, plan.reads)]
        for read in reads:
            warn(read["remark"])
        _check_words(sources, n_documents, scans)
        checksums = _join(scans, n_partitions, sum(n_documents), runner)
        summaries = [
            {"name": source.name, "n_documents": n, "xxh3_128": read["digest"]}
            for source, n, read in zip(sources, n_documents, reads, strict=True)
        ]
        meta = index_meta(summaries, tokenizer, probe_words(tokenizer), lowercase)
        manifest = Manifest(KIND, VERSION, meta, checksums)

        def move() -> Manifest:
            for name, file in manifest.files.items():
                (work / f"{name}.npy").replace(target / file)
            return manifest

        publish(target, KIND, move)
        _delete(work, STATE, "*.pack", "*.npy")
    return target


def work_folder(folder: Path) -> Path:
    """The folder beside `folder` for the files of its build."""
    return folder.parent / f".{folder.name}.building"


@contextmanager
def open_work(folder: Path) -> Iterator[Path]:
    """The work folder, made if it is not there, and locked while this process works.

    At the end it goes if it holds no more than what was read of each source.

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
        try:
            yield work
        finally:
            with suppress(OSError):
                if all(path.name == STATE or path.name.startswith("read-") for path in work.iterdir()):
                    _delete(work, STATE, "read-*.pack")
                    work.rmdir()


def _begin(work: Path, plan: Plan) -> None:
    """Delete the files in `work` if they are of another build than `plan`, or if one of them is damaged."""
    old = [path for path in work.glob("*.pack") if path not in plan.kept]
    goes_on = work / STATE in old and all(map(is_whole, old))
    if not goes_on or read_meta(work / STATE)["key"] != plan.key:
        _delete(work, STATE, *(path.name for path in old))  # the key first: without it no file is used
        write_pack(work / STATE, {"key": plan.key}, {})


def _delete(work: Path, *patterns: str) -> None:
    """Delete the files of a work folder whose names match one of the patterns, in the order of these."""
    for pattern in patterns:
        for path in [*work.glob(pattern)]:
            path.unlink(missing_ok=True)


def _check_words(sources: Sequence[Source], n_documents: Sequence[int], scans: PackFiles) -> None:
    """Raise InputError for a source without a document, and for a corpus without a word; then no file is kept."""
    empty = [source for source, n in zip(sources, n_documents, strict=True) if n == 0]
    has_words = any(read_meta(path)["n_words"] for path in scans)
    if empty or not has_words:
        _delete(scans.work, "*.pack")
    if empty:
        raise InputError(f"{empty[0].name}: it holds no sentence")
    if not has_words:
        raise InputError(f"the corpus has no word: {counted(sum(n_documents), 'sentence')} read, all of them blank")


def _join(scans: PackFiles, n_partitions: int, n_documents: int, runner: Runner) -> dict[str, str]:
    """The stages after the scan. Returns the checksum of each array, which lies in the work folder."""
    work = scans.work
    merged = {kind: PackFiles(work, f"merge-{kind}", n_partitions) for kind in ROWS}
    tasks = {path: (kind, scans, i, n_documents) for kind, paths in merged.items() for i, path in enumerate(paths)}
    runner.run("merge", merge_strings, tasks)
    ranked: dict[str, PackFiles] = {}
    labelled = {kind: PackFiles(work, f"label-{kind}", n_partitions) for kind in ROWS}
    ranks: Tasks = {}
    labels: Tasks = {}
    for kind, paths in merged.items():
        check_id_range(sum(read_meta(path)["n"] for path in paths), "words" if kind == "terms" else "chunks")
        n_ranges = runner.budget.n_ranges(sum(path.stat().st_size for path in paths))
        ranked[kind] = PackFiles(work, f"rank-{kind}", n_ranges)
        spans = pairwise([None, *cut_ranks(paths, n_ranges), None])
        ranks |= {path: (kind, paths, *span) for path, span in zip(ranked[kind], spans, strict=True)}
        labels |= {path: (paths[i], ranked[kind], i) for i, path in enumerate(labelled[kind])}
    runner.run("rank", rank_strings, ranks)
    runner.run("label", label_strings, labels)
    numbered = PackFiles(work, "number", scans.n)
    runner.run("number", number_split, {path: (i, scans[i], labelled) for i, path in enumerate(numbered)})
    _delete(work, "write-*.pack")  # a build that was stopped may have moved some arrays
    outputs = {name: work / f"write-{name}.pack" for name in DTYPES}
    writes: Tasks = {}
    for name, output in outputs.items():
        table = name.partition("_")[0]
        parts = scans if table in ROWS.values() else ranked["chunks" if table == "chunks" else "terms"]
        writes[output] = name, parts, numbered, work / f"{name}.npy"
    runner.run("write", write_array, writes)
    return {name: read_meta(output)["checksum"] for name, output in outputs.items()}
