"""The form of a negative: its words joined by spaces, or the case and spacing of its sentence.

In both forms the words that stay are spelled as the sentence has them where the word tokenizer rewrites them (quotation
marks, "can't"), and the opening marks of a replaced word ("¿Cuánto") stay.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import accumulate

from una_fast.errors import InputError

# the Treebank tokenizer rewrites quotes: for each of its two marks, what may stand in the text
QUOTES = {"``": ('"', "''", "``"), "''": ('"', "''")}
CASES = ("as it is", "lower", "Title", "UPPER")
OPENING = "¿¡"  # Spanish marks, which the Treebank tokenizer leaves at their word


def drawn_form(term: str, quotes: Sequence[str] = tuple(QUOTES), opening: str = OPENING) -> str:
    """How a term is spelled where it is drawn. quotes: the terms that stand for a quotation mark."""
    return '"' if term in quotes else term.lstrip(opening) or term


def write_surface(text: str, words: Sequence[str], new: Sequence[str | None], lowercase: bool, keeps: bool) -> str:
    """A negative of `text`: its word k, one of `words`, is replaced by ``new[k]``, or kept where that is None.

    keeps: as the text is written, a new word in the case of the old one; otherwise the words are joined by spaces, as
    the index has them, but for quotation marks. Where a new word and its neighbour would run together ("song," and
    "album" for the comma), a space is put between; a word that the tokenizer split ("can't" is "ca" and "n't") is one
    again where both parts stay. lowercase: whether the words come from the lower-cased text. A text without words
    gives "".

    Raises:
        InputError: a word is not in the text, because the word tokenizer changes more than case and quotes.

    """
    parts, end, last_is_new = [""], 0, False
    for (start, stop), word, drawn in zip(word_spans(text, words, lowercase), words, new, strict=True):
        old, gap, is_new = text[start:stop], text[end:start], drawn is not None
        written = old if keeps or word in QUOTES else word
        if drawn is not None:
            written = opening(old) + (take_case(drawn_form(drawn), old) if keeps else drawn_form(drawn))
        if not gap and runs_together(parts[-1], written):
            gap = " " if is_new or last_is_new else ""
        elif not keeps:
            gap = " " if len(parts) > 1 else ""
        parts += [gap, written]
        end, last_is_new = stop, is_new
    return "".join([*parts, text[end:] if keeps else ""]) if words else ""


def opening(word: str) -> str:
    """The opening marks before a word; none where it is nothing else."""
    rest = word.lstrip(OPENING)
    return word[: len(word) - len(rest)] if rest else ""


def runs_together(word: str, following: str) -> bool:
    """Whether two words without a space between look like one: no punctuation mark stands on either side."""
    return bool(word and following) and not (is_mark(word[-1]) or is_mark(following[0]))


def is_mark(character: str) -> bool:
    """Whether a character is punctuation, as BERT's tokenizer has it: of Unicode, or any other visible one of ASCII."""
    return unicodedata.category(character).startswith("P") or ("!" <= character <= "~" and not character.isalnum())


def word_spans(text: str, words: Sequence[str], lowercase: bool) -> list[tuple[int, int]]:
    """Where in `text` each of its words starts and ends, in characters."""
    searched = text.lower() if lowercase else text
    spans, end = [], 0
    for word in words:
        found = [(searched.find(form, end), form) for form in QUOTES.get(word, (word,))]
        start, form = min(((at, form) for at, form in found if at >= 0), default=(-1, ""))
        if start < 0:
            raise InputError(
                f'surface="kept": the word tokenizer made {word!r} of {text!r}, a word that the text does not hold in '
                'this place: give surface="lower"'
            )
        end = start + len(form)
        spans.append((start, end))
    if len(searched) == len(text):
        return spans
    ends = list(accumulate(len(character.lower()) for character in text))  # "İ" is two characters in lower case
    places = [i for i, (a, b) in enumerate(zip([0, *ends], ends, strict=False)) for _ in range(b - a)] + [len(text)]
    return [(places[start], places[stop - 1] + 1) for start, stop in spans]


def take_case(word: str, model: str) -> str:
    """`word` in the case of `model`: lower, Title or UPPER; as it is where `model` is none of these."""
    cased = [character for character in model if character.lower() != character.upper()]
    if not cased:
        return word
    is_title = cased[0].isupper() and all(map(str.islower, cased[1:]))
    return in_case(word, "lower" if model.islower() else "Title" if is_title else "UPPER" if model.isupper() else "")


def in_case(word: str, case: str) -> str:
    """`word` in one of CASES."""
    if case == "lower":
        return word.lower()
    if case == "Title":
        return word[:1].upper() + word[1:].lower()
    return word.upper() if case == "UPPER" else word
