"""A lexical check for a cache of answers: an encoder puts negations, numbers and opposites near, and a list finds them.

    python examples/cache_guard.py pairs.tsv --model NAME_OR_FOLDER [--threshold 0.9]

`pairs.tsv` has labelled pairs as `una-fast probe --pairs` reads them. docs/near-misses.md has the figures of our sets.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from sentence_transformers import SentenceTransformer

from una_fast.augment.edits import Sentence
from una_fast.augment.word_lists import read_word_lists
from una_fast.command import run_command
from una_fast.pair_scores import PairScores, read_pairs, score_pairs
from una_fast.text_table import aligned

LISTS = read_word_lists()
NEGATIONS = {*LISTS.affirmed, *(phrase[0] for phrase in LISTS.negations), "never", "without"}
THRESHOLDS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


def contradicts(first: str, second: str) -> bool:
    """Whether texts that share half of their words differ in a number, or in an odd count of opposites and "not"s."""
    sides = [Sentence(text).words for text in (first, second)]
    a, b = map(set, sides)
    if 2 * len(a & b) < max(len(a), len(b)):
        return False  # the cosine judges texts with other words better
    negations = sum(word in NEGATIONS for words in sides for word in words)
    opposites = sum(not (b - a).isdisjoint(LISTS.opposites.get(word, ())) for word in a - b)
    return (negations + opposites) % 2 > 0 or numbers(sides[0]) != numbers(sides[1])


def numbers(words: Sequence[str]) -> set[str]:
    """The numbers among words, in digits or as words such as "three", and months, days and units."""
    return {
        word for i, word in enumerate(words) if word[0].isdecimal() or (word in LISTS.classes and LISTS.allow(words, i))
    }


def main() -> None:
    """Print which pairs a cache would answer at some thresholds, without and with the check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pairs", help="file of labelled pairs")
    parser.add_argument("--model", required=True, help="an encoder that sentence-transformers loads")
    parser.add_argument("--threshold", type=float, nargs="+", default=THRESHOLDS, help="cosines that a hit must exceed")
    options = parser.parse_args()
    pairs = read_pairs(options.pairs)
    plain = score_pairs(SentenceTransformer(options.model).encode, pairs)
    refused = np.array([contradicts(first, second) for first, second, *_ in pairs])
    guarded = PairScores(np.where(refused, -1.0, plain.cosines), plain.same, plain.groups, plain.share)
    for name, scores in (("encoder", plain), ("encoder and check", guarded)):
        rows = [["threshold", "duplicates that hit", "near-misses that hit"]]
        for threshold in sorted({*options.threshold, scores.threshold}):
            hits = scores.cosines > threshold
            shares = (f"{hits[label].mean():.1%}" for label in (scores.same, ~scores.same))
            rows.append([f"{threshold:.3f}", *shares])
        print(f"{name}: {scores}", *aligned(rows), "", sep="\n")


if __name__ == "__main__":
    raise SystemExit(run_command(main))
