"""Where a tokenizer begins a new sub-word within a chunk: between a word and a punctuation mark beside it.

Let "song," be a chunk. If no sub-word can reach from "g" over ",", whatever is around them, then the chunk has the ids
of "song" and the ids that "," has inside a chunk; so "song" can be replaced without another look at the mark. For
three kinds of pipeline this is known:

- BertPreTokenizer makes a word of every mark, whatever is beside it.
- The expression of ByteLevel and `pipelines.WORD_EXPRESSIONS` end a run of letters and digits before a mark. After a
  mark a new run begins, but for the apostrophe ("'s"); WORD_EXPRESSIONS take one mark along with the letters behind it,
  unless a space stands before the mark.
- Without a split, a sub-word can reach over a letter and a mark only if the vocabulary has one with these two side by
  side; the ranks or scores of the others are then compared on either side by itself.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable
from functools import cache

from una_fast.tokens.pipelines import SPACE_MARK, WORD_EXPRESSIONS, Step, splits_at_space, types_of

MARKS = string.punctuation + "‘’“”–—«»„·•§±×÷€£"  # at most 64, one bit each


class WordJoins:
    """The marks beside which a tokenizer begins a new sub-word.

    splits: the steps of its pre-tokenizer; model: as tokenizer.json describes it; normalize: its normaliser.
    between_marks: two marks side by side are two words; after_space_only: a word after a mark is one of its own only
    where a space stands before the mark.
    """

    def __init__(self, splits: list[Step], model: Step, normalize: Callable[[str], str]):
        kinds = types_of(splits)
        self.between_marks = kinds == ["BertPreTokenizer"]
        self.after_space_only = kinds == ["Split", "ByteLevel"] and splits[0]["pattern"].get("Regex") in (
            WORD_EXPRESSIONS.values()
        )
        by_expression = kinds == ["ByteLevel"] or self.after_space_only
        known = self.between_marks or by_expression
        unsplit = all(step["type"] in ("WhitespaceSplit", "Metaspace") or splits_at_space(step) for step in splits)
        self._pairs: set[str] = set()
        marks = "".join(mark for mark in MARKS if normalize(f"a{mark}a") == f"{normalize('a')}{mark}a")
        if not known and unsplit and model["type"] in ("BPE", "Unigram"):
            pieces = {piece for piece, _ in model["vocab"]} if model["type"] == "Unigram" else {*model["vocab"]}
            marks = "".join(mark for mark in marks if mark in pieces)
            self._pairs = {piece[i : i + 2] for piece in pieces for i in range(len(piece) - 1)}
        elif not known:
            marks = ""
        self._before = marks
        self._after = marks.replace("'", "") if by_expression else marks

    def before(self, character: str) -> int:
        """Bit m: MARKS[m] begins a new sub-word after this last character of a word, in any case."""
        return self._bits(character, self._before, "{0}{1}")

    def after(self, character: str) -> int:
        """Bit m: this first character of a word, in any case, begins a new sub-word after MARKS[m]."""
        return self._bits(character, self._after, "{1}{0}")

    def _bits(self, character: str, marks: str, pair: str) -> int:
        if not _is_letter_or_digit(character):
            return 0
        cases = {character, character.lower(), character.upper()}
        fits = (mark for mark in marks if self._pairs.isdisjoint(pair.format(one, mark) for one in cases))
        return sum(1 << MARKS.index(mark) for mark in fits)


def mark_number(character: str) -> int:
    """The place of a mark in MARKS; -1 for any other character."""
    return MARKS.find(character)


@cache
def _is_letter_or_digit(character: str) -> bool:
    """Whether it is one for every normaliser: a ligature becomes letters, "⑴" does not."""
    composed = unicodedata.normalize("NFKC", character) + character
    return all(unicodedata.category(one)[0] in "LN" for one in composed)


assert len(MARKS) <= 64 and SPACE_MARK not in MARKS
