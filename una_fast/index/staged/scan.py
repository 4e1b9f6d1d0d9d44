"""Stage scan: a split of the corpus -> its rows in its own numbers, and runs of its distinct words and chunks."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import Any

import numpy as np

from una_fast._kernels.words.strings import hash_strings
from una_fast.arrays import ID, StringTable
from una_fast.corpus.source import FileSource
from una_fast.corpus.word_tokenizers import NAMED, word_tokenizer
from una_fast.corpus.words import Parser
from una_fast.index.scores import count_documents
from una_fast.index.staged.executors import Task
from una_fast.index.staged.plan import Plan, Split, Words
from una_fast.index.staged.read import check_unchanged
from una_fast.parallel import Workers
from una_fast.storage.packs import write_pack

_ONE_AT_A_TIME = threading.Lock()  # held while a caller's word tokenizer runs, which may not be thread-safe


def scan_tasks(plan: Plan) -> list[Task]:
    """A task for each split that is to be scanned."""
    splits = plan.to_scan()
    for split in splits:  # rows may be left whose runs are gone: without them the task counts as not done
        (plan.work / split.names[0]).unlink(missing_ok=True)
    return [
        Task(plan.work / split.names[0], scan_split, (split, plan.words, plan.n_partitions, plan.work))
        for split in splits
    ]


def scan_split(split: Split, words: Words, n_partitions: int, work: Any) -> None:
    """The task of a split: writes the file of its runs, then the file of its rows."""
    parser, here = Parser(word_tokenizer(words.tokenizer, words.lowercase)), Workers(1)
    with nullcontext() if parser.tokenizer.name in NAMED else _ONE_AT_A_TIME:
        parser.add(split.source.blocks(), here)
    chunks, sentences, vocabulary, word_ids = parser.result(here)
    if isinstance(split.source, FileSource):
        check_unchanged(split.source, split.identity or [])
    meta = {"n_documents": len(sentences), "scripts": parser.scripts.state()}
    runs: dict[str, np.ndarray] = {}
    rows: dict[str, np.ndarray] = {}
    for kind, strings, ids in (("terms", vocabulary, word_ids), ("chunks", chunks, sentences)):
        order, bounds = _by_partition(strings, n_partitions)
        taken, numbers = strings.take(order), order.astype(ID)
        run = {"utf8": taken.utf8, "offsets": taken.offsets, "numbers": numbers, "bounds": bounds}
        if kind == "terms":
            frequency, ratio = count_documents(ids, len(strings))
            run |= {"frequency": frequency.astype(ID)[order], "ratio": ratio[order]}
        runs |= {f"{kind}_{name}": array for name, array in run.items()}
        row = {"values": ids.values, "lengths": ids.lengths().astype(ID), "numbers": numbers}
        rows |= {f"{kind}_{name}": array for name, array in row.items()}
        meta[f"{kind}_values"] = len(ids.values)
    row_name, run_name = split.names
    write_pack(work / run_name, {}, runs)
    write_pack(work / row_name, meta, rows)


def _by_partition(strings: StringTable, n_partitions: int) -> tuple[np.ndarray, np.ndarray]:
    """int64 (n,): the strings sorted by hash range, then by number; int64 (P + 1,): the bounds of the P ranges."""
    partition = (hash_strings(strings.utf8, strings.offsets).astype(np.uint64) * np.uint64(n_partitions)) >> np.uint64(
        32
    )
    order = np.argsort(partition.astype(np.uint16), kind="stable")
    return order, np.searchsorted(partition[order], np.arange(n_partitions + 1))
