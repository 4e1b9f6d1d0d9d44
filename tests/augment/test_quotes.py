"""surface="lower": quotation marks and opening marks are spelled as the sentence has them."""

from __future__ import annotations

import gzip
import itertools
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import una_fast
from support.alphabet import text
from support.tokenizer_families import bert_uncased, roberta, training_lines
from una_fast.augment.row_draws import DrawSet
from una_fast.augment.surface import QUOTES, runs_together, word_spans

QUOTED = [
    '"Staying in Love" is a song by "Raphael" .',
    "''Two single ones'' and ``two backquotes'' and \"one\".",
    "``Only`` backquotes",
    "¿Cuánto cuesta esto?",
    "¡Qué casa tan grande!",
    "Dijo: ¿por qué no? ¿ ?",
    "''",
    '"',
]
LINES = [*training_lines()[:200], *QUOTED]


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(LINES)


@pytest.fixture(scope="module")
def augmenters(index):
    return {
        surface: una_fast.Augmenter(index, radius=20, surface=surface, tokenizer=bert_uncased())
        for surface in ("lower", "paper")
    }


def written(sentence, words):
    """The words as the sentence has them; only quotation marks may differ from NLTK's words."""
    place, found = 0, []
    for word in words:
        forms = QUOTES.get(word, (word,))
        place, form = min(
            (sentence.lower().find(form, place), form) for form in forms if form in sentence.lower()[place:]
        )
        found.append(form)
        place += len(form)
    return found


@settings(max_examples=300)
@given(sentence=text | st.sampled_from(LINES), epoch=st.integers(0, 3))
def test_only_marks_differ_from_the_words_of_the_paper(index, augmenters, sentence, epoch):
    lower, paper = (augmenters[surface].explain(sentence, epoch) for surface in ("lower", "paper"))
    assert lower.words == paper.words
    words = paper.negative.split(" ") if paper.words else []
    originals = written(sentence, [word.word for word in lower.words])
    spans = word_spans(sentence, [word.word for word in lower.words], True)
    expected, end, stays_before = "", -1, False
    for (start, stop), word, told, original in zip(spans, words, lower.words, originals, strict=True):
        mark = original[: len(original) - len(original.lstrip("¿¡"))] if original.strip("¿¡") else ""
        stays = told.replacement is None
        new = original if stays else '"' if word in QUOTES else mark + (word.lstrip("¿¡") or word)
        one = start == end and stays and stays_before and runs_together(expected[-1], new)  # "can't" is "ca" and "n't"
        expected += new if one or not expected else f" {new}"
        end, stays_before = stop, stays
    assert lower.negative == expected


def test_what_stays_is_spelled_as_it_is_written():
    index = una_fast.build_index(QUOTED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        una = una_fast.Augmenter(index, beta=0.0, radius=3, keep_punctuation=True)
    for row, sentence in enumerate(QUOTED):
        told = una.explain(sentence)
        replaced = [word.replacement for word in told.words]
        expected = written(sentence, index.words(row))
        (negative,) = una.augment([sentence])
        for new, original, replacement in zip(negative.split(), expected, replaced, strict=True):
            assert new == original or replacement
            assert new[0] == original[0] or original[0] not in '"`¿¡'
    assert not {*QUOTES} & {*" ".join(una.negatives([0, 3, 4, 5])).split()}


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_the_paper_and_its_code_have_nltks_marks(index, variant):
    una = una_fast.Augmenter(index, radius=20, variant=variant, surface="paper")
    drawn = una._draw_rows(np.arange(len(LINES)), una_fast.augment.row_draws.DrawSet())
    expected = [" ".join(index.terms[i] for i in drawn[row]) for row in range(len(LINES))]
    assert una.negatives(range(len(LINES))) == expected
    if variant == "released":
        assert una_fast.Augmenter(index, radius=20, variant=variant).negatives(range(len(LINES))) == expected


@pytest.mark.parametrize("make_tokenizer", [bert_uncased, roberta])
def test_ids_are_the_tokenizers_on_the_text(index, make_tokenizer):
    tokenizer, rows = make_tokenizer(), list(range(len(LINES)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        una = una_fast.Augmenter(index, tokenizer=tokenizer)
    for epoch in range(3):
        texts = una.negatives(rows, epoch)
        expected = tokenizer(texts, truncation=True, padding="max_length", max_length=24, return_tensors="pt")
        assert torch.equal(una.negative_ids(rows, epoch, 24)["input_ids"], expected["input_ids"])


JOINED = [
    "I don't know what you can't do, and cannot say.",
    "can not do n't",
    "I'm gonna go; gimme that!",
    "¿Cuánto no? ¡Qué bien! ¿y tú?",
    "He said: ``always'' \"maybe\".",
]
BY_TEXT = ["¿can't we", "He ''never said''"]  # an opening mark before two words in one; '' that opens


@pytest.mark.parametrize(("make_tokenizer", "some_left"), [(bert_uncased, False), (roberta, True)])
def test_words_that_a_sentence_spells_otherwise(make_tokenizer, some_left, monkeypatch):
    lines = [*JOINED, *BY_TEXT] * 3
    index, rows, tokenizer = una_fast.build_index(lines), np.arange(3 * len(JOINED + BY_TEXT)), make_tokenizer()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        una = una_fast.Augmenter(index, radius=3, beta=0.3, tokenizer=tokenizer)
        as_drawn = una_fast.Augmenter(index, radius=3, beta=0.3, surface="paper")
    to_the_tokenizer = set()
    write_texts = una.tokens.write_texts
    monkeypatch.setattr(
        una.tokens, "write_texts", lambda texts, at, out: (to_the_tokenizer.update(at), write_texts(texts, at, out))
    )
    whole = set()
    for epoch in range(20):
        drawn = as_drawn._draw_rows(rows, DrawSet(epoch, 0))
        texts = una.negatives(rows, epoch)
        assert texts == [una._speller.row(row, drawn[row]) for row in rows]
        whole |= {word for text in texts for word in text.split()}
        expected = tokenizer(texts, truncation=True, padding="max_length", max_length=32, return_tensors="pt")
        assert torch.equal(una.negative_ids(rows, epoch)["input_ids"], expected["input_ids"])
    assert whole >= {"n't", "cannot", "can", "gonna", "gon", "gimme", "¿cuánto"}  # as one word and in parts
    by_text = {row for row in rows.tolist() if lines[row] in BY_TEXT}
    assert by_text == {*una._speller._by_text.tolist()}
    assert to_the_tokenizer >= by_text and (to_the_tokenizer > by_text) == some_left


def check_unreplaced(lines):
    """With nothing replaced the ids of "lower" are the anchor's."""
    index, tokenizer = una_fast.build_index(lines), bert_uncased()
    una = una_fast.Augmenter(index, beta=0.0, select="random", tokenizer=tokenizer)
    rows = np.arange(len(lines))
    ids, anchors = una.negative_ids(rows, 0, 128), una.tokens.anchor_ids(rows, 128)
    assert [lines[i] for i in np.flatnonzero((ids["input_ids"] != anchors["input_ids"]).any(1).numpy())] == []


def wiki(n):
    path = Path(os.environ.get("UNA_FAST_DATA", "")) / "corpora" / "wiki_large.txt.gz"
    if not path.is_file():
        pytest.skip("needs corpora/wiki_large.txt.gz in UNA_FAST_DATA")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in itertools.islice(file, n)]


def test_with_nothing_replaced_the_ids_are_the_anchors():
    check_unreplaced([*training_lines()[:2000], *QUOTED, "I can't, cannot, don't, isn't gonna; 'tis 'twas lemme Wanna"])


@pytest.mark.slow
def test_with_nothing_replaced_the_ids_are_the_anchors_on_many_lines():
    check_unreplaced(wiki(100_000))


def test_a_cased_tokenizer_is_told_to_keep_the_surface(index):
    with pytest.warns(una_fast.InputWarning, match='it tells capital letters from small ones.*give surface="kept"'):
        una_fast.Augmenter(index, tokenizer=roberta())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        una_fast.Augmenter(index, tokenizer=bert_uncased())
        una_fast.Augmenter(index, tokenizer=roberta(), surface="kept")
        una_fast.Augmenter(index, tokenizer=roberta(), surface="paper")
