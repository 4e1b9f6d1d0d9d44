"""keep_punctuation=True: words without a letter or digit are neither replaced nor drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import una_fast
from support import reference
from support.alphabet import text
from support.tokenizer_families import bert_uncased, roberta, training_lines
from una_fast import InputError
from una_fast.arrays import StringTable
from una_fast.augment.punctuation import punctuation_terms, rows_of_punctuation

LINES = [*training_lines()[:200], "... !", 'He said "Don\'t  STOP!" (twice) , — ½ ٣ _']


def is_punctuation(word):
    return not any(character.isalnum() for character in word)


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(LINES)


@settings(max_examples=300)
@given(words=st.lists(text, max_size=5))
def test_punctuation_has_no_letter_or_digit_of_any_script(words):
    assert punctuation_terms(StringTable.from_strings(words)).tolist() == [is_punctuation(word) for word in words]


@settings(max_examples=300)
@given(sentence=text | st.sampled_from(LINES), epoch=st.integers(0, 2), beta=st.sampled_from([0.1, 0.5, 1.0]))
@pytest.mark.parametrize("select", ["tfidf", "random"])
def test_words_change_and_punctuation_stays(index, select, sentence, epoch, beta):
    una = una_fast.Augmenter(index, radius=20, beta=beta, select=select, keep_punctuation=True)
    told = una.explain(sentence, epoch)
    assert [told.negative] == una.augment([sentence], epoch)
    words, p = una.replacement_probabilities(sentence)
    kept = {word for word in words if is_punctuation(word)}
    idf = dict(zip(index.terms, index.idf.tolist(), strict=True))
    unseen = -reference.ln(1 / len(LINES))
    assert p.tolist() == reference.probabilities(words, idf, unseen, beta, select=select, fixed=kept)
    for word in told.words:
        if is_punctuation(word.word):
            assert (word.probability, word.replacement, word.reason) == (0, None, "punctuation is kept")
        elif word.replacement is not None:
            assert word.replacement != word.word and not is_punctuation(word.replacement)
        assert word.candidates and not any(is_punctuation(term) for term, _ in word.candidates)


def test_negatives_are_those_of_the_reference(index):
    una = una_fast.Augmenter(index, beta=0.5, radius=7, seed=5, keep_punctuation=True, surface="paper")
    idf, scores = dict(enumerate(index.idf)), index.max_tfidf.tolist()
    kept = {i for i, term in enumerate(index.terms) if is_punctuation(term)}
    expected = [
        reference.negative(
            index.word_ids[row].tolist(),
            scores,
            idf,
            0.0,
            lambda term, z: reference.rank_window(scores, term, z, 7),
            row,
            beta=0.5,
            seed=5,
            epoch=2,
            fixed=kept,
        )
        for row in range(index.n_documents)
    ]
    spelled = [" ".join(index.terms[i] for i in ids) for ids in expected]
    assert una.negatives(range(index.n_documents), epoch=2) == spelled


@pytest.mark.parametrize("surface", ["paper", "kept"])
@pytest.mark.parametrize("make_tokenizer", [bert_uncased, roberta])
def test_ids_are_the_tokenizers_on_the_text(index, make_tokenizer, surface):
    tokenizer = make_tokenizer()
    una = una_fast.Augmenter(index, tokenizer=tokenizer, keep_punctuation=True, surface=surface)
    texts = una.negatives(range(len(LINES)))
    expected = tokenizer(texts, truncation=True, padding="max_length", max_length=32, return_tensors="pt")
    assert torch.equal(una.negative_ids(range(len(LINES)))["input_ids"], expected["input_ids"])


def test_a_window_of_punctuation_reaches_to_the_next_word():
    index = una_fast.build_index(["a ! ? ; , b", "! ? ; ,", "a !", "b"])
    una = una_fast.Augmenter(index, radius=1, beta=1.0, keep_punctuation=True)
    for word, other in ("ab", "ba"):
        start, stop = una.window(word)
        assert start <= index.term_ids[other] < stop
        assert {una.augment([f"{word} !"], epoch)[0] for epoch in range(20)} == {f"{other} !"}


def test_sentences_of_punctuation_stay_and_are_named(index):
    una = una_fast.Augmenter(index, keep_punctuation=True)
    assert una.augment(["... !", "; ?", ""]) == ["... !", "; ?", ""]
    expected = [row for row in range(len(LINES)) if all(map(is_punctuation, index.words(row)))]
    assert rows_of_punctuation(index).tolist() == expected and LINES.index("... !") in expected
    assert rows_of_punctuation(una_fast.build_index(["a .", "", ". !", ".", "b"])).tolist() == [1, 2, 3]


def test_what_cannot_be_is_refused(index):
    with pytest.raises(InputError, match='the released code replaces punctuation too: give variant="paper"'):
        una_fast.Augmenter(index, variant="released", keep_punctuation=True)
    with pytest.raises(InputError, match="keep_punctuation=True: 1 of the 3 terms has a letter or digit"):
        una_fast.Augmenter(una_fast.build_index(["a . !", "a a"]), keep_punctuation=True)


def test_without_it_punctuation_is_replaced_and_drawn(index):
    words = una_fast.Augmenter(index, radius=20).explain("Yes , no .").words
    assert all(word.probability > 0 for word in words if word.tfidf > min(other.tfidf for other in words))
    drawn = " ".join(una_fast.Augmenter(index, radius=20).negatives(range(len(LINES)))).split()
    before = " ".join(word for row in range(len(LINES)) for word in index.words(row)).split()
    assert np.count_nonzero([is_punctuation(w) for w in drawn]) != np.count_nonzero([is_punctuation(w) for w in before])


def test_datasets_leave_out_sentences_of_punctuation(tmp_path):
    datasets = pytest.importorskip("datasets")
    from una_fast.integrations.datasets import Negatives
    from una_fast.integrations.sentence_transformers import row_dataset

    index = una_fast.build_index(["a dog .", "... !", "", "the cat"])
    index.save(tmp_path / "index")
    for keep, rows in ((True, [0, 3]), (False, [0, 1, 3])):
        una = una_fast.Augmenter(index, keep_punctuation=keep)
        assert row_dataset(una)["row"] == rows
        selected = Negatives(una).select(datasets.Dataset.from_dict({"text": list(index)}))
        assert selected["text"] == [index[row] for row in rows]
