"""Words that an augmenter keeps: they are neither replaced nor drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from una_fast.errors import InputError
from una_fast.index.index import Index


@dataclass(frozen=True)
class KeptWords:
    """Which words are kept: punctuation, and those of a list. It is false if it keeps none.

    punctuation: whether words without a letter or digit are kept; words: further ones, as an index has them.
    """

    punctuation: bool = False
    words: frozenset[str] = frozenset()

    @classmethod
    def of(cls, punctuation: bool, source: str | Path | Iterable[str], lowercase: bool) -> KeptWords:
        """The setting `keep_punctuation`, and `keep_words` as `Augmenter` takes it. lowercase: of the index."""
        words = read_words(source)
        return cls(punctuation, frozenset(word.lower() for word in words) if lowercase else words)

    def __bool__(self) -> bool:
        return self.punctuation or bool(self.words)

    def among(self, words: Sequence[str]) -> np.ndarray:
        """Whether each word is kept: bool (n,). Punctuation has no letter and no digit of any script."""
        kept = (word in self.words or (self.punctuation and not any(map(str.isalnum, word))) for word in words)
        return np.fromiter(kept, bool, len(words))

    def terms(self, index: Index) -> np.ndarray:
        """Whether each term of an index is kept: bool (V,)."""
        return self.among([*index.terms]) if self else np.zeros(index.n_terms, dtype=bool)

    def rows(self, index: Index) -> np.ndarray:
        """int64, ascending: the documents of an index without a word that may be replaced, blank ones among them."""
        if not self:
            return index.word_ids.empty_rows()
        words = index.word_ids
        n_others = np.searchsorted(np.flatnonzero(~self.terms(index)[words.values]), words.indptr)  # before each row
        return np.flatnonzero(n_others[1:] == n_others[:-1])


def read_words(source: str | Path | Iterable[str]) -> frozenset[str]:
    """The words of `source`: a file with a word a line, in UTF-8, or an iterable of str; "" is no file.

    Raises:
        InputError: the file cannot be read, or an item is not one word.
    """
    if isinstance(source, Path) or (isinstance(source, str) and source):
        place, words = f"{source}, line", dict(read_lines("keep_words", source, "a file with a word a line"))
    else:
        place, words = "item", dict(enumerate(source, 1))
    for number, word in words.items():
        if not isinstance(word, str) or len(word.split()) != 1:
            raise InputError(
                f"keep_words: {place} {number}: {word!r} is not one word: give words as Index.words has them"
            )
    return frozenset(map(str.strip, words.values()))


def read_lines(setting: str, file: str | Path, what: str) -> list[tuple[int, str]]:
    """The lines of a file in UTF-8 that are not blank, with their numbers, from 1. what: the file should be.

    Raises:
        InputError: the file cannot be read; it names the `setting`.
    """
    try:
        lines = Path(file).read_bytes().decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"{setting}: {file}: {reason}: give {what}") from error
    return [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
