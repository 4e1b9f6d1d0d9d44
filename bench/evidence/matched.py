"""Labelled pairs on which word overlap says nothing: ``python -m bench.evidence.matched --corpus FILE --to data``.

Each pair is a sentence and an edited form of it. For every number of changed words, as many pairs mean the same (label
1) as are near-misses (label 0), so counting changed words separates nothing. The group of a pair is the kind of its
edit, after "trained" or "new": `train.verifier` makes pairs with the first kinds and never with the others.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from bench import script
from train.verifier.data import read_sentences
from train.verifier.options import VerifierOptions
from una_fast.augment.counter_rng import CounterRNG, seed_of
from una_fast.augment.draws import Draws
from una_fast.augment.rewordings import JUDGING, Change, harmful_changes, harmless_changes
from una_fast.errors import counted
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


def write_pairs(corpus: Path, to: Path, sentences: int, seed: int) -> None:
    """Write the pairs that are made from the sentences of `corpus`."""
    pairs = matched_pairs(read_sentences(VerifierOptions(corpus=(str(corpus),), sentences=sentences, seed=seed)), seed)
    lines = ["sentence1\tsentence2\tlabel\tgroup", *("\t".join(map(str, pair)).replace("\n", " ") for pair in pairs)]
    write_file(to / FILE, "\n".join(lines) + "\n")
    print(f"{to / FILE}: {counted(len(pairs), 'pair')}, half of them near-misses")


def main() -> int:
    return script.run(
        __doc__,
        write_pairs,
        corpus=script.CORPUS | {"flag": "--corpus", "help": "sentences that no verifier was trained on"},
        to=script.DATA | {"help": f"folder in which {FILE} is written [UNA_FAST_DATA]"},
        sentences={"type": int, "default": 8000, "metavar": "N", "help": "sentences to read [8000]"},
        seed={"type": int, "default": 0, "help": "seed of the sample and of the edits [0]"},
    )


if __name__ == "__main__":
    sys.exit(main())
