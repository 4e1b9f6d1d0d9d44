"""Random swap and deletion of rows of an index, as text and as ids, compared with nlpaug."""

from typing import Any

import numpy as np
import pytest

import una_fast
from bench import peers

BATCH = 4_096
NLPAUG_SENTENCES = 200


@pytest.mark.parametrize("operation", ["swap", "delete"])
def test_una_fast(note, size: int, index: Any, operation: str) -> None:
    eda = una_fast.EDA(index, operation, n_jobs=1)
    rows = np.random.default_rng(0).integers(0, size, BATCH)
    texts = note(f"random {operation}", size, "una_fast, text", BATCH, lambda: eda.texts(rows), rounds=5)
    assert len(texts) == BATCH


@pytest.mark.parametrize("operation", ["swap", "delete"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ids(note, size: int, index: Any, tokenizer: Any, operation: str, n_jobs: int) -> None:
    eda = una_fast.EDA(index, operation, tokenizer=tokenizer, n_jobs=n_jobs)
    rows = np.random.default_rng(0).integers(0, size, BATCH)
    out, label = eda.token_ids(rows), f"una_fast, token ids, {n_jobs} thread{'s' * (n_jobs > 1)}"
    note(f"random {operation}", size, label, BATCH, lambda: eda.token_ids(rows, out=out), rounds=20)


@pytest.mark.parametrize("operation", ["swap", "delete"])
def test_nlpaug(note, size: int, lines: list[str], operation: str) -> None:
    augment = peers.nlpaug_random(operation)
    if augment is None:
        pytest.skip("nlpaug is not installed: pip install 'una_fast[peers]'")
    sample = lines[:NLPAUG_SENTENCES]
    note(f"random {operation}", size, "nlpaug RandomWordAug", len(sample), lambda: augment(sample))
