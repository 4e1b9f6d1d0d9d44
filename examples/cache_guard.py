"""Reject wrong hits of an answer cache with word lists.

    python examples/cache_guard.py pairs.tsv --model NAME_OR_FOLDER [--threshold 0.9 0.95]

Encoders give two texts nearly the same embedding if they differ only in a negation, a number or an opposite.
`una_fast.contradicts` detects such pairs. `pairs.tsv` contains labelled pairs, in the format of
`una-fast probe --pairs`. docs/near-misses.md has our results.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from sentence_transformers import SentenceTransformer

from una_fast import contradicts
from una_fast.command import run_command
from una_fast.pair_scores import read_pairs, score_pairs
from una_fast.text_table import aligned

ALLOWED = (0.05, 0.1, 0.2)  # shares of near-misses that may hit


def main() -> None:
    """Print the shares of duplicates and of near-misses that hit the cache, without and with the check.

    A threshold that allows a share of near-misses is chosen on one half of the pairs and applied to the other half.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pairs", help="file of labelled pairs")
    parser.add_argument("--model", required=True, help="an encoder that sentence-transformers loads")
    parser.add_argument("--threshold", type=float, nargs="+", default=(), help="cosines that a hit must exceed")
    options = parser.parse_args()
    pairs = read_pairs(options.pairs)
    plain = score_pairs(SentenceTransformer(options.model).encode, pairs)
    refused = np.array([contradicts(first, second) for first, second, *_ in pairs])
    guarded = replace(plain, cosines=np.where(refused, -1.0, plain.cosines))
    for name, scores in (("encoder", plain), ("encoder and check", guarded)):
        hits = {f"{share:.0%} of near-misses allowed": scores.held_out_hits(share) for share in ALLOWED}
        hits |= {f"threshold {threshold}": scores.cosines > threshold for threshold in options.threshold}
        rows = [["", "duplicates that hit", "near-misses that hit"]]
        for rule, is_hit in hits.items():
            rows.append([rule, f"{is_hit[scores.same].mean():.1%}", f"{is_hit[~scores.same].mean():.1%}"])
        print(f"{name}: {scores}", *aligned(rows, left=(0,)), "", sep="\n")


if __name__ == "__main__":
    raise SystemExit(run_command(main))
