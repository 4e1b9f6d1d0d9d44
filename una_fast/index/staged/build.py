"""Builds an index in stages, from a corpus to a folder: the tasks of each stage, and when their files are deleted."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

from una_fast.arrays import check_id_range, row_bounds
from una_fast.corpus.reading import Reading
from una_fast.corpus.scripts import ScriptSample
from una_fast.corpus.sources import open_sources
from una_fast.corpus.word_tokenizers import Split, probe_words, tokenizer_name
from una_fast.corpus.words import warn
from una_fast.errors import InputError, counted
from una_fast.index.layout import DTYPES, KIND, SCORES, VERSION, index_meta
from una_fast.index.staged.executors import Runner, Task, check_workers, open_runner
from una_fast.index.staged.merge import cut_ranks, label_numbers, merge_strings, rank_strings
from una_fast.index.staged.output import Piece, checksum_array, create_arrays, write_split
from una_fast.index.staged.plan import ROWS, Paths, Plan
from una_fast.index.staged.read import plan_build, scan_tasks
from una_fast.index.staged.work import MARK, delete_work, end_work, open_work
from una_fast.storage import check_own, publish, resolved
from una_fast.storage.files import link
from una_fast.storage.manifest import Manifest
from una_fast.storage.packs import read_meta, write_pack

Metas = list[dict[str, Any]]  # of each split: its numbers of documents, words and chunks, and a sample of its scripts


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
        check_workers(executor, work / MARK)
        inputs, plan = plan_build(sources, words, work, runner)
        digests = [given.digest_task() for given in inputs if given.parts]
        runner.run("scan", [*scan_tasks(plan, words), *digests])
        delete_work(work, lambda name: plan.keeps(name) and not name.startswith("segment-"))
        files = zip(plan.of_splits("rows"), plan.of_splits("written"), strict=True)
        metas = [read_meta(written if written.exists() else rows) for rows, written in files]
        sample, n_documents = ScriptSample(), Counter[int]()
        for split, meta in zip(plan.splits, metas, strict=True):
            sample.n_characters += meta["scripts"]["n_characters"]
            sample.runs += meta["scripts"]["runs"]
            n_documents[split.source_number] += meta["n_documents"]
        remarks = [read_meta(given.output)["remark"] for given in inputs]
        for remark in (*remarks, sample.remark(tokenizer_name(tokenizer))):
            warn(remark)
        if not any(meta["terms_values"] for meta in metas):
            delete_work(work, lambda _: False)
            n = sum(n_documents.values())
            raise InputError(f"the corpus has no word: {counted(n, 'sentence')} read, all of them blank")
        if not plan.is_labelled():
            _rank(plan, metas, runner)
        delete_work(work, lambda name: plan.keeps(name) and not name.startswith(("merge-", "runs-")))
        checksums = _write(plan, metas, runner)
        summaries = [given.summary(n_documents[number]) for number, given in enumerate(inputs)]
        meta = index_meta(summaries, tokenizer, probe_words(tokenizer), lowercase)
        arrays, manifest = plan.of_arrays("array"), Manifest(KIND, VERSION, meta, checksums)
        publish(target, manifest, lambda name, path: link(arrays[name], path))
        end_work(work)
    return target


def _rank(plan: Plan, metas: Metas, runner: Runner) -> None:
    """The stages from merge to label."""
    runs, n_documents = plan.of_splits("runs"), sum(meta["n_documents"] for meta in metas)
    merged = {kind: plan.of_ranges("merge", kind) for kind in ROWS}
    tasks = [
        Task(path, merge_strings, (kind, runs, partition, n_documents))
        for kind, paths in merged.items()
        for partition, path in enumerate(paths)
    ]
    runner.run("merge", tasks)
    arrays = plan.of_arrays("array")
    starts = create_arrays(arrays, _lengths(merged, metas, n_documents))
    ranks, labels = [], []
    for kind, paths in merged.items():
        n = runner.budget.n_ranges(sum(path.stat().st_size for path in paths))
        cuts = [None, *cut_ranks(paths, n), None]  # equal keys make fewer ranges than n
        ranked = plan.paths(f"rank-{kind}-{n}", len(cuts) - 1)  # another `memory` makes others
        for path, span in zip(ranked, pairwise(cuts), strict=True):
            ranks.append(Task(path, rank_strings, (kind, paths, *span, arrays)))
        for partition, path in enumerate(plan.of_ranges("label", kind)):
            labels.append(Task(path, label_numbers, (paths[partition], ranked, partition)))
    runner.run("rank", ranks)
    write_pack(plan.ranked, {"pieces": [starts, *(read_meta(task.output)["pieces"] for task in ranks)]}, {})
    runner.run("label", labels)


def _lengths(merged: dict[str, Paths], metas: Metas, n_documents: int) -> dict[str, int]:
    """The length of each array."""
    lengths: dict[str, int] = {}
    for kind, rows in ROWS.items():
        tables = [read_meta(path) for path in merged[kind]]
        n = sum(table["n"] for table in tables)
        check_id_range(n, "words" if kind == "terms" else "chunks")
        lengths[f"{kind}_utf8"] = sum(table["bytes"] for table in tables)
        lengths[f"{kind}_offsets"] = n + 1
        lengths[f"{rows}_values"] = sum(meta[f"{kind}_values"] for meta in metas)
        lengths[f"{rows}_indptr"] = n_documents + 1
    return lengths | dict.fromkeys(SCORES, lengths["terms_offsets"] - 1)


def _write(plan: Plan, metas: Metas, runner: Runner) -> dict[str, str]:
    """The stages write and finish. Returns the checksum of each array."""
    arrays, written = plan.of_arrays("array"), plan.of_splits("written")
    labels = {kind: plan.of_ranges("label", kind) for kind in ROWS}
    documents = row_bounds([meta["n_documents"] for meta in metas]).tolist()
    values = {kind: row_bounds([meta[f"{kind}_values"] for meta in metas]).tolist() for kind in ROWS}
    tasks = []
    for i, rows in enumerate(plan.of_splits("rows")):
        places = {kind: values[kind][i] for kind in ROWS}
        tasks.append(Task(written[i], write_split, (i, rows, arrays, labels, documents[i], places)))
    runner.run("write", tasks)
    pieces = [*read_meta(plan.ranked)["pieces"], *(read_meta(path)["pieces"] for path in written)]
    checksums, tasks = plan.of_arrays("checksum"), []
    for name in DTYPES:
        checksums[name].unlink(missing_ok=True)  # the array may have changed since then
        of_array = [Piece(*of[name]) for of in pieces if name in of]
        tasks.append(Task(checksums[name], checksum_array, (arrays[name], of_array)))
    runner.run("finish", tasks)
    return {name: read_meta(checksums[name])["checksum"] for name in DTYPES}
