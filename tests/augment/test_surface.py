"""The surfaces: "kept", the sentence as it is written except for the replaced words, and "paper", NLTK's words."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import una_fast
from support.alphabet import nasty_text, text
from support.tokenizer_families import bert_cased, bert_uncased, roberta, training_lines
from una_fast import InputError
from una_fast.augment.row_draws import DrawSet
from una_fast.augment.surface import CASES, QUOTES, case_of, in_case, runs_together, word_spans
from una_fast.corpus.word_tokenizers import word_tokenizer

LINES = training_lines()[:200]
ODD = [
    'He said "Don\'t  STOP!" (twice) ,',
    "\u0130stanbul Σας",
    "a\tb c",
    " lead",
    "",
    "caf\u00e9, ΣΑΣ!",
    "¿Cuánto? ¡¡Qué!! ¿ ? ÑANDÚ ǅ ǅa ǆ ªb \U00010400b 🙂ok",
    "[MASK] of [NASA] (mask) sep",
    "ß ΣΑΣ İ €5 5€ №1 a\u0301b",
    'can\'t cannot "gonna" x',
    "song,by«him»",
    "''a'' ``b``",
    "可以修改删去地址吗? ทดสอบ",
]


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index([*LINES, *ODD])


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
@given(sentences=st.lists(text | st.sampled_from([*LINES, *ODD]), min_size=1, max_size=4), epoch=st.integers(0, 2))
def test_the_words_that_change_are_those_of_the_papers_surface(index, sentences, epoch):
    paper, kept = (una_fast.Augmenter(index, surface=surface, same_script=False) for surface in ("paper", "kept"))
    for sentence, plain, result in zip(
        sentences, paper.augment(sentences, epoch), kept.augment(sentences, epoch), strict=True
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
                written = mark + in_case(new, CASES[case_of(old)])
            if (word.replacement or new_before) and not between and runs_together(expected[-1:], written):
                between = " "
            expected, end, new_before = expected + between + written, stop, bool(word.replacement)
        assert result == (expected + sentence[end:] if told.words else "")


@pytest.mark.parametrize("make_tokenizer", [bert_uncased, bert_cased, roberta])
def test_ids_are_the_tokenizers_on_the_text(index, make_tokenizer):
    tokenizer, rows = make_tokenizer(), list(range(index.n_documents))
    for surface in ("kept", "paper"):
        una = una_fast.Augmenter(index, tokenizer=tokenizer, surface=surface, radius=50)
        for length in (8, 40):
            texts = una.negatives(rows, 1)
            expected = tokenizer(texts, truncation=True, padding="max_length", max_length=length, return_tensors="pt")
            found = una.negative_ids(rows, 1, length)
            assert all(torch.equal(found[name], expected[name]) for name in expected)


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
    assert in_case(word, CASES[case_of(model)]) == expected


def test_a_word_tokenizer_that_rewrites_words_is_refused_with_its_word():
    index = una_fast.build_index(["some words here", "other words there"], word_tokenizer=spell_backwards)
    with pytest.raises(InputError, match="surface=\"kept\": the word tokenizer made 'emos' of 'some words here'"):
        una_fast.Augmenter(index).negatives([0])
    with pytest.raises(InputError, match="surface='x': must be 'kept' or 'paper'"):
        una_fast.Augmenter(index, surface="x")


def spell_backwards(sentence):
    return [word[::-1] for word in sentence.split()]


@pytest.mark.parametrize("keep_punctuation", [False, True])
def test_no_replacement_glues_to_its_neighbour(index, keep_punctuation):
    una = una_fast.Augmenter(index, keep_punctuation=keep_punctuation)
    for row, negative in enumerate(una.negatives(range(len(LINES)))):
        told = una.explain(index.sentence(row))
        written = " ".join((word.replacement or word.word) for word in told.words)
        known = {*re.findall(r"\w+", f"{written} {index.sentence(row)}".lower())}
        found = una.augment([index.sentence(row)])[0].lower()
        assert {*re.findall(r"\w+", found)} <= known, (negative, found)


@pytest.mark.parametrize("settings", [{}, {"lowercase": False}, {"word_tokenizer": "whitespace"}])
def test_the_kernels_texts_are_those_written_one_by_one(settings):
    lines = [*LINES, *ODD]
    index, by_kernel, rows = una_fast.build_index(lines, **settings), 0, np.arange(len(lines))
    una = una_fast.Augmenter(index, radius=500)
    for epoch in range(3):
        drawn = una._draw_rows(rows, DrawSet(epoch, 0))
        assert una.negatives(rows, epoch) == [una._detokenizer.row(row, drawn[row]) for row in range(len(lines))]
        by_kernel += sum(text is not None for text in una._detokenizer._written.texts(rows, drawn))
    assert by_kernel > 2 * len(lines)


def test_few_rows_are_left_for_the_tokenizer():
    """They take 100 us each, the others 1 us."""
    words = sorted({word for line in LINES for word in line.lower().split() if word.isalpha()})
    groups = [words[i : i + 5] for i in range(0, len(words) - 5, 5)]
    lines = ["The {}, a {} of {}, was seen ({} and {}).".format(*group) for group in groups]
    una = una_fast.Augmenter(una_fast.build_index(lines), tokenizer=roberta(), keep_punctuation=True, radius=10)
    rows, batch = np.arange(len(lines)), una.negative_ids(range(len(lines)))
    drawn = una._draw_rows(rows, DrawSet(0, 0))
    left = una._detokenizer.fill(rows, drawn, batch["input_ids"].numpy(), batch["attention_mask"].numpy())
    assert not len(left)


def test_an_added_token_that_a_negative_happens_to_spell_is_one():
    """As "mask" in the place of "HELLO" makes "[MASK]", of which the tokenizer makes another id than of its words."""
    index = una_fast.build_index(["the [HELLO] was seen", "the mask was seen", "x [NO] y"] * 3)
    tokenizer = bert_uncased()
    una = una_fast.Augmenter(index, beta=0.5, tokenizer=tokenizer, radius=50)
    rows, spelled = range(index.n_documents), 0
    for epoch in range(20):
        texts = una.negatives(rows, epoch)
        spelled += sum("[MASK]" in text for text in texts)
        expected = tokenizer(texts, truncation=True, padding="max_length", max_length=16, return_tensors="pt")
        assert torch.equal(una.negative_ids(rows, epoch, 16)["input_ids"], expected["input_ids"])
    assert spelled


def test_opening_marks_stay_with_their_word():
    index = una_fast.build_index(["¿Cuánto cuesta?", "¡Qué casa!", "¿ ?", "la casa"] * 3)
    una = una_fast.Augmenter(index, keep_punctuation=True)
    for epoch in range(20):
        first, second, marks, last = una.negatives(range(4), epoch)
        assert re.fullmatch("¿[^¿¡]+ [^¿¡]+\\?", first) and re.fullmatch("¡[^¿¡]+ [^¿¡]+!", second)
        assert marks == "¿ ?" and not {*"¿¡"} & {*last}
        assert first[1].isupper()


def test_a_script_without_spaces_stays_without(index):
    lines = ["可以修改地址吗", "我们明天去北京", "他在图书馆看书", "请问洗手间在哪里", "การทดสอบ ภาษา", "ខ្ញុំស្រឡាញ់ភាសា"]
    index = una_fast.build_index(lines, word_tokenizer=pairs)
    una = una_fast.Augmenter(index, beta=0.5, tokenizer=bert_uncased())
    for epoch in range(5):
        texts = una.negatives(range(len(lines)), epoch)
        assert [text.count(" ") for text in texts] == [line.count(" ") for line in lines]
        assert all(text != line for text, line in zip(texts, lines, strict=True))
        assert texts == una._detokenizer.rows(np.arange(6), una._draw_rows(np.arange(6), DrawSet(epoch, 0)))


def pairs(sentence):
    """Two characters a word, as a segmenter finds them."""
    return [part[i : i + 2] for part in sentence.split() for i in range(0, len(part), 2)]


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_the_paper_and_its_code_have_nltks_marks(index, variant):
    rows = range(len(index))
    una = una_fast.Augmenter(index, radius=20, variant=variant, surface="paper")
    drawn = una._draw_rows(np.arange(len(index)), DrawSet())
    expected = [" ".join(index.terms[i] for i in drawn[row]) for row in rows]
    assert una.negatives(rows) == expected
    if variant == "released":
        assert una_fast.Augmenter(index, radius=20, variant=variant).negatives(rows) == expected


def test_with_nothing_replaced_a_negative_is_its_sentence(index):
    una = una_fast.Augmenter(index, beta=0.0, select="random", tokenizer=bert_uncased())
    rows = np.array([row for row in range(len(index)) if index.words(row)])
    assert una.negatives(rows) == [index[row] for row in rows.tolist()]
    assert torch.equal(una.negative_ids(rows)["input_ids"], una.tokens.anchor_ids(rows)["input_ids"])


def test_the_old_surface_lower_warns_and_means_kept(index):
    with pytest.warns(FutureWarning, match='surface="lower" means "kept"'):
        una = una_fast.Augmenter(index, surface="lower")
    assert una.negatives([3, 4]) == una_fast.Augmenter(index).negatives([3, 4])


def test_time_is_linear_in_the_length_of_a_sentence(index):
    """With a search to the end of the text for each quotation mark, 920 KB took 98 s."""
    una = una_fast.Augmenter(index, radius=3)

    def cost(n):
        start = time.process_time()
        una.augment(['"He said" and "so" on. ' * n])
        una.explain('the "cat" sat. ' * (n // 16))
        return time.process_time() - start

    cost(100)
    assert min(cost(16_000) for _ in range(2)) < 40 * min(cost(1_600) for _ in range(3))
