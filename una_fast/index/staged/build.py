"""Builds an index in stages, from a corpus to a folder: the tasks of each stage, and when their files are deleted."""

from __future__ import annotations

from collections.abc import Sequence
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
from una_fast.index.staged.executors import Runner, Task, check_workers, open_runner
from una_fast.index.staged.merge import cut_ranks, label_numbers, merge_strings, rank_strings
from una_fast.index.staged.output import number_split, write_array
from una_fast.index.staged.packs import PackFiles, read_meta
from una_fast.index.staged.read import ROWS, Plan, no_sentence, plan_build, scan
from una_fast.index.staged.work import delete_files, open_work
from una_fast.storage import check_own, resolved
from una_fast.storage.folder import Manifest, publish


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
        check_workers(executor, work)
        plan = plan_build(sources, words, work, runner)
        if "scan" not in plan.state:
            scan(plan, words, work, runner)
        about = plan.state["scan"]
        reads = [read_meta(path) for path in plan.reads]
        for remark in (*(read["remark"] for read in reads), about["remark"]):
            warn(remark)
        _check_words(sources, about, work)
        if "label" not in plan.state:
            _rank(plan, work, runner)
        if "number" not in plan.state:
            _number(plan, work, runner)
        checksums = _write(plan, work, runner)
        summaries = [
            {"name": source.name, "n_documents": n, "xxh3_128": read["digest"]}
            for source, n, read in zip(sources, about["n_documents"], reads, strict=True)
        ]
        meta = index_meta(summaries, tokenizer, probe_words(tokenizer), lowercase)
        manifest = Manifest(KIND, VERSION, meta, checksums)

        def move() -> Manifest:
            for name, file in manifest.files.items():
                (work / f"{name}.npy").replace(target / file)
            return manifest

        publish(target, KIND, move)
    return target


def _check_words(sources: Sequence[Source], about: dict[str, Any], work: Path) -> None:
    """Raise InputError for a source without a document, and for a corpus without a word; then no file is kept."""
    empty = [source for source, n in zip(sources, about["n_documents"], strict=True) if n == 0]
    if empty or about["n_words"] == 0:
        delete_files(work, "*.pack")
    if empty:
        raise no_sentence(empty[0])
    if about["n_words"] == 0:
        n_documents = counted(sum(about["n_documents"]), "sentence")
        raise InputError(f"the corpus has no word: {n_documents} read, all of them blank")


def _rank(plan: Plan, work: Path, runner: Runner) -> None:
    """The stages from merge to label."""
    runs, n_documents = PackFiles(work, "runs", len(plan.splits)), sum(plan.state["scan"]["n_documents"])
    merged = {kind: PackFiles(work, f"merge-{kind}", plan.n_partitions) for kind in ROWS}
    tasks = [
        Task(path, merge_strings, (kind, runs, partition, n_documents))
        for kind, paths in merged.items()
        for partition, path in enumerate(paths)
    ]
    runner.run("merge", tasks)
    ranks, labels, n_ranges = [], [], {}
    for kind, paths in merged.items():
        check_id_range(sum(read_meta(path)["n"] for path in paths), "words" if kind == "terms" else "chunks")
        n = n_ranges[kind] = runner.budget.n_ranges(sum(path.stat().st_size for path in paths))
        ranked = PackFiles(work, f"rank-{kind}", n)
        for path, span in zip(ranked, pairwise([None, *cut_ranks(paths, n), None]), strict=True):
            ranks.append(Task(path, rank_strings, (kind, paths, *span)))
        for partition, path in enumerate(PackFiles(work, f"label-{kind}", plan.n_partitions)):
            labels.append(Task(path, label_numbers, (paths[partition], ranked, partition)))
    runner.run("rank", ranks)
    runner.run("label", labels)
    plan.state.finish("label", n_ranges, "merge-*.pack", "runs-*.pack")


def _number(plan: Plan, work: Path, runner: Runner) -> None:
    """Stage number, in which the files of a split that are read for the last time are deleted at the end."""
    rows, numbered = (PackFiles(work, stage, len(plan.splits)) for stage in ("rows", "numbered"))
    labels = {kind: PackFiles(work, f"label-{kind}", plan.n_partitions) for kind in ROWS}
    runner.run("number", [Task(path, number_split, (i, rows[i], labels)) for i, path in enumerate(numbered)])
    plan.state.finish("number", {}, "rows-*.pack", "label-*.pack")


def _write(plan: Plan, work: Path, runner: Runner) -> dict[str, str]:
    """Stage write. Returns the checksum of each array."""
    ranked = {kind: PackFiles(work, f"rank-{kind}", n) for kind, n in plan.state["label"].items()}
    parts = {"chunks": ranked["chunks"], **dict.fromkeys(ROWS.values(), PackFiles(work, "numbered", len(plan.splits)))}
    delete_files(work, "write-*.pack")  # a build that was stopped may have moved some arrays
    outputs = {name: work / f"write-{name}.pack" for name in DTYPES}
    tasks = [
        Task(output, write_array, (name, parts.get(name.partition("_")[0], ranked["terms"]), work / f"{name}.npy"))
        for name, output in outputs.items()
    ]
    runner.run("write", tasks)
    return {name: read_meta(output)["checksum"] for name, output in outputs.items()}
