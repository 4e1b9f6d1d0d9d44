"""Stages rank and label: sort ranges of ranks and write them to the index; find the rank of each number of a split.

The strings of each hash range lie sorted by (highest score, first place). A range of ranks holds the strings between
two such keys from every hash range; where they start in its file is found by bisection.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from una_fast.arrays import ID, POINTER, StringTable, row_bounds
from una_fast.index.staged.merge import read_strings
from una_fast.index.staged.output import write_values
from una_fast.storage.packs import Pack, write_pack

STATISTICS = {"document_frequency": "frequency", "idf": "idf", "max_tfidf": "score"}  # in the index: in a hash range


class Key(NamedTuple):
    """What ranks are sorted by, lowest first: minus the score, then the first place."""

    minus_score: float
    first: int


def cut_ranks(merged: Sequence[Path], n_ranges: int) -> list[Key]:
    """Keys between `n_ranges` ranges of about as many strings each, from the samples of the hash ranges."""
    keys: list[tuple[Key, float]] = []
    for path in merged:
        with Pack(path) as pack:
            scores, firsts = pack.read("sample_score").tolist(), pack.read("sample_first").tolist()
            weight = pack.meta["n"] / max(len(scores), 1)
            keys += [(Key(-score, first), weight) for score, first in zip(scores, firsts, strict=True)]
    keys.sort()
    weights = np.cumsum([weight for _, weight in keys])
    targets = np.linspace(0, weights[-1] if len(weights) else 0, n_ranges + 1)[1:-1]
    cuts = {keys[i][0] for i in np.searchsorted(weights, targets).tolist()}
    return sorted(cuts)


def rank_strings(
    kind: str, merged: Sequence[Path], low: Key | None, high: Key | None, arrays: Path, output: Path
) -> None:
    """The task of a range of ranks, from `low` to below `high`: writes its strings to the index, and `output`.

    output: `ranks`, int32, of the strings between the keys, one hash range after another; `bounds`, int64, where each
    hash range starts in it.
    """
    packs = [Pack(path) for path in merged]
    try:
        starts = [_place(pack, low) if low else 0 for pack in packs]
        stops = [_place(pack, high) if high else pack.meta["n"] for pack in packs]
        first_rank = sum(starts)
        first_byte = sum(int(pack.read("offsets", at, at + 1)[0]) for pack, at in zip(packs, starts, strict=True))

        def gather(name: str) -> np.ndarray:
            parts = [pack.read(name, *span) for pack, *span in zip(packs, starts, stops, strict=True)]
            return np.concatenate(parts)

        order = np.lexsort((gather("first"), -gather("score")))
        ranks = np.empty(len(order), dtype=ID)
        ranks[order] = np.arange(first_rank, first_rank + len(order), dtype=ID)
        columns = {name: gather(of)[order] for name, of in STATISTICS.items()} if kind == "terms" else {}
        strings = _strings(packs, starts, stops).take(order)
    finally:
        for pack in packs:
            pack.close()
    pieces = {name: write_values(arrays, name, first_rank, values) for name, values in columns.items()}
    pieces[f"{kind}_utf8"] = write_values(arrays, f"{kind}_utf8", first_byte, strings.utf8)
    offsets = strings.offsets[1:] + first_byte
    pieces[f"{kind}_offsets"] = write_values(arrays, f"{kind}_offsets", first_rank + 1, offsets)
    bounds = row_bounds(np.subtract(stops, starts))
    write_pack(output, {"pieces": pieces}, {"ranks": ranks, "bounds": bounds})


def label_numbers(merged: Path, ranked: Sequence[Path], partition: int, output: Path) -> None:
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
        return Key(-pack.read("score", i, i + 1)[0], int(pack.read("first", i, i + 1)[0]))

    return bisect_left(range(pack.meta["n"]), key, key=key_at)


def _strings(packs: list[Pack], starts: list[int], stops: list[int]) -> StringTable:
    texts, lengths = [], []
    for pack, start, stop in zip(packs, starts, stops, strict=True):
        offsets, utf8 = read_strings(pack, "", start, stop)
        texts.append(utf8)
        lengths.append(np.diff(offsets))
    return StringTable(np.concatenate(texts), row_bounds(np.concatenate(lengths).astype(POINTER)))
