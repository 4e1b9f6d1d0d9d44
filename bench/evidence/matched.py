"""Labelled pairs on which word overlap says nothing: ``python -m bench.evidence.matched --corpus FILE --to data``.

Each pair is a sentence and an edited form of it. For every number of changed words, as many pairs mean the same (label
1) as are near-misses (label 0), so counting changed words separates nothing. The group of a pair is the kind of its
edit, after "trained" or "new": `train.verifier` makes pairs with the first kinds and never with the others.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from train.verifier.data import read_sentences
from train.verifier.options import VerifierOptions
from una_fast.augment.counter_rng import CounterRNG, seed_of
from una_fast.augment.draws import Draws
from una_fast.augment.rewordings import JUDGING, Change, harmful_changes, harmless_changes
from una_fast.command import run_command
from una_fast.errors import InputError, counted
from una_fast.storage.files import write_file
from una_fast.verify.pairs import around, roles

FILE = "near_miss/pairs/matched.tsv"
LEFT_OUT = ("typo", "marks", "filler", "article")  # no reader would call these paraphrases
MOST_CHANGED = 8  # words


def changed_words(first: str, second: str) -> int:
    """Return how many words one text has and the other lacks, or changes places, whichever is more."""
    words = [re.findall(r"\w+", text.lower()) for text in (first, second)]
    counts = [Counter(side) for side in words]
    moved = sum(a != b for a, b in zip(*words, strict=False)) if counts[0] == counts[1] else 0
    return max(moved, sum((counts[0] - counts[1]).values()) + sum((counts[1] - counts[0]).values()))


def edited(texts: Sequence[str], changes: dict[str, Change], seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield (text, edited text, kind of the edit), one per text that an edit fits; kinds that rarely fit come first."""
    fits = {
        name: sum(bool(change(text, _draws(seed, row))) for row, text in enumerate(texts))
        for name, change in changes.items()
    }
    for row, text in enumerate(texts):
        draws = _draws(seed, row)
        for name in draws.ordered({name: 1 / (1 + n) for name, n in fits.items()}):
            new = changes[name](text, draws)
            if new and new.lower() != text.lower() and 0 < changed_words(text, new) <= MOST_CHANGED:
                yield text, new, name
                break


def _draws(seed: int, row: int) -> Draws:
    return Draws(CounterRNG(seed_of("matched pairs", seed), 0, np.array([row])))


def matched_pairs(texts: Sequence[str], seed: int = 0) -> list[tuple[str, str, int, str]]:
    """Return pairs (sentence1, sentence2, label, group), with equal numbers of both labels for each number of changes.

    Even rows of `texts` give pairs of label 1, odd rows give near-misses.
    """
    harmless = {name: change for name, change in harmless_changes().items() if name not in LEFT_OUT}
    harmful = {**harmful_changes(), "around": around, "roles": roles}
    by_number: dict[int, tuple[list, list]] = defaultdict(lambda: ([], []))
    for label, changes in ((1, harmless), (0, harmful)):
        for first, second, name in edited(texts[1 - label :: 2], changes, seed):
            group = f"{'new' if name in JUDGING else 'trained'} {name}"
            by_number[changed_words(first, second)][1 - label].append((first, second, label, group))
    return [
        pair
        for _, (same, near) in sorted(by_number.items())
        for side in (same, near)
        for pair in side[: min(len(same), len(near))]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.evidence.matched", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    add("--corpus", type=Path, required=True, metavar="FILE", help="sentences that no verifier was trained on")
    add("--to", type=Path, default=os.environ.get("UNA_FAST_DATA"), help=f"folder in which {FILE} is written")
    add("--sentences", type=int, default=8000, metavar="N", help="sentences to read [8000]")
    add("--seed", type=int, default=0, help="seed of the sample and of the edits [0]")
    options = parser.parse_args()
    return run_command(lambda: write_pairs(options), "evidence")


def write_pairs(options: argparse.Namespace) -> None:
    """Write the pairs of the command line's corpus."""
    if options.to is None:
        raise InputError("--to is missing: give the folder of the data, or set UNA_FAST_DATA")
    of_corpus = VerifierOptions(corpus=(str(options.corpus),), sentences=options.sentences, seed=options.seed)
    texts = read_sentences(of_corpus)
    pairs = matched_pairs(texts, options.seed)
    lines = ["sentence1\tsentence2\tlabel\tgroup", *("\t".join(map(str, pair)).replace("\n", " ") for pair in pairs)]
    write_file(options.to / FILE, "\n".join(lines) + "\n")
    print(f"{options.to / FILE}: {counted(len(pairs), 'pair')}, half of them near-misses")


if __name__ == "__main__":
    sys.exit(main())
