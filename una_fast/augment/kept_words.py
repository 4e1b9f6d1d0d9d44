"""The words that an augmentation never replaces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from una_fast.errors import InputError
from una_fast.index.index import Index
from una_fast.storage.files import numbered_lines


@dataclass(frozen=True)
class KeptWords:
    """A rule that decides which words are never replaced. ``bool(kept_words)`` is False if all may be replaced."""

    punctuation: bool = False  # keeps words without a letter or digit
    words: frozenset[str] = frozenset()  # keeps these words, spelled as in the index
    replaceable: frozenset[str] | None = None  # if given, keeps all words except these

    @classmethod
    def of(cls, keep_punctuation: bool, keep_words: str | Path | Iterable[str], lowercase: bool) -> KeptWords:
        """Make a `KeptWords` from the arguments of `Augmenter`. lowercase: whether the index lower-cases words."""
        words = read_words(keep_words)
        return cls(keep_punctuation, frozenset(word.lower() for word in words) if lowercase else words)

    def __bool__(self) -> bool:
        return self.punctuation or bool(self.words) or self.replaceable is not None

    def among(self, words: Sequence[str]) -> np.ndarray:
        """Return whether each word is kept: bool (n_words,)."""
        kept = (
            word in self.words
            or (self.punctuation and not any(map(str.isalnum, word)))
            or (self.replaceable is not None and word not in self.replaceable)
            for word in words
        )
        return np.fromiter(kept, bool, len(words))

    def terms(self, index: Index) -> np.ndarray:
        """Return whether each term of an index is kept: bool (n_terms,)."""
        return self.among([*index.terms]) if self else np.zeros(index.n_terms, dtype=bool)

    def unchangeable_rows(self, index: Index) -> np.ndarray:
        """Return the row numbers of sentences without a replaceable word, such as blank ones: int64, ascending."""
        words = index.word_ids
        if not self:
            return words.empty_rows()
        replaceable = np.flatnonzero(~self.terms(index)[words.values])
        n_before = np.searchsorted(replaceable, words.indptr)  # how many replaceable words precede each row
        return np.flatnonzero(n_before[1:] == n_before[:-1])


def read_words(source: str | Path | Iterable[str]) -> frozenset[str]:
    """Read words from a UTF-8 file with one word per line, or from an iterable of str. Return no words for ""."""
    what = "a file with one word per line, or a list of words"
    if not isinstance(source, (Path, Iterable)):
        raise InputError(f"keep_words={source!r}: give {what}")
    if isinstance(source, Path) or (isinstance(source, str) and source):
        place, words = f"{source}, line", numbered_lines("keep_words", source, what)
    else:
        place, words = "item", [*enumerate(source, 1)]
    for number, word in words:
        if not isinstance(word, str) or len(word.split()) != 1:
            raise InputError(f"keep_words: {place} {number}: {word!r} is not one word: spell words as Index.words does")
    return frozenset(word.strip() for _, word in words)
