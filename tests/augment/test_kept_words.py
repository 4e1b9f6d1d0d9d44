"""keep_punctuation=True and keep_words: such words are neither replaced nor drawn."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import una_fast
from support import reference
from support.alphabet import text
from support.tokenizer_families import training_lines
from una_fast import InputError
from una_fast.augment.kept_words import KeptWords, read_words

KEPT = ("the", "a", "of", "dog", "zorg")  # the last is in no sentence
KEPT_SETTINGS = [(True, ()), (False, KEPT), (True, KEPT)]  # keep_punctuation, keep_words
LINES = [*training_lines()[:200], "... !", 'He said "Don\'t  STOP!" (twice) , — ½ ٣ _']


def is_punctuation(word):
    return not any(character.isalnum() for character in word)


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(LINES)


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
    with pytest.raises(InputError, match="1 of the 3 terms of the index may be replaced, and by nothing"):
        una_fast.Augmenter(small, keep_punctuation=True)
    with pytest.raises(InputError, match="1 of the 3 terms of the index may be replaced"):
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
