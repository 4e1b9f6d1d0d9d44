"""Word tokenizers by name, of other libraries and by import path; how an index knows them; scripts without spaces."""

import pickle
import re
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import una_fast
from una_fast.corpus.word_tokenizers import PROBES, SEGMENTERS, probe_words, resolve_tokenizer
from una_fast.errors import InputError, InputWarning

CORPUS = ["the cat sat", "on the mat", "a dog, a cat"]


def splitter(pattern: str) -> Callable[[str], list[str]]:
    def split(text: str) -> list[str]:
        return re.findall(pattern, text)

    return split


def test_functions_of_one_name_are_told_apart(tmp_path: Path) -> None:
    words, letters = splitter(r"\w+"), splitter(r"\w")
    a, b = (una_fast.build_index(CORPUS, word_tokenizer=split) for split in (words, letters))
    assert a.fingerprint != b.fingerprint
    assert (
        a.fingerprint == una_fast.build_index(CORPUS, word_tokenizer=lambda text: re.findall(r"\w+", text)).fingerprint
    )
    probe = probe_words(lambda text: text.encode("ascii").decode().split(" "))  # fails on some, makes empty words
    assert probe is not None and probe[0] == PROBES[0].split() and None in probe
    a.save(tmp_path / "index")
    loaded = una_fast.load_index(tmp_path / "index", word_tokenizer=splitter(r"\w+"))
    assert loaded.fingerprint == una_fast.load_index(tmp_path / "index").fingerprint == a.fingerprint
    with pytest.raises(InputError, match=r"made by another word tokenizer than .*split, which makes \['T', 'h'"):
        una_fast.load_index(tmp_path / "index", word_tokenizer=letters)


def whole_words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def test_a_pickled_index_does_not_come_back_with_other_words(tmp_path: Path) -> None:
    index = una_fast.build_index(CORPUS, word_tokenizer=whole_words)
    index.save(tmp_path / "index")
    pickled = pickle.dumps(index)
    assert pickle.loads(pickled).word_tokenizer is whole_words
    una_fast.build_index(CORPUS, word_tokenizer=splitter(r"\w")).save(tmp_path / "index")
    with pytest.raises(InputError, match="index: its words were made by another word tokenizer"):
        pickle.loads(pickled)


@pytest.mark.parametrize(
    ("tokenizer", "fingerprint"),
    [("treebank", "c8e3843eb956ff16b879aa3f43605462"), ("whitespace", "0e3f821dd1171c8e4d3473aabe2e841e")],
)
def test_named_tokenizers_have_fingerprints_that_stay_and_take_no_function(
    tokenizer: str, fingerprint: str, tmp_path: Path
) -> None:
    index = una_fast.build_index(CORPUS, word_tokenizer=tokenizer)
    assert index.fingerprint == fingerprint
    assert probe_words(tokenizer) is None
    index.save(tmp_path / "index")
    with pytest.raises(InputError, match=f"its words were made by '{tokenizer}'; give no other word_tokenizer"):
        una_fast.load_index(tmp_path / "index", word_tokenizer=str.split)


def test_import_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_words.py").write_text("class Own:\n    def split(text): return text.split('a')[:1] or ['x']\n")
    monkeypatch.syspath_prepend(tmp_path)
    import own_words

    assert resolve_tokenizer("own_words:Own.split") is own_words.Own.split
    index = una_fast.build_index(["xa", "ya", "za"], word_tokenizer="own_words:Own.split")
    assert list(index.terms) == ["x", "y", "z"]
    index.save(tmp_path / "index")
    assert una_fast.load_index(tmp_path / "index", word_tokenizer="own_words:Own.split").n_terms == 3
    with pytest.raises(InputError, match="'no_such_module:split': there is no module 'no_such_module'"):
        una_fast.build_index(CORPUS, word_tokenizer="no_such_module:split")
    with pytest.raises(InputError, match="is of type str: name a function"):
        una_fast.build_index(CORPUS, word_tokenizer="own_words:__name__")


def test_the_name_in_an_index_is_never_imported(tmp_path: Path) -> None:
    una_fast.build_index(CORPUS, word_tokenizer=whole_words).save(tmp_path / "index")
    index = una_fast.load_index(tmp_path / "index")
    assert index.word_tokenizer == f"{__name__}:whole_words"
    with pytest.raises(InputError, match="the index was built with the word tokenizer .*whole_words.*load_index"):
        una_fast.Augmenter(index, radius=2)


TEXTS = {
    "Chinese": ("rjieba", "我来到北京清华大学学习自然语言处理和机器翻译。", "北京"),
    "Japanese": ("fugashi", "私は東京都に住んでいますが、大阪にもよく行きます。", "東京"),
    "Thai": ("pythainlp", "ฉันรักภาษาไทยและไปโรงเรียนทุกวันกับเพื่อน", "โรงเรียน"),
    "Khmer": ("", "ខ្ញុំស្រឡាញ់ភាសាខ្មែរហើយខ្ញុំទៅសាលារៀនរាល់ថ្ងៃ", ""),
    "Lao": ("", "ຂ້ອຍຮັກພາສາລາວແລະໄປໂຮງຮຽນທຸກມື້ກັບໝູ່", ""),
    "Burmese": ("", "ကျွန်တော်မြန်မာစာကိုချစ်တယ်ကျောင်းသွားတယ်", ""),
}


@pytest.mark.parametrize("language", TEXTS)
def test_scripts_without_spaces_are_said(language: str) -> None:
    name, text, _ = TEXTS[language]
    with pytest.warns(
        InputWarning, match=rf"(100|9.)% of the corpus is {language}.* makes whole clauses into words"
    ) as said:
        una_fast.build_index([text, text])
    assert (f"word_tokenizer={name!r}" in str(said[0].message)) == bool(name)
    with pytest.warns(InputWarning, match=language):
        una_fast.build_index([text, "and English " * 4], "whitespace")


@pytest.mark.parametrize(
    "corpus",
    [
        ["plain English text, for the most part"] * 9 + [TEXTS["Chinese"][1][:2]],
        ["我 来到 北京 清华大学 学习 自然 语言 处理 。"],
        ["나는 학교에 갑니다 그리고 친구를 만납니다"],
        ["Это простое предложение"],
        ["", " ", "a"],
    ],
)
def test_scripts_with_spaces_are_not(corpus: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        una_fast.build_index(corpus)
        una_fast.build_index([TEXTS["Thai"][1]], word_tokenizer=list)


def test_an_index_knows_its_segmenter(tmp_path: Path) -> None:
    """tests/docs/test_pages.py has the words and negatives of each."""
    name, text, word = TEXTS["Chinese"]
    pytest.importorskip(name)
    index = una_fast.build_index([text + " " + text, "ascii words too"], word_tokenizer=name)
    assert {word, "ascii"} <= {*index.terms} and " " not in index.terms
    index.save(tmp_path / "index")
    loaded = una_fast.load_index(tmp_path / "index")
    assert (loaded.word_tokenizer, loaded.fingerprint) == (name, index.fingerprint)
    assert una_fast.Augmenter(loaded, radius=3).augment([text]) != [text]


def test_a_segmenter_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SEGMENTERS, "x", ("X", lambda: import_module("no_such_package"), "x"))
    with pytest.raises(InputError, match="the package no_such_package is not installed: pip install x"):
        una_fast.build_index(CORPUS, word_tokenizer="x")
