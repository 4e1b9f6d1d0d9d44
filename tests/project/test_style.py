"""The table of how well negatives are hidden: what it measures, and that its page shows its result."""

import json
from pathlib import Path

import pytest

from bench import style
from support.tokenizer_families import training_lines

ROOT = Path(__file__).parents[2]
LINES = [line for line in training_lines()[:400] if line.strip()]


@pytest.mark.parametrize("name", style.FEATURES)
def test_texts_of_one_kind_cannot_be_told_and_marked_ones_can(name):
    shifted = LINES[1:] + LINES[:1]
    assert style.accuracy(style.FEATURES[name](), LINES, shifted) < 0.6
    assert style.accuracy(style.FEATURES[name](), LINES, [f"{line} ~ ^ ~ ^" for line in LINES]) > 0.95


def test_a_language_model_is_a_distribution_and_prefers_its_texts():
    model = style.LanguageModel(["a b", "a c", "a b"])
    words = ["a", "b", "c", "</s>", "unseen"]
    for first in ("<s>", "a", "b", "unseen"):
        assert sum(model._probability(first, word) for word in words) == pytest.approx(1)
    assert model.perplexity(["a b"]) < model.perplexity(["b a"]) < model.perplexity(["x y"])


def test_the_page_shows_the_result():
    result = json.loads((ROOT / style.RESULT).read_text(encoding="utf-8"))
    assert list(result["rows"]) == list(style.SETTINGS)
    assert (ROOT / style.PAGE).read_text(encoding="utf-8") == style.page(result)
