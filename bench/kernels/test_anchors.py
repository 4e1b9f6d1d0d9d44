"""Token ids of the original sentences, all at once and in batches, compared with the fast tokenizer."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import una_fast
from bench import peers
from una_fast.tokens.ids import TokenIds

BIND, GATHER = "anchors: encode", "anchors: gather a batch"
BATCH, LARGE_BATCH = 4_096, 65_536
TOKENIZER_SENTENCES = 20_000


def test_bind(note, size: int, corpus: Path, tokenizer: Any) -> None:
    index = una_fast.build_index(corpus)  # not saved: a saved index would keep the token ids of the first round
    rounds = 3 if size < 1_000_000 else 1
    bound = note(BIND, size, "una_fast, terms included", size, lambda: TokenIds(index, tokenizer), rounds)
    assert len(bound.sentences) == size


def test_tokenizer(note, size: int, lines: list[str], tokenizer: Any) -> None:
    sample = lines[:TOKENIZER_SENTENCES]

    def encode() -> Any:
        return tokenizer(sample, add_special_tokens=False, return_attention_mask=False, return_token_type_ids=False)

    note(BIND, size, "fast tokenizer, one batch call", len(sample), encode)


@pytest.mark.parametrize(("batch", "n_jobs"), [(BATCH, 1), (LARGE_BATCH, 1), (LARGE_BATCH, 2)])
def test_anchor_ids(note, size: int, index: Any, tokenizer: Any, batch: int, n_jobs: int) -> None:
    tokens = TokenIds(index, tokenizer, n_jobs)
    rows = np.random.default_rng(0).integers(0, size, batch)
    out = tokens.anchor_ids(rows)
    label = f"una_fast, batches of {batch:,}, {n_jobs} thread{'s' * (n_jobs > 1)}"
    note(GATHER, size, label, batch, lambda: tokens.anchor_ids(rows, out=out), rounds=20)


def test_anchor_tokenizer(note, size: int, lines: list[str], tokenizer: Any) -> None:
    sample = [lines[row] for row in np.random.default_rng(0).integers(0, size, BATCH)]
    note(GATHER, size, "fast tokenizer, one batch call", BATCH, lambda: peers.tokenizer_batch(tokenizer, sample))
