"""Builds an index in stages, from a corpus to a folder: the tasks of each stage, and when their files are deleted."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

from una_fast.arrays import check_id_range
from una_fast.corpus.reading import Reading
from una_fast.corpus.scripts import ScriptSample
from una_fast.corpus.sources import open_sources
from una_fast.corpus.word_tokenizers import Split, probe_words, tokenizer_name
from una_fast.corpus.words import warn
from una_fast.errors import InputError, counted
from una_fast.index.layout import DTYPES, KIND, VERSION, index_meta
from una_fast.index.staged.executors import Runner, Task, check_workers, open_runner
from una_fast.index.staged.merge import cut_ranks, label_numbers, merge_strings, rank_strings
from una_fast.index.staged.output import number_split, write_array
from una_fast.index.staged.plan import ROWS, Plan
from una_fast.index.staged.read import plan_build, scan_tasks
from una_fast.index.staged.work import MARK, delete_work, end_work, open_work
from una_fast.storage import check_own, publish, resolved
from una_fast.storage.files import link
from una_fast.storage.manifest import Manifest
from una_fast.storage.packs import read_meta, write_pack


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
        metas = [read_meta(path) for path in plan.of_splits("rows")]
        sample, n_documents = ScriptSample(), Counter[int]()
        for split, meta in zip(plan.splits, metas, strict=True):
            sample.n_characters += meta["scripts"]["n_characters"]
            sample.runs += meta["scripts"]["runs"]
            n_documents[split.source_number] += meta["n_documents"]
        remarks = [read_meta(given.output)["remark"] for given in inputs]
        for remark in (*remarks, sample.remark(tokenizer_name(tokenizer))):
            warn(remark)
        if not any(meta["n_words"] for meta in metas):
            delete_work(work, lambda _: False)
            n = sum(n_documents.values())
            raise InputError(f"the corpus has no word: {counted(n, 'sentence')} read, all of them blank")
        if not plan.is_labelled():
            _rank(plan, sum(n_documents.values()), runner)
        delete_work(work, lambda name: plan.keeps(name) and not name.startswith(("merge-", "runs-")))
        checksums = _write(plan, runner)
        summaries = [given.summary(n_documents[number]) for number, given in enumerate(inputs)]
        meta = index_meta(summaries, tokenizer, probe_words(tokenizer), lowercase)
        arrays, manifest = plan.of_arrays("array"), Manifest(KIND, VERSION, meta, checksums)
        publish(target, manifest, lambda name, path: link(arrays[name], path))
        end_work(work)
    return target


def _rank(plan: Plan, n_documents: int, runner: Runner) -> None:
    """The stages from merge to label."""
    runs = plan.of_splits("runs")
    merged = {kind: plan.of_ranges("merge", kind) for kind in ROWS}
    tasks = [
        Task(path, merge_strings, (kind, runs, partition, n_documents))
        for kind, paths in merged.items()
        for partition, path in enumerate(paths)
    ]
    runner.run("merge", tasks)
    n_ranges = {}
    for kind, paths in merged.items():
        check_id_range(sum(read_meta(path)["n"] for path in paths), "words" if kind == "terms" else "chunks")
        n_ranges[kind] = runner.budget.n_ranges(sum(path.stat().st_size for path in paths))
    ranks, labels = [], []
    for kind, ranked in plan.of_ranks(n_ranges).items():
        cuts = [None, *cut_ranks(merged[kind], n_ranges[kind]), None]
        for path, span in zip(ranked, pairwise(cuts), strict=True):
            ranks.append(Task(path, rank_strings, (kind, merged[kind], *span)))
        for partition, path in enumerate(plan.of_ranges("label", kind)):
            labels.append(Task(path, label_numbers, (merged[kind][partition], ranked, partition)))
    runner.run("rank", ranks)
    write_pack(plan.ranked, n_ranges, {})
    runner.run("label", labels)


def _write(plan: Plan, runner: Runner) -> dict[str, str]:
    """The stages number and write. Returns the checksum of each array."""
    rows, ids = plan.of_splits("rows"), plan.of_splits("ids")
    labels = {kind: plan.of_ranges("label", kind) for kind in ROWS}
    runner.run("number", [Task(path, number_split, (i, rows[i], labels)) for i, path in enumerate(ids)])
    arrays, checksums = plan.of_arrays("array"), plan.of_arrays("checksum")
    ranked = plan.of_ranks(read_meta(plan.ranked))
    parts = {"chunks": ranked["chunks"], **dict.fromkeys(ROWS.values(), rows)}
    tasks = []
    for name in DTYPES:
        checksums[name].unlink(missing_ok=True)  # the array may have changed since then
        of_array = parts.get(name.partition("_")[0], ranked["terms"])
        ids_of_array = ids if name.endswith("_values") else None
        tasks.append(Task(checksums[name], write_array, (name, of_array, ids_of_array, arrays[name])))
    runner.run("write", tasks)
    return {name: read_meta(checksums[name])["checksum"] for name in DTYPES}
