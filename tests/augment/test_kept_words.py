"""Kept words, and words that are replaced only by words of the same script."""

import pickle
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import una_fast
from support import reference
from support.alphabet import text
from support.checks import reference_negatives
from support.tokenizer_families import training_lines
from una_fast import InputError, InputWarning
from una_fast.augment.counter_rng import SampleKey
from una_fast.augment.kept_words import KeptWords, read_words
from una_fast.augment.sampler import scripts_of

KEPT = ("the", "a", "of", "dog", "zorg")  # the last is in no sentence
KEPT_SETTINGS = [(True, ()), (False, KEPT), (True, KEPT)]  # keep_punctuation, keep_words
LINES = [*training_lines()[:200], "... !", 'He said "Don\'t  STOP!" (twice) , — ½ ٣ _']


def is_punctuation(word):
    return not any(character.isalnum() for character in word)


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(LINES)


@settings(max_examples=60)
@given(
    sentence=text | st.sampled_from([*LINES, "Zorg, a Dog of the", "the of!"]),
    epoch=st.integers(0, 2),
    beta=st.sampled_from([0.1, 0.5, 1.0]),
)
@pytest.mark.parametrize("select", ["tfidf", "random"])
@pytest.mark.parametrize(("marks", "listed"), KEPT_SETTINGS)
def test_kept_words_are_neither_replaced_nor_drawn(index, select, marks, listed, sentence, epoch, beta):
    kept_words = {"keep_punctuation": marks, "keep_words": map(str.upper, listed)}
    una = una_fast.Augmenter(index, radius=20, beta=beta, select=select, **kept_words)
    explanation = una.explain(sentence, epoch)
    assert [explanation.result] == una.augment([sentence], epoch)
    words, p = una.replacement_probabilities(sentence)
    kept = {word for word in words if word in listed or (marks and is_punctuation(word))}
    assert una.keeps_all([sentence]).tolist() == [kept == {*words}]
    idf = dict(zip(index.terms, index.idf.tolist(), strict=True))
    unseen = -reference.ln(1 / len(LINES))
    assert p.tolist() == reference.probabilities(words, idf, unseen, beta, select=select, fixed=kept)
    for word in explanation.words:
        drawn = {word.replacement, *(term for term, _ in word.candidates)} - {None}
        assert word.candidates and not drawn & {*listed} and not (marks and any(map(is_punctuation, drawn)))
        if word.word in kept:
            reason = "a word of keep_words" if word.word in listed else "punctuation is kept"
            assert (word.probability, word.replacement, word.reason) == (0, None, reason)
        assert word.replacement != word.word


def test_a_sentence_with_only_kept_words_is_not_changed(index):
    una = una_fast.Augmenter(index, keep_punctuation=True)
    assert una.augment(["... !", "; ?", ""]) == ["... !", "; ?", ""]
    expected = [row for row in range(len(LINES)) if all(map(is_punctuation, index.words(row)))]
    assert KeptWords(True).unchangeable_rows(index).tolist() == expected and LINES.index("... !") in expected
    small = una_fast.build_index(["a .", "", ". !", ".", "b"])
    assert KeptWords(True).unchangeable_rows(small).tolist() == [1, 2, 3]
    assert KeptWords(True, frozenset("b")).unchangeable_rows(small).tolist() == [1, 2, 3, 4]
    assert KeptWords(False, frozenset("b")).unchangeable_rows(small).tolist() == [1, 4]
    assert KeptWords().unchangeable_rows(small).tolist() == [1]


@pytest.mark.parametrize(("variant", "named"), [("released", 'variant="paper"'), ("paper", "1 of the 3 terms")])
@pytest.mark.parametrize("setting", [{"keep_punctuation": True}, {"keep_words": ["A", "!"]}])
def test_kept_words_of_the_released_variant_and_all_words_but_one_are_refused(setting, variant, named):
    with pytest.raises(InputError, match=named):
        una_fast.Augmenter(una_fast.build_index(["a . !", "a a"]), variant=variant, **setting)


def test_a_file_has_one_word_per_line(index, tmp_path):
    file = tmp_path / "names.txt"
    file.write_bytes("\ufeffThe\r\n\n  Zürich \nX-200\n".encode())
    assert read_words(file) == read_words(str(file)) == {"The", "Zürich", "X-200"}
    una = una_fast.Augmenter(index, keep_words=file)
    assert una.kept_words.words == {"the", "zürich", "x-200"}
    again = pickle.loads(pickle.dumps(una))
    assert again.kept_words == una.kept_words and again.texts([1, 2]) == una.texts([1, 2])
    assert una_fast.Augmenter(index, keep_words="").kept_words == KeptWords()
    cased = una_fast.build_index(LINES, lowercase=False)
    assert una_fast.Augmenter(cased, keep_words=file).kept_words.words == {"The", "Zürich", "X-200"}
    for content, place in ((b"a\nNew York\n", "names.txt, line 2"), (b"\xff", "names.txt")):
        file.write_bytes(content)
        with pytest.raises(InputError, match=f"^keep_words: .*{place}"):
            una_fast.Augmenter(index, keep_words=file)
    for wrong, named in ((tmp_path / "none", "none"), (["a", 7], "item 2"), (None, "None")):
        with pytest.raises(InputError, match=f"^keep_words.*{named}"):
            una_fast.Augmenter(index, keep_words=wrong)


def test_a_kept_word_that_the_index_splits_warns(index):
    with pytest.warns(InputWarning, match=r"keep_words: 2 .*\['\$', '5'\]"):
        una_fast.Augmenter(index, keep_words=["dog", "Don't", "unseen", "$5"])


WORDS = [
    "可以 修改 删去 地址 天气 电影 音乐 食べる ねこ".split(),
    "แมว หมา บ้าน รถ น้ำ".split(),
    "linux path file user".split(),
    ["ខ្មែរ"],
]
DRAW = random.Random(0)
KINDS = [WORDS[0], WORDS[0] + WORDS[2], WORDS[1], WORDS[2], WORDS[2] * 3 + WORDS[0][:1] + WORDS[3]]
SCRIPT_LINES = ["|".join(DRAW.choices(DRAW.choice(KINDS), k=7)) for _ in range(200)]
ROWS = np.arange(len(SCRIPT_LINES))


@pytest.fixture(scope="module")
def scripted():
    return una_fast.build_index(SCRIPT_LINES, word_tokenizer=lambda text: text.split("|"))


def test_scripts_of_words_are_detected():
    words = [*"北京 ひらがな カタカナ IT业 。 ＡＢ แมว ລາວ မြန်မာ ខ្មែរ path привет 한국어 —".split(), ""]
    assert scripts_of(words).tolist() == [1] * 6 + [2, 3, 4, 5] + [0] * 5


@pytest.mark.parametrize("radius", [1, 4, 30])
def test_negatives_equal_the_reference(scripted, radius):
    una = una_fast.Augmenter(scripted, beta=0.7, radius=radius, seed=5)
    scripts = scripts_of([*scripted.terms]).tolist()

    def others_of(term):
        if scripts.count(scripts[term]) < 2:  # the only term of its script: any term replaces it
            return frozenset()
        return frozenset(j for j, script in enumerate(scripts) if script != scripts[term])

    rows, setting = [row.tolist() for row in scripted.word_ids], {"beta": 0.7, "others_of": others_of}
    expected = reference_negatives(rows, scripted, len(rows), radius, setting, seed=5, epoch=3)
    assert [row.tolist() for row in una._draw(una._documents, ROWS, SampleKey(3))] == expected


def test_unseen_words_are_replaced_by_words_of_their_script(scripted):
    una = una_fast.Augmenter(scripted, beta=1.0, radius=2)
    words = ["鸟", "นก", "ລາວ", "shell", "地址", "path", "ខ្មែរ"]
    for epoch in range(20):
        for word in una.explain("|".join(words), epoch).words:
            if word.word not in ("ລາວ", "ខ្មែរ"):  # the index has fewer than two terms of their scripts
                near = [term for term, _ in word.candidates] + [word.replacement or word.word]
                assert {*scripts_of(near)} == {*scripts_of([word.word])}
            assert word.candidates


def test_the_paper_surface_ignores_same_script(scripted):
    one, other = (una_fast.Augmenter(scripted, surface="paper", same_script=same) for same in (True, False))
    assert one.texts(ROWS) == other.texts(ROWS)
