"""A sentence -> the small edits that change what it means, found by lists of words.

An edit replaces one span of the written sentence. Which of the edits is made is drawn elsewhere, so everything here is
a pure function of the text and the lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from una_fast.augment.eda import FUNCTION_WORDS
from una_fast.augment.word_lists import WordLists

# A number with its separators, or a word: letters of any script and their marks, with at most one apostrophe inside.
LETTER = r"[^\s\d!-/:-@\[-`{-~\u00a1-\u00bf\u2010-\u205e\u0964\u3000-\u303f\uff00-\uff0f\uff1a-\uff20]"
TOKENS = re.compile(rf"\d+(?:[.,]\d+)*|{LETTER}+(?:['\u2019]{LETTER}+)?")
ORDINALS = {1: "st", 2: "nd", 3: "rd"}
YEARS = range(1800, 2100)
ADDRESS = re.compile(r"@|://|www\.")


class Edit(NamedTuple):
    """``text[start:stop]`` becomes one of `options`, none of which is equal to it. why: for `explain`."""

    start: int
    stop: int
    options: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Sentence:
    """A text, and the span and the lower case of each of its numbers and words."""

    text: str
    spans: list[tuple[int, int]]
    words: list[str]

    @classmethod
    def of(cls, text: str) -> Sentence:
        """The sentence of a text, in which both apostrophes are the same."""
        spans = [match.span() for match in TOKENS.finditer(text)]
        lower = text.lower().replace("\u2019", "'")
        if len(lower) != len(text):  # a character with a longer lower case, as in "İstanbul"
            return cls(text, spans, [text[start:stop].lower() for start, stop in spans])
        return cls(text, spans, [lower[start:stop] for start, stop in spans])

    def written(self, i: int) -> str:
        """Word i as it is written."""
        start, stop = self.spans[i]
        return self.text[start:stop]

    def follows(self, i: int) -> bool:
        """Whether only spaces are between word i and the word before it."""
        return i > 0 and self.text[self.spans[i - 1][1] : self.spans[i][0]].isspace()

    def is_name(self, i: int) -> bool:
        """Whether word i looks like a name or a part of one: a capital after a word in lower case or another name."""
        return self.follows(i) and self.written(i).istitle() and not self.text.istitle()


def polarity_edits(sentence: Sentence, lists: WordLists) -> list[Edit]:
    """Opposites of words, negations to insert, and negations to remove."""
    found = []
    for i, word in enumerate(sentence.words):
        if word in lists.opposites and lists.allow(sentence.words, i) and not sentence.is_name(i):
            found.append(_replaced(sentence, i, lists.opposites[word], f"the opposite of {word}"))
        elif word in lists.affirmed and lists.allow(sentence.words, i):
            found.append(_replaced(sentence, i, (lists.affirmed[word],), f"{word} without its negation"))
        elif word in lists.negated:
            found += _negated_auxiliary(sentence, i, lists)
        elif word in lists.negations:
            found += _without_negation(sentence, i, lists)
        elif word == "to":
            found += _negated_infinitive(sentence, i, lists)
    return found + _negated_command(sentence, lists)


def _without_negation(sentence: Sentence, i: int, lists: WordLists) -> list[Edit]:
    for phrase in lists.negations[sentence.words[i]]:
        stop = i + len(phrase)
        if tuple(sentence.words[i:stop]) == phrase and sentence.follows(i):
            span = sentence.spans[i - 1][1], sentence.spans[stop - 1][1]
            return [Edit(*span, ("",), f"{' '.join(phrase)} is removed")] * lists.allow(sentence.words, i)
    return []


def _is_negated(words: list[str], lists: WordLists) -> bool:
    return any(word in lists.affirmed or word in lists.negations for word in words)


def _negated_auxiliary(sentence: Sentence, i: int, lists: WordLists) -> list[Edit]:
    """An auxiliary with a negation after it, after the pronoun that follows it, or with its negative form."""
    words, word = sentence.words, sentence.words[i]
    if i + 1 == len(words) or not sentence.follows(i + 1) or not lists.allow(words, i):
        return []
    if _is_negated(words[max(0, i - 1) : i + 4], lists):
        return []
    if word in ("has", "have", "had") and not _has_participle(words[i + 1 : i + 3], lists):
        return []
    form, after, why = lists.negated[word], words[i + 1], f"a negation at {word}"
    if after in lists.words["subjects"]:
        start, stop = sentence.spans[i][0], sentence.spans[i + 1][1]
        subject, auxiliary = sentence.text[sentence.spans[i][1] : stop], sentence.written(i)
        options = f"{auxiliary}{subject} {lists.negation}", f"{like(auxiliary, form)}{subject}"
        return [Edit(start, stop, options, why)]
    is_subject = after in lists.words["not an infinitive"] or not sentence.written(i + 1).islower()
    can_follow = i > 0 and words[i - 1] not in lists.words["question words"] and not is_subject
    return [_replaced(sentence, i, (form, f"{word} {lists.negation}") if can_follow else (form,), why)]


def _has_participle(words: list[str], lists: WordLists) -> bool:
    return any(word.endswith(("ed", "en")) or word in lists.words["participles"] for word in words)


def _negated_infinitive(sentence: Sentence, i: int, lists: WordLists) -> list[Edit]:
    words = sentence.words
    if not i or i + 1 == len(words) or words[i - 1] not in lists.words["infinitives"] or not sentence.follows(i + 1):
        return []
    is_verb = words[i + 1] not in lists.words["not an infinitive"] and sentence.written(i + 1).islower()
    if not is_verb or _is_negated(words[max(0, i - 4) : i], lists):
        return []
    options = f"{lists.negation} to", f"to {lists.negation}"
    return [_replaced(sentence, i, options, f"a negation of to {words[i + 1]}")]


def _negated_command(sentence: Sentence, lists: WordLists) -> list[Edit]:
    if not sentence.words or sentence.words[0] not in lists.words["commands"] or len(sentence.words) < 2:
        return []
    if not sentence.follows(1) or sentence.text.rstrip().endswith("?"):
        return []
    verb = sentence.written(0)
    rest = verb if len(verb) > 1 and verb.isupper() else verb.lower()
    options = tuple(f"{like(verb, negation)} {rest}" for negation in (lists.negated["do"], f"do {lists.negation}"))
    return [Edit(*sentence.spans[0], options, f"a negation of {rest}")]


def _replaced(sentence: Sentence, i: int, options: Iterable[str], why: str) -> Edit:
    """Word i becomes one of the options, in its case."""
    old = sentence.written(i)
    return Edit(*sentence.spans[i], tuple(new for option in options if (new := like(old, option)) != old), why)


def like(old: str, new: str) -> str:
    """`new` with the capitals of `old`."""
    if len(old) > 1 and old.isupper():
        return new.upper()
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


def number_edits(sentence: Sentence, lists: WordLists) -> list[Edit]:
    """Numbers in digits, and words that are numbers, ordinals, months, days or units."""
    found = []
    for i, word in enumerate(sentence.words):
        if word[0].isdecimal():
            found += _digit_edits(sentence, i)
        elif word in lists.classes and lists.allow(sentence.words, i) and not _is_part_of_name(sentence, i, lists):
            others = [other for other in lists.classes[word] if other not in sentence.words]
            if others:
                found.append(_replaced(sentence, i, others, f"another word like {word}"))
    return found


def _is_part_of_name(sentence: Sentence, i: int, lists: WordLists) -> bool:
    return sentence.is_name(i) and sentence.words[i] not in lists.words["capitalised"]


def _digit_edits(sentence: Sentence, i: int) -> list[Edit]:
    """Other values of number i. One of several parts, such as a date, is changed in its parts."""
    text, (start, stop) = sentence.text, sentence.spans[i]
    before, after = text[start - 1 : start], text[stop : stop + 1]
    if (before.isalpha() and after.isalpha()) or _in_address(text, start, stop):
        return []  # in a name such as "b2b", or an address
    parts = re.findall(r"\d+", text[start:stop])
    grouped = len(parts) > 2 and not all(len(part) == 3 for part in parts[1:])
    found = []
    for match in re.finditer(r"\d+" if grouped else r".+", text[start:stop]):
        number, end = match[0], start + match.end()
        rest = text[end : end + 3].lower()
        if text[: start + match.start()].endswith(":"):
            continue  # the minutes of a time
        most = 100 if rest[:1] == "%" else 12 if re.match(r" ?[ap]\.?m", rest) else None
        suffix = ORDINALS.values() if rest[:2] in ("st", "nd", "rd", "th") else ()
        options = near_numbers(number, most)
        if suffix:
            end, options = end + 2, tuple(like(text[end : end + 2], ordinal(int(other))) for other in options)
        if options:
            found.append(Edit(start + match.start(), end, options, f"another number than {number}"))
    return found


def _in_address(text: str, start: int, stop: int) -> bool:
    """Whether a span is in a mail or web address."""
    start = text.rfind(" ", 0, start) + 1
    end = text.find(" ", stop)
    return ADDRESS.search(text[start : end if end >= 0 else len(text)]) is not None


def ordinal(n: int) -> str:
    """1 -> "1st"."""
    return f"{n}{'th' if 10 < n % 100 < 14 else ORDINALS.get(n % 10, 'th')}"


def near_numbers(number: str, most: int | None = None) -> tuple[str, ...]:
    """Other values near a number, as they would be written in its place. most: the highest that makes sense."""
    digits = "".join(filter(str.isdecimal, number))
    if len(digits) > 15:
        return ()
    n, zero, plain = int(digits), ord(digits[0]) - int(digits[0]), len(digits) == len(number)
    if plain and n in YEARS:
        values = [n + step for step in range(-9, 10)]
    else:
        unit = 1
        while n > 20 and n // unit % 10 == 0 and n // unit > 10:
            unit *= 10
        steps = max(5, min(n // unit // 2, 50))
        values = [n + step * unit for step in range(-steps, steps + 1)]
        tail = re.split("[.,]", number)
        least = 10 ** (len(digits) - 1) if len(tail) > 1 and all(len(part) == 3 for part in tail[1:]) else 1
        values = [value for value in values if value >= min(least, n)]
    width = 0 if plain and digits[0] != chr(zero) else len(digits)
    values = [value for value in values if value != n and (value or n) and (most is None or n > most or value <= most)]
    return tuple(_like_number(f"{value:0{width}}", number, zero) for value in values)


def _like_number(digits: str, number: str, zero: int) -> str:
    """`digits` with the separators of `number`, counted from its end, and in its script."""
    out = [chr(zero + int(digit)) for digit in digits]
    for place, character in enumerate(reversed(number)):
        if not character.isdecimal():
            out.insert(len(out) - place, character)
    return "".join(out)


def swap_edits(sentence: Sentence, importance: Mapping[str, float] | None = None) -> list[Edit]:
    """Each two words of similar importance, at least the mean of the sentence, change places."""
    scores = importance or {}
    words = [i for i, word in enumerate(sentence.words) if not word[0].isdecimal() and word in scores]
    if not words:
        return []
    mean = sum(scores[sentence.words[i]] for i in words) / len(words)
    content = [i for i in words if scores[sentence.words[i]] >= mean and sentence.words[i] not in FUNCTION_WORDS]
    pairs = [(i, j) for i, j in combinations(content, 2) if j > i + 1 and sentence.words[i] != sentence.words[j]]
    pairs.sort(key=lambda pair: abs(scores[sentence.words[pair[0]]] - scores[sentence.words[pair[1]]]))
    return [_swapped(sentence, i, j) for i, j in pairs[: max(1, len(content) // 2)]]


def _swapped(sentence: Sentence, i: int, j: int) -> Edit:
    first, second = sentence.written(i), sentence.written(j)
    between = sentence.text[sentence.spans[i][1] : sentence.spans[j][0]]
    if i == 0 and first.istitle():  # the other one gets the capital of the sentence, a name keeps its own
        text = f"{like(first, second)}{between}{first.lower()}"
    else:
        text = f"{second}{between}{first}"
    return Edit(sentence.spans[i][0], sentence.spans[j][1], (text,), f"{first} and {second} change places")
