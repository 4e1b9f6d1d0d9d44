"""Compare `EditFinder` with its plain reference: on odd texts, with other word lists, and on real corpora."""

import gzip
import itertools
import os
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.plain_edits import Sentence, number_edits, polarity_edits
from support.plain_numbers import near_numbers
from una_fast._kernels.edits.finder import GUARDS, EditFinder, FoundBatch
from una_fast.augment.edits import listed_edits, word_ends
from una_fast.augment.word_lists import WORDS, WordLists, read_word_lists

ENGLISH = read_word_lists()
LISTED = sorted({*ENGLISH.roles, *ENGLISH.classes, *ENGLISH.guards, *ENGLISH.negative, *ENGLISH.capitalised})
NEAR = sorted({near for guard in ENGLISH.guards.values() for words in guard.values() for near in words})
IN_SECTIONS = sorted({word for words in ENGLISH.words.values() for word in words})
ODD = (
    r"""
    isn\u2019t DON'T don\u2019T \u0130s \u0130 IS\u03a3 \u03a3 \u03c2 e\u0301 \u01c5 \u01c6x \u00df \ufb01ve \u212a
    o\u0308ld Na\u00efve \u4f60\u597d \u5f7c\u306f \u0916\u0930\u093e\u092c \u0645\u0631\u062d \U0001f600 \U00010400x
    \U0001d7d8 x\u00b5 \u00b5m \u24d0 \u00aa \u2160 a_b _ \x00 mp3 3D Ann Lima Lima's used mp 24/7 www.a5.org x@y.z
    http://5 st ND th s am p.m. AM a.m to from % $ 1st 2ND 90s 1990s 1990's
""".encode("ascii")
    .decode("unicode_escape")
    .split()
)
SCRIPTS = "0123456789 \u0660\u0661\u0662\u0663\u0664 \uff10\uff11\uff12 \U0001d7d8\U0001d7d9 0\u0661".split()
DIGITS = st.sampled_from(SCRIPTS)
RUN = DIGITS.flatmap(lambda digits: st.text(st.sampled_from(digits), min_size=1, max_size=5))
YEAR = st.integers(1790, 2110).map(str) | st.integers(0, 40).map(str) | st.integers(0, 10**17).map(str)
NUMBER = st.lists(RUN | YEAR | st.just("000") | st.just("00"), min_size=1, max_size=4).flatmap(
    lambda runs: st.sampled_from([".", ",", "-", "/", ":", " to ", "\u2013", " - "]).map(lambda mark: mark.join(runs))
)
ENDINGS = ["", "st", "nd", "TH", "s", "'s", "\u2019s", "%", " %", ":30", ":5", " am", "pm", " a.m.", "km"]
ENDING = st.sampled_from(ENDINGS)
CASES = st.sampled_from([str, str.lower, str.upper, str.title, str.capitalize, str.swapcase])
CASED = st.builds(lambda case, word: case(word), CASES, st.sampled_from(LISTED + NEAR + IN_SECTIONS))
ANY_TEXT = st.text(max_size=4)  # of all scripts, without surrogates
WORD = st.one_of(
    CASED, CASED, CASED, st.sampled_from(ODD), st.builds(str.__add__, NUMBER, ENDING), ANY_TEXT,
    st.lists(CASED, min_size=2, max_size=3).map("'".join), st.lists(CASED, min_size=2, max_size=3).map("-".join),
)  # fmt: skip
MARKS = ", /. /? /.\" /?) /\u3002/\uff1f/\u201d /: /; / (/) /'/\u2019/?'\u201d) /  /-/\\/\t/\u3000/\u00a0/\u2028/"
GAP = st.sampled_from([*[" "] * 12, "/", *MARKS.split("/")])
TEXT = st.lists(st.tuples(GAP, WORD), max_size=14).map(lambda parts: "".join(map("".join, parts)))


def plain(text: str, lists: WordLists, words=()) -> list[list[tuple]]:
    sentence = Sentence(text, words)
    return [
        [(start, stop, tuple(options), why) for start, stop, options, why in find(sentence, lists)]
        for find in (polarity_edits, number_edits)
    ]


def compiled(text: str, lists: WordLists, words=()) -> list[list[tuple]]:
    return [[tuple(edit) for edit in edits] for edits in listed_edits(text, lists, words).values()]


@pytest.mark.parametrize("n_texts", [50, pytest.param(5000, marks=pytest.mark.slow)])
def test_the_finder_equals_its_reference(n_texts):
    @given(TEXT)
    @settings(max_examples=n_texts)
    @example("5\u00b5")
    @example("0-0 1/2/3 12/31 1234/5/6")
    def check(text):
        assert compiled(text, ENGLISH) == plain(text, ENGLISH)
        sentence = Sentence(text)
        places = [(sentence.start(i), sentence.start(i) + len(sentence.word(i))) for i in range(len(sentence.words))]
        assert ENGLISH.finder.words(text) == (sentence.words, places)

    check()


@given(TEXT.filter(bool), st.data())
@settings(max_examples=60)
def test_words_of_a_tokenizer_divide_a_text_as_in_the_reference(text, data):
    """The words are pieces of the text, as a tokenizer gives them, and sometimes one that is not in it."""
    cuts = sorted({0, len(text), *data.draw(st.sets(st.integers(0, len(text)), max_size=8))})
    words = [text[a:b] for a, b in itertools.pairwise(cuts)] + data.draw(st.sampled_from([[], [], ["zzz"]]))
    assert compiled(text, ENGLISH, words) == plain(text, ENGLISH, words)
    assert ENGLISH.finder.words(text, word_ends(text, words))[0] == Sentence(text, words).words


ITEM = st.sampled_from("ab ab's \u0130s \u00e4ra \u00c4ra Gut n\u00e3o 5 kein is be not to do don't ha\u00df".split())
PAIR = st.lists(ITEM, min_size=2, max_size=2, unique_by=str.lower)
GUARD = st.tuples(ITEM | st.just("#"), ITEM | st.sampled_from("#.")).filter(
    lambda pair: pair[0].lower() != pair[1].lower()
)
SEVERAL = st.lists(ITEM, min_size=2, max_size=5, unique_by=str.lower)
LINES = {"opposites": PAIR.map(", ".join), "auxiliaries": PAIR.map(", ".join), "classes": SEVERAL.map(" ".join)}
LINES |= {"negations": st.lists(ITEM, min_size=1, max_size=3).map(" ".join)}
LINES |= dict.fromkeys(GUARDS, GUARD.map(": ".join)) | dict.fromkeys(WORDS, ITEM)
FILE = st.fixed_dictionaries({name: st.lists(line, max_size=3) for name, line in LINES.items()})
FILE = FILE.filter(lambda sections: any(sections.values()))  # a file without words is refused
OWN_WORD = ITEM | st.sampled_from(["a", "an", "5", "A", "Is", "xed"]) | ITEM.map(str.upper) | ITEM.map(str.title)
OWN_TEXT = st.lists(st.tuples(GAP, OWN_WORD), max_size=10).map(lambda parts: "".join(map("".join, parts)))


@given(FILE, st.lists(OWN_TEXT, max_size=5))
@settings(max_examples=60)
def test_any_word_lists_work_as_in_the_reference(tmp_path_factory, sections, texts):
    file = tmp_path_factory.getbasetemp() / "lists.txt"
    file.write_text("\n".join(line for name, lines in sections.items() for line in (f"[{name}]", *lines)), "utf-8")
    lists = read_word_lists(file)
    for text in texts:
        assert compiled(text, lists) == plain(text, lists)


LIMITS = st.integers(0, 40) | st.integers(0, 3000)


@given(st.integers(0, 10**16).map(str) | st.integers(0, 2500).map(str) | RUN, LIMITS, st.none() | LIMITS)
def test_near_numbers_equal_their_reference(number, least, most):
    """A range sets the limits: the number after "LEAST to" or before "-MOST" keeps the order."""
    text = f"{number} to {most}" if most is not None else f"{least}-{number}"
    assert compiled(text, ENGLISH) == plain(text, ENGLISH)
    alone = [edit[2] for edit in compiled(number, ENGLISH)[1]]
    assert alone == [near for near in [near_numbers(number, min(1, int(number)))] if near]


def test_a_long_line_equals_the_reference():
    parts = ["He is not 5 years old, isn't he? ", "\u00e9t\u00e9 1990s ", "from 3 to 5 on 1/2/2003 ", "a@b.c "]
    text = "".join(part.replace("5", str(k)) for k in range(1_000) for part in parts)
    assert compiled(text, ENGLISH) == plain(text, ENGLISH)


@given(st.lists(TEXT, max_size=4))
@settings(max_examples=30)
def test_places_in_bytes_are_those_of_the_characters(texts):
    found = FoundBatch()
    for text in texts:
        ENGLISH.finder.find(text, found)
        found.to_bytes(text, 2)
    expected = [
        (len(text[:start].encode()), len(text[:stop].encode()), options)
        for text in texts
        for kind in plain(text, ENGLISH)
        for start, stop, options, _ in kind
    ]
    assert [(start, stop, found.lists[k]) for start, stop, k, _ in found.table.tolist()] == expected


def test_another_thread_does_not_number_the_options_of_a_batch_that_grows(monkeypatch):
    """All batches share the finder's options. To grow a batch releases the GIL, so another thread can search there."""
    text, found, concatenate, grown = "It is red.", FoundBatch(), np.concatenate, []

    def grow(arrays):
        other = FoundBatch()
        ENGLISH.finder.find("It is 5 months.", other)  # which gets the first numbers there
        ENGLISH.finder.find(text, other)
        grown.append(concatenate(arrays))
        return grown[-1]

    monkeypatch.setattr(np, "concatenate", grow)
    for _ in range(300):
        ENGLISH.finder.find(text, found)
    assert grown and found.table[:, 2].tolist() == [0] * 300


def test_a_finder_does_not_keep_a_batch_alive():
    found = FoundBatch()
    ENGLISH.finder.find("It is red and it has 777 dogs.", found)
    lists = found.lists
    del found
    assert len(lists) == 2 and sys.getrefcount(lists) == 2  # `lists` and the argument


def test_the_memory_of_a_finder_is_bounded():
    finder = EditFinder(ENGLISH)
    tracemalloc.start()
    for n in range(50):  # each text has its own list of 100 options of 20,000 characters
        finder.find(f"a{' ' * (20_000 + n)}12345 dogs", FoundBatch())
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert 2**24 < used < 2**26


@pytest.mark.slow
@pytest.mark.skipif("UNA_FAST_DATA" not in os.environ, reason="UNA_FAST_DATA is not set")
def test_real_sentences_have_the_edits_of_the_reference():
    folder = Path(os.environ["UNA_FAST_DATA"])
    with gzip.open(folder / "corpora" / "wiki_large.txt.gz", "rt", encoding="utf-8") as file:
        lines = [*itertools.islice(file, 100_000)]
    lines += (folder / "near_miss" / "pairs" / "questions.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        assert compiled(line.rstrip("\n"), ENGLISH) == plain(line.rstrip("\n"), ENGLISH)
