"""surface="kept": the sentence as it is written, except for the replaced words."""

from __future__ import annotations

import re
import warnings
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import una_fast
from support.alphabet import nasty_text, text
from support.tokenizer_families import FAMILIES, bert_cased, bert_uncased, roberta, training_lines
from una_fast import InputError
from una_fast.augment.row_draws import DrawSet
from una_fast.augment.surface import QUOTES, runs_together, take_case, word_spans
from una_fast.corpus.word_tokenizers import word_tokenizer

LINES = training_lines()[:200]


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index([*LINES, 'He said "Don\'t  STOP!" (twice) ,', "İstanbul Σας"])


@settings(max_examples=500)
@given(text=text | nasty_text)
@pytest.mark.parametrize("named", ["treebank", "whitespace"])
@pytest.mark.parametrize("lowercase", [True, False])
def test_the_words_and_the_white_space_between_are_the_whole_text(named, lowercase, text):
    words = word_tokenizer(named, lowercase).words(text)
    spans, end = word_spans(text, words, lowercase), 0
    for (start, stop), word in zip(spans, words, strict=True):
        assert end <= start and not text[end:start].strip(), "something is between two words"
        written = text[start:stop].lower() if lowercase else text[start:stop]
        assert written.replace("ς", "σ") == word.replace("ς", "σ") or text[start:stop] in QUOTES[word]
        end = stop
    assert not text[end:].strip()


@settings(max_examples=300)
@given(sentences=st.lists(text | st.sampled_from(LINES), min_size=1, max_size=4), epoch=st.integers(0, 2))
def test_the_words_that_change_are_those_of_the_lower_surface(index, sentences, epoch):
    lower, kept = (una_fast.Augmenter(index, surface=surface) for surface in ("paper", "kept"))
    for sentence, plain, result in zip(
        sentences, lower.augment(sentences, epoch), kept.augment(sentences, epoch), strict=True
    ):
        told = kept.explain(sentence, epoch)
        assert told.negative == result and " ".join(w.replacement or w.word for w in told.words) == plain
        spans = word_spans(sentence, [w.word for w in told.words], True)
        expected, end, new_before = "", 0, False
        for (start, stop), word in zip(spans, told.words, strict=True):
            old, between = sentence[start:stop], sentence[end:start]
            written = old
            if word.replacement:
                mark = re.match("[¿¡]*", old).group() if old.strip("¿¡") else ""
                new = '"' if word.replacement in QUOTES else re.sub("^[¿¡]+(?=[^¿¡])", "", word.replacement)
                written = mark + take_case(new, old)
            if (word.replacement or new_before) and not between and runs_together(expected[-1:], written):
                between = " "
            expected, end, new_before = expected + between + written, stop, bool(word.replacement)
        assert result == (expected + sentence[end:] if told.words else "")


@pytest.mark.parametrize("make_tokenizer", [bert_uncased, bert_cased, roberta])
def test_ids_are_the_tokenizers_on_the_text(index, make_tokenizer):
    tokenizer = make_tokenizer()
    una = una_fast.Augmenter(index, tokenizer=tokenizer, surface="kept", radius=50)
    rows = list(range(index.n_documents))
    for length in (8, 40):
        texts = una.negatives(rows, 1)
        expected = tokenizer(texts, truncation=True, padding="max_length", max_length=length, return_tensors="pt")
        found = una.negative_ids(rows, 1, length)
        assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_rows_and_text_keep_their_surface(index):
    una = una_fast.Augmenter(index, surface="kept", beta=0.0)
    for row, negative in enumerate(una.negatives(range(index.n_documents))):
        if index.words(row):
            found = iter(re.findall(r"\s+", negative))  # a space more where words would run together
            assert all(space in found for space in re.findall(r"\s+", index.sentence(row)))
    row = index.n_documents - 2
    probabilities = una.replacement_probabilities(index.sentence(row))[1]
    spans = word_spans(index.sentence(row), index.words(row), True)
    for (start, stop), p in zip(spans, probabilities, strict=True):
        assert p or index.sentence(row)[start:stop] in una.negatives([row])[0]


@pytest.mark.parametrize(
    ("word", "model", "expected"),
    [
        ("dog", "cat", "dog"),
        ("dog", "Cat", "Dog"),
        ("dog", "CAT", "DOG"),
        ("dog", "I", "Dog"),
        ("dog", "iPod", "dog"),
        ("Dog", "cat", "dog"),
        ("dog", "42", "dog"),
        ("o'neill", "Smith", "O'neill"),
        ("dog", "O'Neill", "dog"),
        ("ß", "CAT", "SS"),
        ("'s", "Cat", "'s"),
    ],
)
def test_a_new_word_takes_the_case_of_the_old_one(word, model, expected):
    assert take_case(word, model) == expected


def test_a_word_tokenizer_that_rewrites_words_is_refused_with_its_word():
    index = una_fast.build_index(["some words here", "other words there"], word_tokenizer=spell_backwards)
    with pytest.raises(InputError, match="surface=\"kept\": the word tokenizer made 'emos' of 'some words here'"):
        una_fast.Augmenter(index, surface="kept").negatives([0])
    with pytest.raises(InputError, match="surface='x': must be 'lower' or 'kept'"):
        una_fast.Augmenter(index, surface="x")


made = cache(lambda family: FAMILIES[family]())


def spell_backwards(sentence):
    return [word[::-1] for word in sentence.split()]


@pytest.mark.parametrize("surface", ["lower", "kept"])
@pytest.mark.parametrize("keep_punctuation", [False, True])
def test_no_replacement_glues_to_its_neighbour(index, surface, keep_punctuation):
    una = una_fast.Augmenter(index, surface=surface, keep_punctuation=keep_punctuation)
    for row, negative in enumerate(una.negatives(range(index.n_documents))):
        told = una.explain(index.sentence(row))
        written = " ".join((word.replacement or word.word) for word in told.words)
        known = {*re.findall(r"\w+", f"{written} {index.sentence(row)}".lower())}
        found = una.augment([index.sentence(row)])[0].lower()
        assert {*re.findall(r"\w+", found)} <= known, (negative, found)


@pytest.mark.parametrize("surface", ["kept", "lower"])
@pytest.mark.parametrize("settings", [{}, {"lowercase": False}, {"word_tokenizer": "whitespace"}])
def test_the_kernels_texts_are_those_written_one_by_one(settings, surface):
    lines = [
        *LINES,
        *SPECIAL,
        'He said "Don\'t  STOP!" (twice) ,',
        "\u0130stanbul Σας",
        "a\tb c",
        " lead",
        "",
        "caf\u00e9, ΣΑΣ!",
        "¿Cuánto? ¡¡Qué!! ¿ ? ÑANDÚ ǅ ǅa ǆ ªb \U00010400b 🙂ok",
    ]
    index = una_fast.build_index(lines, **settings)
    una = una_fast.Augmenter(index, surface=surface, radius=500)
    as_drawn = una_fast.Augmenter(index, surface="paper", radius=500)
    by_kernel = 0
    for epoch in range(3):
        drawn = as_drawn._draw_rows(np.arange(len(lines)), DrawSet(epoch, 0))
        texts = una.negatives(range(len(lines)), epoch)
        assert texts == [una._speller.row(row, drawn[row]) for row in range(len(lines))]
        if surface == "kept":
            by_kernel += sum(text is not None for text in una._speller._written.texts(np.arange(len(lines)), drawn))
        else:
            by_kernel += len(lines) - len(una._speller._by_text)
    assert by_kernel > 2 * len(lines)


def test_few_rows_are_left_for_the_tokenizer():
    """They take 100 us each, the others 1 us."""
    words = sorted({word for line in LINES for word in line.lower().split() if word.isalpha()})
    groups = [words[i : i + 5] for i in range(0, len(words) - 5, 5)]
    lines = ["The {}, a {} of {}, was seen ({} and {}).".format(*group) for group in groups]
    una = una_fast.Augmenter(
        una_fast.build_index(lines), tokenizer=roberta(), surface="kept", keep_punctuation=True, radius=10
    )
    rows, batch = np.arange(len(lines)), una.negative_ids(range(len(lines)))
    drawn = una._draw_rows(rows, DrawSet(0, 0))
    left = una._speller.fill(rows, drawn, batch["input_ids"].numpy(), batch["attention_mask"].numpy())
    assert len(left) < len(lines) / 20


def test_an_added_token_that_a_negative_happens_to_spell_is_one():
    """As "mask" in the place of "HELLO" makes "[MASK]", of which the tokenizer makes another id than of its words."""
    index = una_fast.build_index(["the [HELLO] was seen", "the mask was seen", "x [NO] y"] * 3)
    tokenizer = bert_uncased()
    una = una_fast.Augmenter(index, tokenizer=tokenizer, surface="kept", radius=50)
    rows, spelled = range(index.n_documents), 0
    for epoch in range(20):
        texts = una.negatives(rows, epoch)
        spelled += sum("[MASK]" in text for text in texts)
        expected = tokenizer(texts, truncation=True, padding="max_length", max_length=16, return_tensors="pt")
        assert torch.equal(una.negative_ids(rows, epoch, 16)["input_ids"], expected["input_ids"])
    assert spelled


def test_opening_marks_stay_with_their_word():
    index = una_fast.build_index(["¿Cuánto cuesta?", "¡Qué casa!", "¿ ?", "la casa"] * 3)
    una = una_fast.Augmenter(index, surface="kept", keep_punctuation=True)
    for epoch in range(20):
        first, second, marks, last = una.negatives(range(4), epoch)
        assert re.fullmatch("¿[^¿¡]+ [^¿¡]+\\?", first) and re.fullmatch("¡[^¿¡]+ [^¿¡]+!", second)
        assert marks == "¿ ?" and not {*"¿¡"} & {*last}
        assert first[1].isupper()


SPECIAL = [
    "[MASK] of [NASA] (mask) sep",
    "ß ΣΑΣ İ €5 5€ №1 a\u0301b",
    'can\'t cannot "gonna" x',
    "song,by«him»",
    "''a'' ``b``",
]


@pytest.mark.parametrize(
    "family", ["bert_uncased", "roberta", *(pytest.param(one, marks=pytest.mark.slow) for one in ("llama3", "gemma"))]
)
@settings(max_examples=8, deadline=None)
@given(
    sentences=st.lists(text | st.sampled_from([*LINES, *SPECIAL]), min_size=3, max_size=12),
    keep=st.booleans(),
    epoch=st.integers(0, 9),
)
def test_the_kernels_ids_are_the_tokenizers(family, sentences, keep, epoch):
    tokenizer = made(family)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        index = una_fast.build_index([*sentences, *SPECIAL])
        una = una_fast.Augmenter(index, radius=50, tokenizer=tokenizer, surface="kept", keep_punctuation=keep)
    rows = list(range(index.n_documents))
    texts = una.negatives(rows, epoch)
    expected = tokenizer(texts, truncation=True, padding="max_length", max_length=40, return_tensors="pt")
    found = una.negative_ids(rows, epoch, 40)["input_ids"]
    assert [texts[row] for row in rows if not torch.equal(found[row], expected["input_ids"][row])] == []
