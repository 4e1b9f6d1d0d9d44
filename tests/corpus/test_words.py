"""Splitting documents into chunks and words: equal to NLTK, and independent of threads and blocks."""

import pickle
import re
import sys
import unicodedata
import warnings
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

import una_fast
from support.alphabet import any_text, nasty_text, text
from support.token_ids import assert_ids
from support.tokenizer_families import bert_uncased
from una_fast._kernels.words.strings import StringSet
from una_fast._kernels.words.treebank import is_word_beyond_letters, treebank_words
from una_fast.arrays import StringTable
from una_fast.corpus.word_tokenizers import SEGMENTERS, SIGNATURE_SENTENCES, WordTokenizer, resolve_tokenizer
from una_fast.corpus.words import Parsed, parse_corpus, split_texts
from una_fast.errors import InputError, InputWarning


def documents(parsed: Parsed) -> list[str]:
    chunks = list(parsed.chunks)
    return [" ".join(chunks[i] for i in row) for row in parsed.sentences]


def words(parsed: Parsed) -> list[list[str]]:
    vocabulary = list(parsed.vocabulary)
    return [[vocabulary[i] for i in row] for row in parsed.words]


def nltk_words(line: str) -> list[str]:
    from nltk import word_tokenize  # here, because every worker that collects this file would wait for a second

    return word_tokenize(line, preserve_line=True)


def assert_equal(a: tuple[Parsed, list], b: tuple[Parsed, list]) -> None:
    for one, other in zip(a[0], b[0], strict=True):
        for x, y in zip(vars(one).values(), vars(other).values(), strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)
    assert a[1] == b[1]


documents_of_nasty_text = st.lists(text | st.lists(nasty_text, max_size=5).map(" ".join), min_size=1, max_size=8)


@pytest.mark.parametrize(("tokenizer", "split"), [("treebank", nltk_words), ("whitespace", str.split)])
@given(lines=documents_of_nasty_text, lowercase=st.booleans())
@example(lines=["ΑΣ ΒΣ. Σ", "σ Σ' ΑΣ'Β"], lowercase=True)
@example(lines=['He said "so." \' ) ', "It ended. ) \t", '" )', " . ", '.". ) "', "no.\n ", "  "], lowercase=True)
def test_splitting_chunks_gives_the_words_of_the_whole_line(tokenizer, split, lines, lowercase):
    lines = ["a word", *lines]
    parsed, _ = parse_corpus(lines, WordTokenizer(tokenizer, lowercase), n_jobs=1)
    assert documents(parsed) == lines
    assert words(parsed) == [split(line.lower() if lowercase else line) for line in lines]
    for table, rows in [(parsed.chunks, parsed.sentences), (parsed.vocabulary, parsed.words)]:
        assert len(set(table)) == len(table)
        assert list(dict.fromkeys(rows.values.tolist())) == list(range(len(table)))
        assert (rows.values.dtype, rows.indptr.dtype) == (np.int32, np.int64)


@pytest.mark.parametrize("tokenizer", ["treebank", "whitespace", str.split])
def test_results_do_not_depend_on_threads_or_blocks(tokenizer, monkeypatch, tmp_path):
    line = 'Line {} is number {}, "said" the Ünit{} cat\'s {}th tail. )'
    lines = [line.format(i % 97, i, i % 13, i * 7919 % 101) for i in range(3000)]
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    tokenizer = WordTokenizer(tokenizer)
    one = parse_corpus(path, tokenizer, n_jobs=1)
    assert_equal(one, parse_corpus(path, tokenizer, n_jobs=2))
    listed = parse_corpus(lines, tokenizer, n_jobs=3)
    monkeypatch.setattr("una_fast.corpus.files.BLOCK_BYTES", 100)
    monkeypatch.setattr("una_fast.corpus.words.ENTRIES_PER_TASK", 7)
    monkeypatch.setattr("una_fast.corpus.words.ROWS_PER_TASK", 11)
    assert_equal(one, parse_corpus(path, tokenizer, n_jobs=5))
    assert_equal(listed, parse_corpus(iter(lines), tokenizer, n_jobs=2))


BYTES = st.binary(max_size=20) | st.sampled_from([b"", b"a", b"a" * 99_999])


@given(st.lists(st.lists(BYTES, max_size=20), max_size=4))
def test_a_string_set_gives_ids_by_first_appearance(batches):
    strings, numbers = StringSet(), {}
    for batch in batches:
        stops = np.cumsum([len(b) for b in batch], dtype=np.int64)
        starts = stops - np.array([len(b) for b in batch], dtype=np.int64)
        data = np.frombuffer(b"".join(batch), dtype=np.uint8)
        assert strings.find(data, starts, stops).tolist() == [numbers.get(b, -1) for b in batch]
        found = strings.add(data, starts, stops)
        assert found.tolist() == [numbers.setdefault(b, len(numbers)) for b in batch]
    utf8, offsets = strings.strings()
    assert [utf8[i:j].tobytes() for i, j in pairwise(offsets)] == list(numbers)


def test_a_word_tokenizer_function_is_called_with_each_sentence_in_order():
    seen = []

    def tokenize(sentence):
        seen.append(sentence)
        return re.findall(r"\w+", sentence)

    lines = ["The Cat\nsat.", "", "On the mat"]
    parsed, _ = parse_corpus(iter(lines), WordTokenizer(tokenize))
    assert seen == [line.lower() for line in lines]
    assert words(parsed) == [["the", "cat", "sat"], [], ["on", "the", "mat"]]
    assert documents(parsed) == lines


@pytest.mark.parametrize(("arguments", "named"), [
    ({"corpus": ["", "  "]}, "2 sentences"),
    ({"corpus": ["a"], "tokenizer": "moses"}, "'moses'.* 'treebank', 'whitespace'"),
    *(({"corpus": ["a"], "tokenizer": split}, "word tokenizer.*'a")
      for split in (lambda s: s, lambda s: [s, ""], lambda s: [1], lambda s: ["a\ud800"])),
    ({"corpus": ["a"], "n_jobs": 0}, "^n_jobs=0"),
])  # fmt: skip
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises(InputError, match=named):
        parse_corpus(**{**arguments, "tokenizer": WordTokenizer(arguments.get("tokenizer", "treebank"))})


@pytest.mark.parametrize("progress", [True, False])
def test_the_progress_bar_is_optional(progress, capsys):
    parse_corpus(["a b", "c"], progress=progress)
    assert bool(capsys.readouterr().err) == progress


def split_at_commas(sentence):
    return [part for part in sentence.split(",") if part]


@pytest.mark.parametrize("few", [0, 32])  # fewer texts are split one by one
@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("named", ["treebank", "whitespace", split_at_commas])
@given(texts=st.lists(text, max_size=6))
def test_splitting_texts_together_gives_the_words_of_each_text(few, named, lowercase, texts):
    tokenizer = WordTokenizer(named, lowercase)
    with mock.patch("una_fast.corpus.words.FEW", few):
        vocabulary, rows = split_texts(StringTable.from_strings(texts), tokenizer)
    assert [[vocabulary[i] for i in row] for row in rows] == [tokenizer.words(line) for line in texts]
    assert len(set(vocabulary)) == len(vocabulary)


SENTENCES = [
    *("", " ", "a ' ' ' b '", "x.?y.. z.", "10:30, 3,000: a,b :: c:", "ends in a colon:\n", "The end (of it.) "),
    '"Good muffins" cost $3.88 (roughly 3,36 euros)\nin New York.  Please buy me\ntwo of them.\nThanks.',
    "They'll save and invest more, won't they? I cannot say; d'ye know?",
    "'Tis the 90's -- 'twas 'the' dogs' ``day''...",
    "He said 'so.' \"",
    "two\x1cwords\x85three four",
    "'t'is'n'the'ſ'sıx 'tıs gİmme",
    "more'n'tıs'twas cannot'tis",
    "\"\"quoted\"\" ''twice'' `ticks` ```",
    "«guillemets» “curly” ‘single’ „low“ — – ‒ ―",
    "\ud800 lone 'surrogates' stay.",
]


LONG_RUNS = ["'", '"', "`", "``", "''", ".", ":", ",:", "-", "n't ", "' ", " '", '("', "can"]  # they fit the buffer
LONG = [line for run in LONG_RUNS for line in (run * 500, run * 500 + "a.", "x" + run * 501 + "\n")]


@pytest.mark.parametrize("line", SENTENCES + LONG)
def test_chosen_sentences_are_split_like_nltk(line):
    assert treebank_words(line) == nltk_words(line)
    assert treebank_words(line.lower()) == nltk_words(line.lower())


@given(nasty_text | any_text)
@example("gimme'tis'twas")
def test_any_text_is_split_like_nltk(line):
    assert treebank_words(line) == nltk_words(line)
    assert treebank_words(line.lower()) == nltk_words(line.lower())


EVERY_CHARACTER = "".join(map(chr, range(sys.maxunicode + 1)))


def matching(pattern: regex.Pattern | re.Pattern) -> set[int]:
    return {match.start() for match in pattern.finditer(EVERY_CHARACTER)}


def test_character_classes_match_regex():
    """Compare only characters that Python knows, because `regex` usually has a later version of Unicode."""
    known = {ord(c) for c in EVERY_CHARACTER if unicodedata.category(c) != "Cn"}
    words = {ord(c) for c in EVERY_CHARACTER if c.isalpha() or c.isdecimal() or c == "_" or is_word_beyond_letters(c)}
    assert words & known == matching(regex.compile(r"\w")) & known
    assert {ord(c) for c in EVERY_CHARACTER if c.isdecimal()} & known == matching(regex.compile(r"\d")) & known
    spaces = {ord(c) for c in EVERY_CHARACTER if c.isspace()} - {*range(0x1C, 0x20)}
    assert spaces == matching(regex.compile(r"\s"))


@pytest.mark.parametrize(("engine", "letters"), [(re, "acdegilmnorstwyh"), (regex, "revlmtsdn")])
def test_only_three_non_ascii_characters_match_the_rules_ignoring_case(engine, letters):
    special = {code for code in matching(engine.compile(f"(?i)[{letters}]")) if code > 0x7F}
    assert special == ({0x130, 0x131, 0x17F} if engine is re else {0x17F})
    assert all(engine.match("(?i)i", chr(code)) for code in special - {0x17F})
    assert engine.match("(?i)s", "\u017f")


CORPUS = ["the cat sat", "on the mat", "a dog, a cat"]


def splitter(pattern: str) -> Callable[[str], list[str]]:
    def split(text: str) -> list[str]:
        return re.findall(pattern, text)

    return split


def test_word_tokenizer_functions_with_the_same_name_are_distinguished(tmp_path):
    words, letters = splitter(r"\w+"), splitter(r"\w")
    a, b = (una_fast.build_index(CORPUS, word_tokenizer=split) for split in (words, letters))
    same = una_fast.build_index(CORPUS, word_tokenizer=lambda text: re.findall(r"\w+", text))
    assert b.fingerprint != a.fingerprint == same.fingerprint
    fails_on_some = WordTokenizer(lambda text: text.encode("ascii").decode().split(" "))  # and returns empty words
    signature = fails_on_some.signature()
    assert signature is not None and signature[0] == SIGNATURE_SENTENCES[0].split() and None in signature
    a.save(tmp_path / "index")
    loaded = una_fast.load_index(tmp_path / "index", word_tokenizer=splitter(r"\w+"))
    assert loaded.fingerprint == una_fast.load_index(tmp_path / "index").fingerprint == a.fingerprint
    with pytest.raises(InputError, match=r"word tokenizer .*split.* \['T', 'h'"):
        una_fast.load_index(tmp_path / "index", word_tokenizer=letters)


def whole_words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def test_unpickling_refuses_an_index_that_was_replaced(tmp_path):
    index = una_fast.build_index(CORPUS, word_tokenizer=whole_words)
    index.save(tmp_path / "index")
    pickled = pickle.dumps(index)
    assert pickle.loads(pickled).word_tokenizer is whole_words
    una_fast.build_index(CORPUS, word_tokenizer=splitter(r"\w")).save(tmp_path / "index")
    with pytest.raises(InputError, match="index: .*word tokenizer"):
        pickle.loads(pickled)


def test_token_ids_are_not_reused_after_a_word_tokenizer_changed(tmp_path):
    """The caches in the index's folder are rebuilt, although both functions have the same signature."""
    corpus, folder = [f"they were seen by the river {i}" for i in range(50)], tmp_path / "index"

    def without(left_out):
        return lambda text: [word for word in text.split() if word != left_out]

    wordpiece = bert_uncased()
    for split in (without("by"), without("were")):
        una_fast.build_index(corpus, word_tokenizer=split).save(folder)
        index = una_fast.load_index(folder, word_tokenizer=split)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # reused ids would give a warning
            una = una_fast.Augmenter(index, tokenizer=wordpiece)
        assert_ids(una.token_ids(range(50), max_length=16), wordpiece, una.texts(range(50)), 16)
    assert WordTokenizer(without("by")).signature() == WordTokenizer(without("were")).signature()


@pytest.mark.parametrize(("tokenizer", "fingerprint"), [
    ("treebank", "c8e3843eb956ff16b879aa3f43605462"), ("whitespace", "0e3f821dd1171c8e4d3473aabe2e841e"),
])  # fmt: skip
def test_named_tokenizers_have_fixed_fingerprints_and_refuse_a_function(tokenizer, fingerprint, tmp_path):
    index = una_fast.build_index(CORPUS, word_tokenizer=tokenizer)
    assert index.fingerprint == fingerprint
    assert WordTokenizer(tokenizer).signature() is None
    index.save(tmp_path / "index")
    with pytest.raises(InputError, match=f"'{tokenizer}'.* word_tokenizer"):
        una_fast.load_index(tmp_path / "index", word_tokenizer=str.split)


def test_a_word_tokenizer_can_be_an_import_path(tmp_path, monkeypatch):
    (tmp_path / "own_words.py").write_text("class Own:\n    def split(text): return text.split('a')[:1] or ['x']\n")
    monkeypatch.syspath_prepend(tmp_path)
    import own_words

    assert resolve_tokenizer("own_words:Own.split") is own_words.Own.split
    index = una_fast.build_index(["xa", "ya", "za"], word_tokenizer="own_words:Own.split")
    assert list(index.terms) == ["x", "y", "z"]
    index.save(tmp_path / "index")
    assert una_fast.load_index(tmp_path / "index", word_tokenizer="own_words:Own.split").n_terms == 3
    for wrong in ("no_such_module:split", "own_words:__name__"):
        with pytest.raises(InputError, match=f"'{wrong}'"):
            una_fast.build_index(CORPUS, word_tokenizer=wrong)


def test_the_import_path_in_an_index_is_never_imported(tmp_path):
    una_fast.build_index(CORPUS, word_tokenizer=whole_words).save(tmp_path / "index")
    index = una_fast.load_index(tmp_path / "index")
    assert index.word_tokenizer == f"{__name__}:whole_words"
    with pytest.raises(InputError, match="whole_words.*load_index"):
        una_fast.Augmenter(index, radius=2)


TEXTS = {
    "Chinese": ("rjieba", "我来到北京清华大学学习自然语言处理和机器翻译。", "北京"),
    "Japanese": ("fugashi", "私は東京都に住んでいますが、大阪にもよく行きます。", "東京"),
    "Thai": ("pythainlp", "ฉันรักภาษาไทยและไปโรงเรียนทุกวันกับเพื่อน", "โรงเรียน"),
    "Khmer": ("", "ខ្ញុំស្រឡាញ់ភាសាខ្មែរហើយខ្ញុំទៅសាលារៀនរាល់ថ្ងៃ", ""),
    "Lao": ("", "ຂ້ອຍຮັກພາສາລາວແລະໄປໂຮງຮຽນທຸກມື້ກັບໝູ່", ""),
    "Burmese": ("", "ကျွန်တော်မြန်မာစာကိုချစ်တယ်ကျောင်းသွားတယ်", ""),
}


def test_fugashi_continues_after_a_nul():
    assert WordTokenizer("fugashi").words("猫\0犬") == ["猫", "犬"]


@pytest.mark.parametrize("language", TEXTS)
def test_a_script_without_spaces_gives_a_warning(language):
    name, text, _ = TEXTS[language]
    with pytest.warns(InputWarning, match=f"(100|9.)% .*{language}") as said:
        una_fast.build_index([text, text])
    assert (f"word_tokenizer {name!r}" in str(said[0].message)) == bool(name)
    with pytest.warns(InputWarning, match=language):
        una_fast.build_index([text, "and English " * 4], "whitespace")


@pytest.mark.parametrize("corpus", [
    ["plain English text, for the most part"] * 9 + [TEXTS["Chinese"][1][:2]],
    ["我 来到 北京 清华大学 学习 自然 语言 处理 。"],
    ["나는 학교에 갑니다 그리고 친구를 만납니다"],
    ["Это простое предложение"],
    ["", " ", "a"],
])  # fmt: skip
def test_scripts_with_spaces_give_no_warning(corpus):
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        una_fast.build_index(corpus)
        una_fast.build_index([TEXTS["Thai"][1]], word_tokenizer=list)


def test_a_loaded_index_uses_its_segmenter(tmp_path):
    """tests/docs/test_pages.py tests the words and negatives of each segmenter."""
    name, text, word = TEXTS["Chinese"]
    pytest.importorskip(name)
    index = una_fast.build_index([text + " " + text, "ascii words too"], word_tokenizer=name)
    assert {word, "ascii"} <= {*index.terms} and " " not in index.terms
    index.save(tmp_path / "index")
    loaded = una_fast.load_index(tmp_path / "index")
    assert (loaded.word_tokenizer, loaded.fingerprint) == (name, index.fingerprint)
    assert una_fast.Augmenter(loaded, radius=3).augment([text]) != [text]


def test_a_missing_segmenter_names_its_package(monkeypatch):
    monkeypatch.setitem(SEGMENTERS, "x", ("X", lambda: import_module("no_such_package"), "x"))
    with pytest.raises(InputError, match="no_such_package .*pip install x"):
        una_fast.build_index(CORPUS, word_tokenizer="x")
