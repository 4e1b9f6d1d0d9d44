"""Negatives of five languages, made as docs/languages.md says and shows."""

import runpy
from pathlib import Path

import pytest

import una_fast
from una_fast.corpus.word_tokenizers import SEGMENTERS
from una_fast.text_table import aligned

ROOT = Path(__file__).parents[2]
EXAMPLE = runpy.run_path(str(ROOT / "examples" / "languages.py"))
PAGE = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
WORDS = {  # a word of the language's first sentence, and where a word tokenizer for English would not end it
    "German": "bibliothekarin",
    "Japanese": "手紙",
    "Chinese": "管理员",
    "Thai": "จดหมาย",
    "Arabic": "الظهر",
}


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.filterwarnings("ignore::una_fast.errors.InputWarning")
def test_a_language_has_negatives_as_the_page_shows_them(language: str) -> None:
    options, between, parts = EXAMPLE["LANGUAGES"][language]
    if options["word_tokenizer"] in SEGMENTERS:
        pytest.importorskip(options["word_tokenizer"])
    index = una_fast.build_index([between.join(part) for part in zip(*parts, strict=False)], **options)
    assert WORDS[language] in index.terms
    negatives = EXAMPLE["negatives"](language)
    assert len(negatives) == 3
    for sentence, negative in negatives:
        assert sentence != negative
        assert negative.count(" ") == sentence.count(" ")
        assert f"{sentence}\n  {negative}\n" in PAGE


def test_a_table_on_the_screen_counts_columns_not_characters() -> None:
    assert aligned([["辞書", "1"], ["ab", "22"], ["ริมแม่", "3"]], left=[0]) == ["辞書   1", "ab    22", "ริมแม่   3"]
