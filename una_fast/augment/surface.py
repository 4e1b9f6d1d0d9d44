"""Negatives with the case and spacing of their sentence: only replaced words differ, and they take the old case."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from una_fast.errors import InputError

# the Treebank tokenizer rewrites quotes: for each of its two marks, what may stand in the text
QUOTES = {"``": ('"', "''", "``"), "''": ('"', "''")}


def keep_surface(text: str, words: Sequence[str], new: Sequence[str | None], lowercase: bool) -> str:
    """`text` with its word k, one of `words`, replaced by ``new[k]`` in the case of that word, or kept where None.

    lowercase: whether the words are those of the lower-cased text. A text without words gives "".

    Raises:
        InputError: a word is not in the text, because the word tokenizer changes more than case and quotes.

    """
    parts, end = [], 0
    for (start, stop), word in zip(word_spans(text, words, lowercase), new, strict=True):
        if word is not None:
            parts += [text[end:start], take_case(word, text[start:stop])]
            end = stop
    return "".join([*parts, text[end:]]) if words else ""


def word_spans(text: str, words: Sequence[str], lowercase: bool) -> list[tuple[int, int]]:
    """Where in `text` each of its words starts and ends, in characters."""
    searched = text.lower() if lowercase else text
    spans, end = [], 0
    for word in words:
        start, form = _find(searched, word, end)
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


def _find(text: str, word: str, start: int) -> tuple[int, str]:
    """The first place of `word` from `start` on, and the form in which it is there; -1 if there is none."""
    found = [(text.find(form, start), form) for form in QUOTES.get(word, (word,))]
    return min(((at, form) for at, form in found if at >= 0), default=(-1, ""))


def take_case(word: str, model: str) -> str:
    """`word` in the case of `model`: lower, Title or UPPER; as it is where `model` is none of these."""
    cased = [character for character in model if character.lower() != character.upper()]
    if not cased:
        return word
    if model.islower():
        return word.lower()
    if cased[0].isupper() and all(character.islower() for character in cased[1:]):
        return word[:1].upper() + word[1:].lower()
    return word.upper() if model.isupper() else word
