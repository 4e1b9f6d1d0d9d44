"""Measure the time of negatives with `surface="kept"` for every family of tokenizers.

    python -m bench.kernels.kept_surface data/corpora/wiki_large.txt.gz [FAMILY ...]

Prints a table: processor time of one thread per negative of 32 tokens, for 4,000 sentences with punctuation kept. "The
same draws again" is the best of 12 calls, "new draws" the median of 8 epochs; `surface="paper"` is measured in the same
process. The families are those of the tests, with small vocabularies. Takes two minutes on one core.
"""

from __future__ import annotations

import gzip
import itertools
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import una_fast
from una_fast.augment.counter_rng import SampleKey

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from support.tokenizer_families import FAMILIES

SENTENCES, AGAIN, EPOCHS = 4_000, 12, 8


def measure(index: una_fast.Index, family: str) -> tuple[float, float, float, float]:
    """Return microseconds per negative for the same draws, for new draws and for `surface="paper"`.

    The fourth value is the share of the rows that only the tokenizer can encode. family: a key of FAMILIES.
    """
    settings = {"tokenizer": FAMILIES[family](), "keep_punctuation": True, "n_jobs": 1}
    una, paper = (una_fast.Augmenter(index, surface=surface, **settings) for surface in ("kept", "paper"))
    rows, out = np.arange(index.n_documents), una.token_ids(range(index.n_documents))

    def cost(epoch: int, maker: una_fast.Augmenter = una) -> float:
        start = time.process_time()
        maker.token_ids(rows, epoch, out=out)
        return (time.process_time() - start) / len(rows) * 1e6

    again, as_words = min(cost(0) for _ in range(AGAIN)), min(cost(0, paper) for _ in range(AGAIN))
    assert una._write_ids  # an augmenter with a tokenizer has it
    left = una._write_ids(rows, SampleKey(), out["input_ids"].numpy(), out["attention_mask"].numpy())
    return again, statistics.median(cost(epoch) for epoch in range(1, EPOCHS + 1)), as_words, left.mean()


def main() -> None:
    with gzip.open(sys.argv[1], "rt", encoding="utf-8") as file:
        index = una_fast.build_index([line.rstrip("\n") for line in itertools.islice(file, SENTENCES)])
    print(
        '| tokenizer of the tests | the same draws again | new draws | "paper" | rows through the tokenizer |',
        "|:--|--:|--:|--:|--:|",
        sep="\n",
    )
    for family in sys.argv[2:] or FAMILIES:
        again, new, paper, left = measure(index, family)
        print(
            f"| {FAMILIES[family].models} | {again:.1f} µs | {new:.1f} µs | {paper:.2f} µs | {left:.2%} |", flush=True
        )


if __name__ == "__main__":
    main()
