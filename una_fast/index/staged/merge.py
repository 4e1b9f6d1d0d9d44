"""Stage merge: the runs of one hash range, of all splits -> its distinct strings, best first, and their scores.

A string's first place is (the first split that has it, its number there), as one int64: numbers are by first appearance
in a split, and splits are in the order of the corpus, so first places are in the order of first appearances.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, POINTER, SCORE, StringTable, check_id_range, row_bounds
from una_fast.index.scores import rank, term_scores
from una_fast.index.staged.plan import read_runs
from una_fast.storage.content import wrong_bounds
from una_fast.storage.packs import Pack, write_pack

N_SAMPLES = 1024  # evenly spaced strings of a hash range, from which ranges of ranks of about equal size are cut


def merge_terms(runs: Path, partition: int, n_documents: int, output: Path) -> None:
    """The task of a hash range of words: merges it from the `runs` listed, and sorts it by score."""
    merged = _Merged("terms", read_runs(runs), partition)
    scores = term_scores(merged.frequency[: merged.n], merged.ratio[: merged.n], n_documents)
    order = rank(scores.max_tfidf).astype(POINTER)
    arrays = {"score": scores.max_tfidf[order], "idf": scores.idf[order], "frequency": scores.document_frequency[order]}
    _write(merged, order, arrays, output)


def merge_chunks(runs: Path, partition: int, output: Path) -> None:
    """The task of a hash range of chunks: merges it from the `runs` listed, in the order of first appearance."""
    merged = _Merged("chunks", read_runs(runs), partition)
    _write(merged, np.arange(merged.n), {"score": np.zeros(merged.n, dtype=SCORE)}, output)


class _Merged:
    """The distinct strings of a hash range, numbered by first place.

    first: int64 (n,), first places; frequency: int64 (n,), the sum over the splits; ratio: float64 (n,), the highest of
    the splits; numbers: for each split the number of each string of its run.
    """

    def __init__(self, kind: str, runs: list[Path], partition: int):
        self.strings = StringSet()
        self.n = 0
        self.numbers: list[np.ndarray] = []
        self.first = np.zeros(0, dtype=POINTER)
        self.frequency = np.zeros(0, dtype=POINTER)
        self.ratio = np.zeros(0, dtype=SCORE)
        for number, path in enumerate(runs):
            with Pack(path) as run:
                self._add(kind, run, number, *run.read(f"{kind}_bounds", partition, partition + 2).tolist())

    def _add(self, kind: str, run: Pack, number: int, start: int, stop: int) -> None:
        offsets, utf8 = read_strings(run, f"{kind}_", start, stop)
        found = self.strings.add(utf8, offsets[:-1], offsets[1:])
        check_id_range(len(self.strings), "words" if kind == "terms" else "chunks")
        known, self.n = self.n, len(self.strings)
        self._grow()
        self.numbers.append(found)
        new = found >= known
        self.first[found[new]] = number << 32 | run.read(f"{kind}_numbers", start, stop)[new].astype(POINTER)
        if kind == "terms":
            self.frequency[found] += run.read("terms_frequency", start, stop)
            self.ratio[found] = np.maximum(self.ratio[found], run.read("terms_ratio", start, stop))

    def _grow(self) -> None:
        if self.n > len(self.first):
            room = self.n + self.n // 2
            for name in ("first", "frequency", "ratio"):
                old = getattr(self, name)
                grown = np.zeros(room, dtype=old.dtype)
                grown[: len(old)] = old
                setattr(self, name, grown)


def read_strings(pack: Pack, prefix: str, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
    """Offsets, from 0, int64, and UTF-8 of the strings `start` to `stop` of a file."""
    offsets = pack.read(f"{prefix}offsets", start, stop + 1)
    utf8 = pack.read(f"{prefix}utf8", offsets[0], offsets[-1])
    offsets -= offsets[0]
    if wrong_bounds(offsets, len(utf8)):
        pack.refuse()
    return offsets, utf8


def _write(merged: _Merged, order: np.ndarray, arrays: dict[str, np.ndarray], output: Path) -> None:
    """Write the strings in the order `order`, and for each string of each run its place in that order."""
    strings = StringTable(*merged.strings.strings()).take(order)
    merged.strings = StringSet()
    places = np.empty(merged.n, dtype=ID)
    places[order] = np.arange(merged.n, dtype=ID)
    first = merged.first[order]
    samples = np.linspace(0, merged.n - 1, min(merged.n, N_SAMPLES)).astype(POINTER)
    merged_arrays = {
        **arrays,
        "first": first,
        "utf8": strings.utf8,
        "offsets": strings.offsets,
        "places": places[np.concatenate(merged.numbers)],
        "bounds": row_bounds([len(numbers) for numbers in merged.numbers]),
        "sample_score": arrays["score"][samples],
        "sample_first": first[samples],
    }
    write_pack(output, {"n": merged.n, "bytes": len(strings.utf8)}, merged_arrays)
