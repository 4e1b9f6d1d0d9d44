"""Builds an index in stages, from a corpus to a folder: the tasks of each stage, and when their files are deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
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
from una_fast.index.layout import DTYPES, KIND, VERSION, index_meta
from una_fast.index.staged.executors import Runner, Task, check_workers, half_of_memory, open_runner, parse_memory
from una_fast.index.staged.merge import cut_ranks, label_numbers, merge_strings, rank_strings
from una_fast.index.staged.output import ROWS, Piece, checksum_array, create_arrays, write_split
from una_fast.index.staged.plan import STRING_KINDS, Paths, Plan, Words
from una_fast.index.staged.read import Reader, scan_tasks
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
) -> None:
    """Build the index of a corpus in `folder`; `una_fast.build_index` documents the arguments and errors."""
    target = resolved(folder)
    sources = open_sources(corpus, reading)
    check_own(target, KIND)
    n_bytes = parse_memory(memory or half_of_memory())
    with open_runner(executor, n_jobs, n_bytes, progress) as runner, open_work(target) as work:
        check_workers(executor, work / MARK)
        reader = Reader(sources, Words(tokenizer, lowercase), work, runner)
        plan = reader.plan()
        delete_work(work, plan.keeps)
        runner.run("scan", [*scan_tasks(plan), *reader.digest_tasks()])
        delete_work(work, lambda name: plan.keeps(name) and not name.startswith("segment-"))
        stages = _Stages(plan, runner)
        for remark in (*reader.remarks(), stages.script_remark()):
            warn(remark)
        stages.rank()
        checksums = stages.write()
        summaries = reader.summaries(stages.documents_of_sources())
        meta = index_meta(summaries, tokenizer, probe_words(tokenizer), lowercase)
        manifest = Manifest(KIND, VERSION, meta, checksums)
        publish(target, manifest, lambda name, path: link(plan.arrays / f"{name}.npy", path))
        end_work(work)


class _Stages:
    """The stages after the scan of a plan."""

    def __init__(self, plan: Plan, runner: Runner):
        self.plan = plan
        self.runner = runner
        self.metas = [
            read_meta(written if written.exists() else plan.work / split.names[0])
            for split, written in zip(plan.splits, plan.written, strict=True)
        ]
        self.n_documents = sum(meta["n_documents"] for meta in self.metas)

    def script_remark(self) -> str:
        """The warning about scripts without spaces between words, or ""."""
        sample = ScriptSample()
        for meta in self.metas:
            sample.add_state(*meta["scripts"])
        return sample.remark(tokenizer_name(self.plan.words.tokenizer))

    def documents_of_sources(self) -> Counter[int]:
        """The number of documents of each source, by its number."""
        counts = Counter[int]()
        for split, meta in zip(self.plan.splits, self.metas, strict=True):
            counts[split.source_number] += meta["n_documents"]
        return counts

    def rank(self) -> None:
        """Merge, rank and label, unless all labels are there; then delete the files that only these stages read."""
        plan = self.plan
        if not plan.is_labelled():
            runs, merges = plan.write_runs(), []
            merged = {kind: plan.paths("merge", kind, plan.n_partitions) for kind in STRING_KINDS}
            for kind, paths in merged.items():
                for partition, path in enumerate(paths):
                    merges.append(Task(path, merge_strings, (kind, runs, partition, self.n_documents, path)))
            self.runner.run("merge", merges)
            self._create(merged)
            ranks, labels = [], []
            for kind, paths in merged.items():
                n = self.runner.budget.n_ranges(sum(path.stat().st_size for path in paths))
                cuts = [None, *cut_ranks(paths, n), None]  # equal keys make fewer ranges than n
                ranked = plan.paths("rank", f"{kind}-{n}", len(cuts) - 1)  # another `memory` makes others
                for path, span in zip(ranked, pairwise(cuts), strict=True):
                    ranks.append(Task(path, rank_strings, (kind, paths, *span, plan.arrays, path)))
                for partition, path in enumerate(plan.labels(kind)):
                    labels.append(Task(path, label_numbers, (paths[partition], ranked, partition, path)))
            self.runner.run("rank", ranks)
            write_pack(plan.ranked, {"pieces": [read_meta(task.output)["pieces"] for task in ranks]}, {})
            self.runner.run("label", labels)
        used = ("merge-", "runs-")
        delete_work(plan.work, lambda name: plan.keeps(name) and not name.startswith(used))

    def write(self) -> dict[str, str]:
        """Write the rows of all splits. Returns the checksums of all arrays."""
        plan, metas = self.plan, self.metas
        labels = {kind: plan.labels(kind) for kind in STRING_KINDS}
        documents = row_bounds([meta["n_documents"] for meta in metas]).tolist()
        values = {kind: row_bounds([meta[f"{kind}_values"] for meta in metas]).tolist() for kind in STRING_KINDS}
        tasks = []
        for i, (split, path) in enumerate(zip(plan.splits, plan.written, strict=True)):
            places = {kind: values[kind][i] for kind in STRING_KINDS}
            tasks.append(Task(path, write_split, (split, plan.work, plan.arrays, labels, documents[i], places, path)))
        self.runner.run("write", tasks)
        for path in plan.arrays.glob("checksum-*"):  # the array may have changed since then
            path.unlink()
        written = [*read_meta(plan.ranked)["pieces"], *(read_meta(path)["pieces"] for path in plan.written)]
        pieces = {name: [Piece(*of[name]) for of in written if name in of] for name in DTYPES}
        outputs = {name: plan.paths("checksum", name.replace("_", ""), 1)[0] for name in DTYPES}
        tasks = [Task(path, checksum_array, (plan.arrays, name, pieces[name], path)) for name, path in outputs.items()]
        self.runner.run("finish", tasks)
        return {name: read_meta(path)["checksum"] for name, path in outputs.items()}

    def _create(self, merged: Mapping[str, Paths]) -> None:
        """Create the files of the arrays, with their final lengths."""
        lengths: dict[str, int] = {}
        for kind, rows in ROWS.items():
            metas = [read_meta(path) for path in merged[kind]]
            n = sum(meta["n"] for meta in metas)
            check_id_range(n, "words" if kind == "terms" else "chunks")
            lengths[f"{kind}_utf8"] = sum(meta["bytes"] for meta in metas)
            lengths[f"{kind}_offsets"] = n + 1
            lengths[f"{rows}_values"] = sum(meta[f"{kind}_values"] for meta in self.metas)
            lengths[f"{rows}_indptr"] = self.n_documents + 1
            if kind == "terms":
                lengths |= dict.fromkeys(("document_frequency", "idf", "max_tfidf"), n)
        if lengths["terms_offsets"] == 1:
            delete_work(self.plan.work)
            raise InputError(f"the corpus has no word: {counted(self.n_documents, 'sentence')} read, all of them blank")
        create_arrays(self.plan.arrays, lengths)
