"""Detects by word lists that two similar texts contradict each other."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from una_fast.augment.word_lists import WordListFiles, WordLists, as_files, read_word_lists
from una_fast.errors import InputError, suggests_keywords


@suggests_keywords
def contradicts(first: str, second: str, *, word_lists: WordListFiles = None) -> bool:
    """Return whether two texts share at least half of their words and contradict each other.

    They contradict each other if their numbers differ, or if the count of opposites and negations is odd. Numbers are
    digits, and words such as "three", months, days and units. Encoders give such texts nearly the same embedding. A
    pair takes about 15 us.

    Args:
        first: any text.
        second: any text. ``contradicts(first, second)`` equals ``contradicts(second, first)``.
        word_lists: one or several files that replace the English word lists, in the format of
            una_fast/augment/english.txt.

    Raises:
        InputError: a text is not a str, or a file of word lists cannot be read.
    """
    for text in (first, second):
        if not isinstance(text, str):
            raise InputError(f"contradicts: {text!r} is not a str: give two texts")
    lists = _lists(*((file, _changed(file)) for file in as_files(word_lists)))
    sides = [lists.finder.words(text)[0] for text in (first, second)]
    a, b = map(set, sides)
    if 2 * len(a & b) < max(len(a), len(b)):
        return False
    negations = sum(word in lists.negative for words in sides for word in words)
    only = a - b - lists.negative, b - a - lists.negative  # a negation is not counted as the opposite of "always" too
    opposites = min(_n_opposites(*pair, lists) for pair in (only, only[::-1]))
    return (negations + opposites) % 2 > 0 or lists.finder.number_words(first) != lists.finder.number_words(second)


@lru_cache(maxsize=16)
def _lists(*files: tuple[str | Path, int]) -> WordLists:
    """Read word lists once per process. files: each file, and the time of its last change."""
    return read_word_lists([file for file, _ in files])


def _changed(file: str | Path) -> int:
    return Path(file).stat().st_mtime_ns if Path(file).exists() else 0


def _n_opposites(these: set[str], those: set[str], lists: WordLists) -> int:
    return sum(not those.isdisjoint(lists.opposites.get(word, ())) for word in these)
