"""Compare every kernel with a plain Python reference on millions of random rows; stop at the first difference.

UNA_FAST_CHECKS=1 pip install -e .        # bounds checks on
python -m bench.endurance.fuzz_kernels --rows 10000000 --processes 2
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from support import checks

ROWS_PER_CORPUS = 60


def random_rows(rng, n, n_terms, longest):
    lengths = rng.integers(0, longest + 1, n)
    skewed = (n_terms * rng.random(lengths.sum()) ** rng.uniform(1, 4)).astype(int)
    return [row.tolist() for row in np.split(skewed, np.cumsum(lengths)[:-1])]


def random_setting(rng):
    return {
        "beta": float(rng.choice([0.0, 0.1, 0.5, 0.8, 1.0])),
        "variant": str(rng.choice(["paper", "released"])),
        "select": str(rng.choice(["tfidf", "tfidf", "random"])),
        "replace": str(rng.choice(["tfidf", "tfidf", "random"])),
        "every": rng.choice([None, None, 2, 5]),
    }


def fuzz_corpus(seed: int) -> Counter:
    """Check all kernels on one random corpus, and return how many rows were checked, by name of the kernel."""
    rng = np.random.default_rng(seed)
    n_terms = int(rng.integers(2, 200))
    rows = [*random_rows(rng, ROWS_PER_CORPUS - 1, n_terms, int(rng.integers(1, 9))), [0, 1]]
    setting, radius = random_setting(rng), int(rng.integers(1, 60))
    checks.check_scores(rows)
    checks.check_probabilities(rows, setting)
    checks.check_negatives(rows, setting, radius, int(rng.integers(2**63)), int(rng.integers(5)))
    checks.check_relabel(rng.integers(0, 50, ROWS_PER_CORPUS).tolist(), rng.permutation(50).tolist())
    text = [[t if rng.random() < 0.7 else "abc"[t % 3] for t in row] for row in random_rows(rng, 20, 99, 6)]
    checks.check_unseen(rows, text, setting, radius)
    pieces = random_rows(rng, 30, 1000, 10)
    texts = random_rows(rng, ROWS_PER_CORPUS, 30, 9)
    left = bool(rng.integers(2))
    checks.check_token_writes(
        pieces, None if rng.random() < 0.5 else pieces[::-1], texts, int(rng.integers(3, 24)), left
    )
    dtype = (np.uint16, np.int32)[int(rng.integers(2))]
    checks.check_padded_rows(
        pieces, rng.integers(0, 30, ROWS_PER_CORPUS).tolist(), int(rng.integers(3, 24)), dtype, left
    )
    kernels = "document_statistics probability negatives relabel emit pad_rows"
    return Counter({**dict.fromkeys(kernels.split(), ROWS_PER_CORPUS), "unseen": len(text)})


def fuzz(seeds: range) -> Counter:
    return sum(map(fuzz_corpus, seeds), Counter())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="total number of rows over all kernels")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="parallel processes [one per core]")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first random corpus [0]")
    arguments = parser.parse_args()
    per_corpus = sum(fuzz_corpus(arguments.seed).values())
    n = -(-arguments.rows // per_corpus)
    parts = [range(arguments.seed + k, arguments.seed + min(k + 500, n)) for k in range(0, n, 500)]
    start, total = time.perf_counter(), Counter()
    with ProcessPoolExecutor(arguments.processes) as pool:
        for counted in pool.map(fuzz, parts):
            total += counted
            print(f"\r{sum(total.values()):,} rows, no difference", end="", flush=True)
    print(f" ({time.perf_counter() - start:.0f} s, seeds {arguments.seed} to {arguments.seed + n - 1})")
    for kernel, rows in sorted(total.items()):
        print(f"  {kernel:20} {rows:>12,}")


if __name__ == "__main__":
    main()
