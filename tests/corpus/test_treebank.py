"""The compiled Treebank rules give NLTK's words."""

import re
import sys
import unicodedata

import pytest
import regex
from hypothesis import example, given
from nltk import word_tokenize

from support.alphabet import any_text, nasty_text
from una_fast._kernels.words.treebank import is_word_beyond_letters, treebank_words

SENTENCES = [
    "",
    " ",
    '"Good muffins" cost $3.88 (roughly 3,36 euros)\nin New York.  Please buy me\ntwo of them.\nThanks.',
    "They'll save and invest more, won't they? I cannot say; d'ye know?",
    "'Tis the 90's -- 'twas 'the' dogs' ``day''...",
    "The end (of it.) ",
    "He said 'so.' \"",
    "a ' ' ' b '",
    "x.?y.. z.",
    "10:30, 3,000: a,b :: c:",
    "ends in a colon:\n",
    "two\x1cwords\x85three four",
    "'t'is'n'the'ſ'sıx 'tıs gİmme",
    "more'n'tıs'twas cannot'tis",
    "\"\"quoted\"\" ''twice'' `ticks` ```",
    "«guillemets» “curly” ‘single’ „low“ — – ‒ ―",
    "\ud800 lone 'surrogates' stay.",
]


def nltk_words(line: str) -> list[str]:
    return word_tokenize(line, preserve_line=True)


@pytest.mark.parametrize("line", SENTENCES)
def test_words_of_chosen_sentences(line: str) -> None:
    assert treebank_words(line) == nltk_words(line)
    assert treebank_words(line.lower()) == nltk_words(line.lower())


@given(nasty_text | any_text)
@example("gimme'tis'twas")
def test_words_of_any_text(line: str) -> None:
    assert treebank_words(line) == nltk_words(line)
    assert treebank_words(line.lower()) == nltk_words(line.lower())


@pytest.mark.parametrize("piece", ["'", '"', "`", "``", "''", ".", ":", ",:", "-", "n't ", "' ", " '", '("', "can"])
def test_long_runs_fit_the_buffer(piece: str) -> None:
    for line in (piece * 500, piece * 500 + "a.", "x" + piece * 501 + "\n"):
        assert treebank_words(line) == nltk_words(line)


EVERY_CHARACTER = "".join(map(chr, range(sys.maxunicode + 1)))


def matching(pattern: regex.Pattern | re.Pattern) -> set[int]:
    return {match.start() for match in pattern.finditer(EVERY_CHARACTER)}


def test_character_classes_are_those_of_regex() -> None:
    """Where Python knows the character: `regex` has a Unicode of its own, nearly always a later one."""
    known = {ord(c) for c in EVERY_CHARACTER if unicodedata.category(c) != "Cn"}
    words = {ord(c) for c in EVERY_CHARACTER if c.isalpha() or c.isdecimal() or c == "_" or is_word_beyond_letters(c)}
    assert words & known == matching(regex.compile(r"\w")) & known
    assert {ord(c) for c in EVERY_CHARACTER if c.isdecimal()} & known == matching(regex.compile(r"\d")) & known
    spaces = {ord(c) for c in EVERY_CHARACTER if c.isspace()} - {*range(0x1C, 0x20)}
    assert spaces == matching(regex.compile(r"\s"))


@pytest.mark.parametrize(("engine", "letters"), [(re, "acdegilmnorstwyh"), (regex, "revlmtsdn")])
def test_only_three_characters_beyond_ascii_equal_letters_of_the_rules_in_any_case(engine, letters: str) -> None:
    special = {code for code in matching(engine.compile(f"(?i)[{letters}]")) if code > 0x7F}
    assert special == ({0x130, 0x131, 0x17F} if engine is re else {0x17F})
    assert all(engine.match("(?i)i", chr(code)) for code in special - {0x17F})
    assert engine.match("(?i)s", "\u017f")
