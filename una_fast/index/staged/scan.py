"""Stage scan: a split of the corpus -> its rows in its own numbers, and runs of its distinct words and chunks."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import Any

import numpy as np

from una_fast._kernels.csr import document_statistics
from una_fast._kernels.words.strings import hash_strings
from una_fast.arrays import ID, SCORE, StringTable
from una_fast.corpus.source import FileSource
from una_fast.corpus.word_tokenizers import NAMED, word_tokenizer
from una_fast.corpus.words import Parser
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
    counts, ratio = np.zeros(len(vocabulary), dtype=ID), np.zeros(len(vocabulary), dtype=SCORE)
    frequency = np.zeros(len(vocabulary), dtype=np.int64)
    document_statistics(word_ids.values, word_ids.indptr, counts, frequency, ratio)
    term_order, term_bounds = _by_partition(vocabulary, n_partitions)
    chunk_order, chunk_bounds = _by_partition(chunks, n_partitions)
    rows, runs = split.names
    run_arrays = {
        **_run("terms", vocabulary, term_order, term_bounds),
        "terms_frequency": frequency.astype(ID)[term_order],
        "terms_ratio": ratio[term_order],
        **_run("chunks", chunks, chunk_order, chunk_bounds),
    }
    write_pack(work / runs, {}, run_arrays)
    meta = {
        "n_documents": len(sentences),
        "terms_values": len(word_ids.values),
        "chunks_values": len(sentences.values),
        "scripts": parser.scripts.state(),
    }
    row_arrays = {
        "terms_values": word_ids.values,
        "terms_lengths": word_ids.lengths().astype(ID),
        "terms_numbers": term_order.astype(ID),
        "terms_bounds": term_bounds,
        "chunks_values": sentences.values,
        "chunks_lengths": sentences.lengths().astype(ID),
        "chunks_numbers": chunk_order.astype(ID),
        "chunks_bounds": chunk_bounds,
    }
    write_pack(work / rows, meta, row_arrays)


def _by_partition(strings: StringTable, n_partitions: int) -> tuple[np.ndarray, np.ndarray]:
    """int64 (n,): the strings sorted by hash range, then by number; int64 (P + 1,): the bounds of the P ranges."""
    partition = (hash_strings(strings.utf8, strings.offsets).astype(np.uint64) * np.uint64(n_partitions)) >> np.uint64(
        32
    )
    order = np.argsort(partition.astype(np.uint16), kind="stable")
    return order, np.searchsorted(partition[order], np.arange(n_partitions + 1))


def _run(kind: str, strings: StringTable, order: np.ndarray, bounds: np.ndarray) -> dict[str, np.ndarray]:
    taken = strings.take(order)
    names = {"utf8": taken.utf8, "offsets": taken.offsets, "numbers": order.astype(ID), "bounds": bounds}
    return {f"{kind}_{name}": array for name, array in names.items()}
