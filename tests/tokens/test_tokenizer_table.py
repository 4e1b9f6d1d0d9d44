"""The table of docs/tokenizers.md: each row on lines of Wikipedia, and the page as its tool writes it.

bench.parity.check_anchors compares all lines that the page counts; a test compares enough of them to notice a change.
"""

from __future__ import annotations

import gzip
import runpy
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import una_fast
from support.tokenizer_families import BY_TEXT, FAMILIES
from una_fast.errors import InputWarning

ROOT = Path(__file__).parents[2]
LINES = 500


@pytest.fixture(scope="module")
def lines(data_dir) -> list[str]:
    with gzip.open(data_dir / "corpora" / "wiki_large.txt.gz", "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in islice(file, LINES)]


@pytest.fixture(scope="module")
def index(lines):
    return una_fast.build_index(lines)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_sentences_and_negatives_of_wikipedia_are_the_tokenizers(family, lines, index):
    tokenizer = FAMILIES[family]()
    paper, kept = (una_fast.Augmenter(index, tokenizer=tokenizer, surface=surface) for surface in ("paper", "kept"))
    assert paper.tokens.by_word
    rows = np.arange(LINES)
    for found, texts in (
        (paper.tokens.anchor_ids(rows, 64), lines),
        (paper.negative_ids(rows, 1, 64), paper.negatives(rows, 1)),
        (kept.negative_ids(rows, 1, 40), kept.negatives(rows, 1)),
    ):
        expected = tokenizer(texts, truncation=True, padding="max_length", max_length=found["input_ids"].shape[1])
        for name, ids in found.items():
            different = np.flatnonzero((ids.numpy() != np.array(expected[name])).any(1))
            assert not len(different), (name, texts[different[0]])


@pytest.mark.parametrize("family", BY_TEXT)
def test_a_family_that_is_not_made_word_by_word_says_so(family):
    with pytest.warns(InputWarning, match="not made word by word"):
        assert not una_fast.TokenIds(una_fast.build_index(["a b c", "d e"]), BY_TEXT[family]()).by_word


def test_the_page_is_as_its_tool_writes_it():
    page = runpy.run_path(str(ROOT / "tools" / "make_tokenizer_table.py"))["page"]
    written = (ROOT / "docs" / "tokenizers.md").read_text(encoding="utf-8")
    assert written == page(), "write it again: python tools/make_tokenizer_table.py"
