"""Stages merge, rank and label: from the runs of all splits to the strings of the index, and the rank of each number.

merge   the runs of one hash range, of all splits -> its distinct strings, best first, with their scores
rank    a range of ranks is gathered from all hash ranges, and sorted
label   the rank of each number of each split

A string's first place is (the first split that has it, its number there), as one int64: numbers are by first appearance
in a split, and splits are in the order of the corpus, so first places are in the order of first appearances. The
strings of each hash range lie sorted by (highest score, first place). A range of ranks holds the strings between two
such keys from every hash range; where they start in its file is found by bisection.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, POINTER, SCORE, StringTable, check_id_range, row_bounds
from una_fast.index.layout import SCORES
from una_fast.index.scores import rank, term_scores
from una_fast.index.staged.packs import Pack, PackFiles, write_pack

N_SAMPLES = 1024  # evenly spaced strings of a hash range, from which ranges of ranks of about equal size are cut
Key = tuple[float, int]  # what ranks are sorted by, lowest first: minus the score, then the first place


def merge_strings(kind: str, runs: PackFiles, partition: int, n_documents: int, output: Path) -> None:
    """The task of a hash range: merges it from all `runs`; words by score, chunks by first appearance."""
    strings, numbers = StringSet(), []
    first = [np.zeros(0, dtype=POINTER)]
    frequency, ratio = np.zeros(0, dtype=POINTER), np.zeros(0, dtype=SCORE)
    for split, path in enumerate(runs):
        with Pack(path) as run:
            span = run.read(f"{kind}_bounds", partition, partition + 2).tolist()
            offsets, utf8 = read_strings(run, f"{kind}_", *span)
            known = len(strings)
            places_in_set = strings.add(utf8, offsets[:-1], offsets[1:])
            check_id_range(len(strings), "words" if kind == "terms" else "chunks")
            numbers.append(places_in_set)
            first.append(split << 32 | run.read(f"{kind}_numbers", *span)[places_in_set >= known].astype(POINTER))
            if kind == "terms":
                frequency, ratio = _with_room(frequency, len(strings)), _with_room(ratio, len(strings))
                frequency[places_in_set] += run.read("terms_frequency", *span)
                ratio[places_in_set] = np.maximum(ratio[places_in_set], run.read("terms_ratio", *span))
    n = len(strings)
    order = np.arange(n)
    arrays: dict[str, np.ndarray] = {"max_tfidf": np.zeros(n, dtype=SCORE)}
    if kind == "terms":
        scores = term_scores(frequency[:n], ratio[:n], n_documents)
        order = rank(scores.max_tfidf).astype(POINTER)
        arrays = {**vars(scores.take(order))}
    table = StringTable(*strings.strings()).take(order)
    del strings
    places = np.empty(n, dtype=ID)
    places[order] = np.arange(n, dtype=ID)
    arrays |= {
        "first": np.concatenate(first)[order],
        "utf8": table.utf8,
        "offsets": table.offsets,
        "places": places[np.concatenate(numbers)],  # of each string of each run in that order
        "bounds": row_bounds([*map(len, numbers)]),
    }
    samples = np.linspace(0, n - 1, min(n, N_SAMPLES)).astype(POINTER)
    arrays |= {f"sample_{name}": arrays[name][samples] for name in ("max_tfidf", "first")}
    write_pack(output, {"n": n}, arrays)


def _with_room(array: np.ndarray, n: int) -> np.ndarray:
    """The array, made longer by zeros if it has less than n values, with half of n to spare."""
    missing = n - len(array)
    return array if missing <= 0 else np.concatenate([array, np.zeros(missing + n // 2, dtype=array.dtype)])


def read_strings(pack: Pack, prefix: str, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
    """Offsets, from 0, int64, and UTF-8 of the strings `start` to `stop` of a file."""
    offsets = pack.read(f"{prefix}offsets", start, stop + 1)
    utf8 = pack.read(f"{prefix}utf8", offsets[0], offsets[-1])
    return offsets - offsets[0], utf8


def cut_ranks(merged: Iterable[Path], n_ranges: int) -> list[Key]:
    """Keys between `n_ranges` ranges of about as many strings each, from the samples of the hash ranges."""
    keys: list[tuple[Key, float]] = []
    for path in merged:
        with Pack(path) as pack:
            scores, firsts = pack.read("sample_max_tfidf").tolist(), pack.read("sample_first").tolist()
            weight = pack.meta["n"] / max(len(scores), 1)
            keys += [((-score, first), weight) for score, first in zip(scores, firsts, strict=True)]
    keys.sort()
    weights = np.cumsum([weight for _, weight in keys])
    targets = np.linspace(0, weights[-1] if len(weights) else 0, n_ranges + 1)[1:-1]
    return [keys[i][0] for i in np.searchsorted(weights, targets).tolist()]


def rank_strings(kind: str, merged: Iterable[Path], low: Key | None, high: Key | None, output: Path) -> None:
    """The task of a range of ranks, from `low` to below `high`: its strings and their scores, by rank.

    `ranks`: int32, of the strings between the keys, one hash range after another; `bounds`: int64, where each hash
    range starts in it.
    """
    with ExitStack() as stack:
        packs = [stack.enter_context(Pack(path)) for path in merged]
        starts = [_place(pack, low) if low else 0 for pack in packs]
        stops = [_place(pack, high) if high else pack.meta["n"] for pack in packs]
        first_rank = sum(starts)

        def gather(name: str) -> np.ndarray:
            return np.concatenate([pack.read(name, *span) for pack, *span in zip(packs, starts, stops, strict=True)])

        order = np.lexsort((gather("first"), -gather("max_tfidf")))
        ranks = np.empty(len(order), dtype=ID)
        ranks[order] = np.arange(first_rank, first_rank + len(order), dtype=ID)
        arrays = {name: gather(name)[order] for name in SCORES} if kind == "terms" else {}
        texts, lengths = [], []
        for pack, start, stop in zip(packs, starts, stops, strict=True):
            offsets, utf8 = read_strings(pack, "", start, stop)
            texts.append(utf8)
            lengths.append(np.diff(offsets))
    strings = StringTable(np.concatenate(texts), row_bounds(np.concatenate(lengths))).take(order)
    arrays |= {f"{kind}_utf8": strings.utf8, f"{kind}_lengths": np.diff(strings.offsets)}
    write_pack(output, {}, {**arrays, "ranks": ranks, "bounds": row_bounds(np.subtract(stops, starts))})


def label_numbers(merged: Path, ranked: Iterable[Path], partition: int, output: Path) -> None:
    """The task of a hash range: writes int32 `labels`, the ranks of the strings of all runs, and `bounds` of runs."""
    ranks = []
    for path in ranked:
        with Pack(path) as pack:
            ranks.append(pack.read("ranks", *pack.read("bounds", partition, partition + 2)))
    with Pack(merged) as pack:
        places, bounds = pack.read("places"), pack.read("bounds")
    write_pack(output, {}, {"labels": np.concatenate(ranks)[places], "bounds": bounds})


def _place(pack: Pack, key: Key) -> int:
    """How many strings of a hash range come before `key`."""

    def key_at(i: int) -> Key:
        return -pack.read("max_tfidf", i, i + 1)[0], int(pack.read("first", i, i + 1)[0])

    return bisect_left(range(pack.meta["n"]), key, key=key_at)
