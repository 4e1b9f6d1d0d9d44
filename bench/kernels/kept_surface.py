"""Measure the time of negatives with `surface="kept"` for every family of tokenizers.

    python -m bench.kernels.kept_surface data/corpora/wiki_large.txt.gz [FAMILY ...]

Prints a table: processor time of one thread per negative of 32 tokens, for 4,000 sentences with punctuation kept. "The
same draws again" is the best of 12 calls, "new draws" the median of 8 epochs; `surface="paper"` is measured in the same
process. The families are those of the tests, with small vocabularies. Takes two minutes on one core.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import numpy as np

import una_fast
from bench import script
from bench.report import table
from una_fast.augment.counter_rng import SampleKey

script.import_tests()
from support.tokenizer_families import FAMILIES  # noqa: E402

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


def compare(corpus: Path, families: list[str]) -> None:
    index, rows = una_fast.build_index(script.read_lines(corpus, SENTENCES)), []
    for family in families or FAMILIES:
        again, new, paper, left = measure(index, family)
        cells = [f"{again:.1f} µs", f"{new:.1f} µs", f"{paper:.2f} µs", f"{left:.2%}"]
        rows.append([FAMILIES[family].models, *cells])
    columns = ["the same draws again", "new draws", '"paper"', "rows through the tokenizer"]
    print(table(["tokenizer of the tests", *columns], rows))


if __name__ == "__main__":
    families = {"flag": "families", "nargs": "*", "metavar": "FAMILY", "help": "families of tokenizers [all]"}
    sys.exit(script.run(__doc__, compare, corpus=script.CORPUS, families=families))
