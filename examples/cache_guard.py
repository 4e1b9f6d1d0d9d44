"""Check the hits of an answer cache with word lists, because encoders embed negations, numbers and opposites nearby.

    python examples/cache_guard.py pairs.tsv --model NAME_OR_FOLDER [--threshold 0.9]

`pairs.tsv` contains labelled pairs, in the format of `una-fast probe --pairs`. docs/near-misses.md has our results.
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
    """Return whether two texts that share half of their words contradict each other.

    They do if their numbers differ, or if the number of opposites and negations is odd.
    """
    sides = [Sentence(text).words for text in (first, second)]
    a, b = map(set, sides)
    if 2 * len(a & b) < max(len(a), len(b)):
        return False  # for texts with mostly different words, rely on the cosine
    negations = sum(word in NEGATIONS for words in sides for word in words)
    opposites = sum(not (b - a).isdisjoint(LISTS.opposites.get(word, ())) for word in a - b)
    return (negations + opposites) % 2 > 0 or numbers(sides[0]) != numbers(sides[1])


def numbers(words: Sequence[str]) -> set[str]:
    """Return the numbers among words, in digits or as words such as "three", and months, days and units."""
    return {
        word for i, word in enumerate(words) if word[0].isdecimal() or (word in LISTS.classes and LISTS.allow(words, i))
    }


def main() -> None:
    """Print the share of pairs that hit the cache at each threshold, without and with the check."""
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
