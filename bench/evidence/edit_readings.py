"""Draws the near-misses that were read by hand, and counts the verdicts: python -m bench.evidence.edit_readings.

For each kind of edit and each corpus, 300 near-misses are drawn by a seed, and two readers who do not know the rules
read each of them. A verdict is "fine", "same" (it means the same as its sentence) or "bad" (it is not English, although
its sentence is). `--show` prints the near-misses with their verdicts, so that you can disagree.
The verdicts are in bench/results/edit_readings.tsv; they contain no text, only row numbers and hashes.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xxhash

from bench import script
from una_fast.augment.counter_rng import CounterRNG, pick
from una_fast.augment.edits import BY_LISTS, listed_edits
from una_fast.augment.word_lists import read_word_lists
from una_fast.corpus.documents import Reading
from una_fast.corpus.sources import open_sources
from una_fast.text_table import aligned

VERDICTS = script.RESULTS / "edit_readings.tsv"
SOURCES = {"questions": "near_miss/pairs/questions.txt", "wikipedia": "corpora/wiki_large.txt.gz"}
SEED, N = 69, 300


class Judged(NamedTuple):
    """One near-miss and its verdicts. Fields are the columns of the file of verdicts."""

    edit: str
    source: str
    row: int
    digest: str  # xxh3_64 of the sentence, a tab and its near-miss
    rule: str
    first: str
    second: str


def draw(edit: str, lines: list[str], seed: int = SEED, n: int = N) -> Iterator[tuple[int, str, str, str]]:
    """Yield (row, rule, sentence, near-miss) for n random lines that an edit fits."""
    lists = read_word_lists()
    for row in np.random.default_rng(seed).permutation(len(lines)):
        if n and (edits := listed_edits(lines[row], lists)[edit]):
            first, second = CounterRNG(seed, 0, np.array([row])).bits(2)[0].tolist()
            drawn = pick(first, edits).drawn(second)
            yield int(row), drawn.why, lines[row], drawn.applied(lines[row])
            n -= 1


def digest(sentence: str, near_miss: str) -> str:
    """Return the digest of a near-miss in the file of verdicts."""
    return xxhash.xxh3_64_hexdigest(f"{sentence}\t{near_miss}".encode())


def read_verdicts() -> list[Judged]:
    """Return all verdicts."""
    with VERDICTS.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t")
        next(rows)
        return [Judged(edit, source, int(row), *others) for edit, source, row, *others in rows]


def table(readings: list[Judged]) -> list[str]:
    """Return the share of each verdict by kind of edit, source and rule, as the mean of the two readings."""
    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for one in readings:
        for rule in ("all", one.rule):
            counts[one.edit, one.source, rule].update(one[-2:])
    rows = [["edit", "corpus", "rule", "n", "same meaning", "not English"]]
    for (edit, source, rule), found in sorted(counts.items()):
        shares = [f"{found[verdict] / found.total():.1%}" for verdict in ("same", "bad")]
        rows.append([edit, source, rule, str(found.total() // 2), *shares])
    return aligned(rows, left=(0, 1, 2))


def show_readings(data: str, show: bool) -> None:
    """Print the shares of the verdicts, compare the draws of `data` with them, and print the near-misses if asked."""
    readings = read_verdicts()
    print(*table(readings), sep="\n")
    for name, file in SOURCES.items() if data else ():
        (source,) = open_sources(Path(data, file), Reading())
        lines = [text for block in source.blocks() for text in block]
        for edit in BY_LISTS:
            by_row = {one.row: one for one in readings if (one.edit, one.source) == (edit, name)}
            drawn = list(draw(edit, lines))
            same = sum(row in by_row and by_row[row].digest == digest(old, new) for row, _, old, new in drawn)
            print(f"{edit} {name}: {same} of {len(drawn)} near-misses are those that were read")
            for row, rule, old, new in drawn if show else ():
                verdicts = by_row[row][-2:] if row in by_row else ()
                print("", row, rule, *verdicts, old, new, sep="\n  ")


if __name__ == "__main__":
    sys.exit(
        script.run(
            __doc__,
            show_readings,
            data={"default": "", "help": "folder of the corpora; checks that the same near-misses are drawn again"},
            show={"action": "store_true", "help": "print each near-miss and its verdicts"},
        )
    )
