"""keep_punctuation=True and keep_words: such words are neither replaced nor drawn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import una_fast
from support import reference
from support.alphabet import text
from support.checks import reference_negatives
from support.tokenizer_families import bert_uncased, roberta, training_lines
from una_fast import InputError
from una_fast.arrays import StringTable
from una_fast.augment.kept_words import KeptWords, punctuation_terms, read_words

KEPT = ("the", "a", "of", "dog", "zorg")  # the last is in no sentence
KEPT_SETTINGS = [(True, ()), (False, KEPT), (True, KEPT)]  # keep_punctuation, keep_words
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


@settings(max_examples=150)
@given(
    sentence=text | st.sampled_from([*LINES, "Zorg, a Dog of the", "the of!"]),
    epoch=st.integers(0, 2),
    beta=st.sampled_from([0.1, 0.5, 1.0]),
)
@pytest.mark.parametrize("select", ["tfidf", "random"])
@pytest.mark.parametrize(("marks", "listed"), KEPT_SETTINGS)
def test_words_change_and_kept_words_stay(index, select, marks, listed, sentence, epoch, beta):
    una = una_fast.Augmenter(
        index, radius=20, beta=beta, select=select, keep_punctuation=marks, keep_words=map(str.upper, listed)
    )
    told = una.explain(sentence, epoch)
    assert [told.negative] == una.augment([sentence], epoch)
    words, p = una.replacement_probabilities(sentence)
    kept = {word for word in words if word in listed or (marks and is_punctuation(word))}
    assert una.keeps_all([sentence]).tolist() == [kept == {*words}]
    idf = dict(zip(index.terms, index.idf.tolist(), strict=True))
    unseen = -reference.ln(1 / len(LINES))
    assert p.tolist() == reference.probabilities(words, idf, unseen, beta, select=select, fixed=kept)
    for word in told.words:
        drawn = {word.replacement, *(term for term, _ in word.candidates)} - {None}
        assert word.candidates and not drawn & {*listed} and not (marks and any(map(is_punctuation, drawn)))
        if word.word in kept:
            reason = "a word of keep_words" if word.word in listed else "punctuation is kept"
            assert (word.probability, word.replacement, word.reason) == (0, None, reason)
        assert word.replacement != word.word


@pytest.mark.parametrize(("marks", "listed"), KEPT_SETTINGS)
def test_negatives_are_those_of_the_reference(index, marks, listed):
    una = una_fast.Augmenter(
        index, beta=0.5, radius=7, seed=5, keep_punctuation=marks, keep_words=listed, surface="paper"
    )
    kept = {i for i, term in enumerate(index.terms) if term in listed or (marks and is_punctuation(term))}
    rows = [row.tolist() for row in index.word_ids]
    setting = {"beta": 0.5, "fixed": kept}
    expected = reference_negatives(rows, index, len(rows), 7, setting, seed=5, epoch=2)
    assert una.negatives(range(len(rows)), epoch=2) == [" ".join(index.terms[i] for i in ids) for ids in expected]


@pytest.mark.parametrize("surface", ["paper", "kept"])
@pytest.mark.parametrize("make_tokenizer", [bert_uncased, roberta])
def test_ids_are_the_tokenizers_on_the_text(index, make_tokenizer, surface):
    tokenizer = make_tokenizer()
    una = una_fast.Augmenter(index, tokenizer=tokenizer, keep_punctuation=True, keep_words=KEPT, surface=surface)
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
    assert KeptWords(True).rows(index).tolist() == expected and LINES.index("... !") in expected
    small = una_fast.build_index(["a .", "", ". !", ".", "b"])
    assert KeptWords(True).rows(small).tolist() == [1, 2, 3]
    assert KeptWords(True, frozenset("b")).rows(small).tolist() == [1, 2, 3, 4]
    assert KeptWords(False, frozenset("b")).rows(small).tolist() == [1, 4]
    assert KeptWords().rows(small).tolist() == [1]


def test_what_cannot_be_is_refused(index):
    for setting in ({"keep_punctuation": True}, {"keep_words": ["the"]}):
        with pytest.raises(InputError, match='the released code replaces all words: give variant="paper"'):
            una_fast.Augmenter(index, variant="released", **setting)
    small = una_fast.build_index(["a . !", "a a"])
    with pytest.raises(InputError, match="keep_punctuation=True: 1 of the 3 terms may be replaced, and by nothing"):
        una_fast.Augmenter(small, keep_punctuation=True)
    with pytest.raises(InputError, match="keep_words: 1 of the 3 terms may be replaced"):
        una_fast.Augmenter(small, keep_words=["A", "!"])


def test_a_file_has_a_word_a_line(index, tmp_path):
    file = tmp_path / "names.txt"
    file.write_bytes("\ufeffThe\r\n\n  Zürich \nX-200\n".encode())
    assert read_words(file) == read_words(str(file)) == {"The", "Zürich", "X-200"}
    una = una_fast.Augmenter(index, keep_words=file)
    assert una.kept_words.words == {"the", "zürich", "x-200"} and "keep_words='3 words'" in repr(una)
    again = pickle.loads(pickle.dumps(una))
    assert again.kept_words == una.kept_words and again.negatives([1, 2]) == una.negatives([1, 2])
    assert una_fast.Augmenter(index, keep_words="").kept_words == KeptWords()
    cased = una_fast.build_index(LINES, lowercase=False)
    assert una_fast.Augmenter(cased, keep_words=file).kept_words.words == {"The", "Zürich", "X-200"}
    for content, error in ((b"a\nNew York\n", "names.txt, line 2: 'New York' is not one word"), (b"\xff", "not UTF-8")):
        file.write_bytes(content)
        with pytest.raises(InputError, match=f"keep_words: .*{error}"):
            una_fast.Augmenter(index, keep_words=file)
    with pytest.raises(InputError, match="keep_words: .*: No such file or directory: give a file with a word a line"):
        una_fast.Augmenter(index, keep_words=tmp_path / "none")
    with pytest.raises(InputError, match="keep_words: item 2: 7 is not one word"):
        una_fast.Augmenter(index, keep_words=["a", 7])


def test_the_draws_have_the_weights_of_the_other_words():
    corpus = ["a b c d e f g", "a b c d e", "a b c", "a a b"]
    index = una_fast.build_index(corpus)
    kept, word, n_epochs = {"b", "e"}, "f", 4000
    una = una_fast.Augmenter(index, radius=7, beta=0.5, keep_words=kept, surface="paper")
    words, fixed = corpus[0].split(), {index.term_ids[term] for term in kept}
    negatives = [una.negatives([0], epoch)[0].split() for epoch in range(n_epochs)]
    replaced = np.mean([[new != old for new, old in zip(line, words, strict=True)] for line in negatives], axis=0)
    idf = dict(zip(index.terms, index.idf.tolist(), strict=True))
    p = np.array(reference.probabilities(words, idf, 0.0, 0.5, fixed=kept))
    assert np.all(np.abs(replaced - p) <= 5 * np.sqrt(p * (1 - p) / n_epochs))
    term, scores = index.term_ids[word], index.max_tfidf.tolist()
    weights = reference.candidate_weights(scores, reference.rank_window(scores, term, 0.0, 7), term, fixed=fixed)
    drawn = [line[words.index(word)] for line in negatives if line[words.index(word)] != word]
    assert len(drawn) > 500 and {*drawn} == {index.terms[i] for i, weight in weights.items() if weight > 0}
    for i, weight in weights.items():
        share = weight / sum(weights.values())
        error = 5 * np.sqrt(share * (1 - share) / len(drawn))
        assert abs(drawn.count(index.terms[i]) / len(drawn) - share) <= error


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
