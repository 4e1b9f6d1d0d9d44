"""A lexical check for a cache of answers: an encoder puts negations, numbers and opposites near, and a list finds them.

    python examples/cache_guard.py pairs.tsv --model NAME_OR_FOLDER --threshold 0.9

`pairs.tsv` has labelled pairs as `una-fast probe --pairs` reads them. docs/near-misses.md has the figures of our sets.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from sentence_transformers import SentenceTransformer

from una_fast.augment.edits import Sentence
from una_fast.augment.word_lists import read_word_lists
from una_fast.pair_scores import PairScores, read_pairs, score_pairs

LISTS = read_word_lists()
NEGATIONS = {*LISTS.affirmed, *(phrase[0] for phrase in LISTS.negations), "never", "without"}


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
    """Score the encoder on the pairs, without and with the check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pairs", help="file of labelled pairs")
    parser.add_argument("--model", required=True, help="an encoder that sentence-transformers loads")
    parser.add_argument(
        "--threshold", type=float, help="cosine above which the cache answers; default: that of 5%% false positives"
    )
    options = parser.parse_args()
    pairs = read_pairs(options.pairs)
    plain = score_pairs(SentenceTransformer(options.model).encode, pairs)
    refused = np.array([contradicts(first, second) for first, second, *_ in pairs])
    guarded = PairScores(np.where(refused, -1.0, plain.cosines), plain.same, plain.groups, plain.share)
    for name, scores in (("encoder", plain), ("encoder and check", guarded)):
        threshold = scores.threshold if options.threshold is None else options.threshold
        hits = scores.cosines > threshold
        of = {"paraphrases": scores.same, "near-misses": ~scores.same}
        print(
            f"{name}: AUC {scores.auc:.1%}, answered above {threshold:.3f}:",
            *(f"{hits[rows].mean():.1%} of {n}" for n, rows in of.items()),
        )


if __name__ == "__main__":
    main()
