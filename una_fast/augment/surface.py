"""surface="kept": a sentence as it is written, except for its replaced words.

A new word takes the case of the word that it replaces, and the opening marks before that word ("¿Cuánto") stay.
`una_fast._kernels.ids.written` does the same for rows of an index.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from una_fast.arrays import StringTable
from una_fast.corpus.word_tokenizers import SCRIPTS
from una_fast.errors import InputError

# the Treebank tokenizer rewrites quotes: for each of its two marks, what may stand in the text
QUOTES = {"``": ('"', "''", "``"), "''": ('"', "''")}
CASES = ("as it is", "lower", "Title", "UPPER")
OPENING = "¿¡"  # Spanish marks, which the Treebank tokenizer leaves at their word
WITHOUT_SPACES = re.compile(f"[{''.join(SCRIPTS.values())}]")


def write_kept(
    text: str, words: Sequence[str], new: Sequence[int | None], strings: StringTable, lowercase: bool
) -> str:
    """`text` with its word k, one of `words`, replaced by the term ``new[k]``, or kept where that is None.

    Where a new word and its neighbour would look like one ("song," and "album" for the comma), a space is put between.
    A text without words gives "".

    Args:
        text: the sentence.
        words: as the word tokenizer makes them of it.
        new: a number for each word, 0 to V - 1, or None.
        strings: V terms as they are spelled where they are drawn, in each of CASES (see `in_cases`).
        lowercase: whether the words come from the lower-cased text.

    Raises:
        InputError: a word is not in the text, because the word tokenizer changes more than case and quotes.

    """
    parts, end, last_is_new, n_terms = [""], 0, False, len(strings) // len(CASES)
    for (start, stop), drawn in zip(word_spans(text, words, lowercase), new, strict=True):
        written, gap, is_new = text[start:stop], text[end:start], drawn is not None
        if drawn is not None:
            written = opening(written) + strings[case_of(written) * n_terms + drawn]
        if not gap and (is_new or last_is_new) and runs_together(parts[-1], written):
            gap = " "
        parts += [gap, written]
        end, last_is_new = stop, is_new
    return "".join([*parts, text[end:]]) if words else ""


def drawn_form(term: str, quotes: Sequence[str] = tuple(QUOTES), opening: str = OPENING) -> str:
    """How a term is spelled where it is drawn. quotes: the terms that stand for a quotation mark."""
    return '"' if term in quotes else term.lstrip(opening) or term


def opening(word: str) -> str:
    """The opening marks before a word; none where it is nothing else."""
    rest = word.lstrip(OPENING)
    return word[: len(word) - len(rest)] if rest else ""


def runs_together(word: str, following: str) -> bool:
    """Whether two words without a space between look like one."""
    return bool(word and following) and not (stands_apart(word[-1]) or stands_apart(following[0]))


def stands_apart(character: str) -> bool:
    """Whether a word may stand beside this character without a space.

    It is punctuation, as BERT's tokenizer has it (of Unicode, or any other visible character of ASCII but letters and
    digits), or of a script without spaces between words.
    """
    is_mark = unicodedata.category(character).startswith("P") or ("!" <= character <= "~" and not character.isalnum())
    return is_mark or WITHOUT_SPACES.match(character) is not None


def word_spans(text: str, words: Sequence[str], lowercase: bool) -> list[tuple[int, int]]:
    """Where in `text` each of its words starts and ends, in characters. O(len(text)) time."""
    searched = text.lower() if lowercase else text
    spans, end = [], 0
    ahead: dict[str, int] = {}  # where each form of a quotation mark comes next; len(searched): nowhere
    for word in words:
        start, form = len(searched), word
        if word not in QUOTES:
            start = searched.find(word, end)
        for mark in QUOTES.get(word, ()):
            if ahead.get(mark, -1) < end:
                at = searched.find(mark, end)
                ahead[mark] = at if at >= 0 else len(searched)
            start, form = min((start, form), (ahead[mark], mark))
        if start < 0 or start == len(searched):
            raise InputError(
                f'surface="kept": the word tokenizer made {word!r} of {text!r}, a word that the text does not hold in '
                'this place: give surface="paper"'
            )
        end = start + len(form)
        spans.append((start, end))
    if len(searched) == len(text):
        return spans
    ends = list(accumulate(len(character.lower()) for character in text))  # "İ" is two characters in lower case
    places = [i for i, (a, b) in enumerate(zip([0, *ends], ends, strict=False)) for _ in range(b - a)] + [len(text)]
    return [(places[start], places[stop - 1] + 1) for start, stop in spans]


def case_of(word: str) -> int:
    """The place in CASES of a word's case; 0, as it is, for one that has none, or another."""
    cased = [character for character in word if character.lower() != character.upper()]
    if not cased:
        return 0
    if word.islower():
        return 1
    if cased[0].isupper() and all(map(str.islower, cased[1:])):
        return 2
    return 3 if word.isupper() else 0


def in_cases(strings: StringTable) -> StringTable:
    """4 V strings: V strings in each of CASES."""
    beyond_ascii = np.unique(np.searchsorted(strings.offsets, np.flatnonzero(strings.utf8 >= 0x80), side="right") - 1)
    lower, upper = (np.frombuffer(bytearray(change(strings.utf8.tobytes())), np.uint8) for change in ASCII_CASES)
    title, firsts = lower.copy(), strings.offsets[:-1][np.diff(strings.offsets) > 0]
    title[firsts] = upper[firsts]
    table = strings
    for case, utf8 in zip(CASES[1:], (lower, title, upper), strict=True):
        changed = [in_case(strings[i], case) for i in beyond_ascii.tolist()]
        table = table.followed_by(StringTable(utf8, strings.offsets).exchanged(beyond_ascii, changed))
    return table


def in_case(word: str, case: str) -> str:
    """`word` in one of CASES."""
    if case == "lower":
        return word.lower()
    if case == "Title":
        return word[:1].upper() + word[1:].lower()
    return word.upper() if case == "UPPER" else word


ASCII_CASES = (bytes.lower, bytes.upper)  # they change the bytes of ASCII letters alone
