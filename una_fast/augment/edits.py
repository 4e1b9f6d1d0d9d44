"""Finds small edits that change what a sentence means. Uses word lists. Nothing here is random."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from una_fast.augment.counter_rng import pick
from una_fast.augment.word_lists import WordLists

# TOKENS matches a number with its separators, or a word: letters of any script with their accents, and at most one
# apostrophe inside.
MARKS = r"!-/:-@\[-`{-~\u00a1-\u00bf\u2010-\u205e\u0964\u3000-\u303f\uff00-\uff0f\uff1a-\uff20"
WORD = rf"[^\s\d{MARKS}]+"
TOKENS = re.compile(rf"(\d+(?:[.,]\d+)*|{WORD}(?:['\u2019]{WORD})?)")
DIGIT = re.compile(r"\d")
HOUR = re.compile(r"\s?[ap]\.?m\b", re.IGNORECASE)
ADDRESS = re.compile(r"@|://|www\.")
ENDINGS = {1: "st", 2: "nd", 3: "rd"}  # of ordinals; all others end in "th"
YEARS = range(1800, 2100)
NEAR_YEARS, SMALL, FEW, MANY = 9, 20, 5, 50  # see `near_numbers`
LONGEST_NUMBER = 15  # digits; longer numbers are not changed


class Edit(NamedTuple):
    """A possible edit: it replaces ``text[start:stop]`` with one of `options`, which all differ from the old text."""

    start: int
    stop: int
    options: Sequence[str]
    why: str  # the rule that found the edit, for `explain`

    def drawn(self, bits: int) -> Edit:
        """Return this edit with only one of its options, chosen by 64 random bits."""
        return self._replace(options=(pick(bits, self.options),))

    def applied(self, text: str) -> str:
        """Return `text` with ``options[0]`` instead of ``text[start:stop]``."""
        return f"{text[: self.start]}{self.options[0]}{text[self.stop :]}"


class Sentence:
    """A text, split into words. A number is also a word."""

    def __init__(self, text: str):
        self.text = text
        self.parts = TOKENS.split(text)  # alternately the text between two words, and a word as written
        self.words = [word.lower().replace("\u2019", "'") for word in self.parts[1::2]]

    def word(self, i: int) -> str:
        """Return word i as written in the text."""
        return self.parts[2 * i + 1]

    def start(self, i: int) -> int:
        """Return the position in the text where word i starts."""
        return sum(map(len, self.parts[: 2 * i + 1]))

    def follows(self, i: int) -> bool:
        """Return whether words i - 1 and i exist, and only white space separates them."""
        return 0 < i < len(self.words) and self.parts[2 * i].isspace()

    def is_name(self, i: int) -> bool:
        """Return whether word i is probably a name: capitalised inside a sentence that is not in title case."""
        return self.follows(i) and self.word(i).istitle() and not self.text.istitle()

    def replaced(self, i: int, options: Iterable[str], why: str, n: int = 1) -> list[Edit]:
        """Return a list with one edit, in which one of `options` replaces the n words that start at word i.

        Each option gets the old words' capitalisation. The list is empty if every option then equals the old words.
        """
        start = self.start(i)
        old = "".join(self.parts[2 * i + 1 : 2 * (i + n)])
        new = tuple(text for text in dict.fromkeys(like(old, option) for option in options) if text != old)
        return [Edit(start, start + len(old), new, why)] if new else []


def like(old: str, new: str) -> str:
    """Return `new` capitalised like `old`: "cold" becomes "COLD" if `old` is "HOT", and "Cold" if `old` is "Hot"."""
    if len(old) > 1 and old.isupper():
        return new.upper()
    if old.islower():
        return new.lower()
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


def polarity_edits(sentence: Sentence, lists: WordLists) -> list[Edit]:
    """Find all edits that replace a word with an opposite, insert a negation or remove one."""
    found = _command(sentence, lists)
    for i, word in enumerate(sentence.words):
        role = lists.roles.get(word)
        if role and lists.allow(sentence.words, i):
            found += POLARITY[role](sentence, i, lists)
    return found


def _opposite(sentence: Sentence, i: int, lists: WordLists) -> list[Edit]:
    words, word = sentence.words, sentence.words[i]
    if sentence.is_name(i):
        return []
    others = [other for other in lists.opposites[word] if other not in words]
    others = [other for other in others if lists.allow([*words[:i], other, *words[i + 1 :]], i)]
    return sentence.replaced(i, others, f"the opposite of {word!r}")


def _affirmed(sentence: Sentence, i: int, lists: WordLists) -> list[Edit]:
    word = sentence.words[i]
    return sentence.replaced(i, [lists.affirmed[word]], f"{word!r} without its negation")


def _without_negation(sentence: Sentence, i: int, lists: WordLists) -> list[Edit]:
    """Return the edit that removes the negation that starts at word i: "is not true" -> "is true"."""
    n = next((len(phrase) for phrase in lists.negations if sentence.words[i : i + len(phrase)] == phrase), 0)
    if not n or not sentence.follows(i):
        return []
    start = sentence.start(i) - len(sentence.parts[2 * i])
    old = "".join(sentence.parts[2 * i : 2 * (i + n)])
    return [Edit(start, start + len(old), ("",), f"{old.strip()!r} is removed")]


def _auxiliary(sentence: Sentence, i: int, lists: WordLists) -> list[Edit]:
    """Return the edit that negates word i, an auxiliary: "is" -> "isn't" or "is not"; "is it" -> "is it not"."""
    words, word = sentence.words, sentence.words[i]
    following = words[i + 1 : i + 3]
    if not sentence.follows(i + 1) or _is_negated(words[max(0, i - 1) : i + 4], lists):
        return []
    if word in ("has", "have", "had"):  # only before a participle are these words auxiliaries
        verb = following[-1] if following[0] in lists.words["subjects"] else following[0]
        if not verb.endswith(("ed", "en")) and verb not in lists.words["participles"]:
            return []
    form, why = lists.negated[word], f"a negation of {word!r}"
    if following[0] in lists.words["subjects"]:
        subject = sentence.word(i + 1)
        return sentence.replaced(i, [f"{word} {subject} {lists.negation}", f"{form} {subject}"], why, 2)
    options = [form]
    asks = i == 0 or words[i - 1] in lists.words["question words"]
    if not asks and following[0] not in lists.words["determiners"] and sentence.word(i + 1).islower():
        options.append(f"{word} {lists.negation}")
    return sentence.replaced(i, options, why)


def _infinitive(sentence: Sentence, i: int, lists: WordLists) -> list[Edit]:
    """Return the edit that negates the infinitive whose "to" is word i: "to go" -> "not to go" or "to not go"."""
    words = sentence.words
    if not sentence.follows(i) or not sentence.follows(i + 1) or words[i - 1] not in lists.words["before infinitives"]:
        return []
    if words[i + 1] in lists.words["determiners"] or not sentence.word(i + 1).islower():
        return []
    if _is_negated(words[max(0, i - 4) : i + 2], lists):
        return []
    options = f"{lists.negation} to", f"to {lists.negation}"
    return sentence.replaced(i, options, f"a negation of 'to {words[i + 1]}'")


def _command(sentence: Sentence, lists: WordLists) -> list[Edit]:
    """Return the edit that negates a command: "open it" -> "don't open it" or "do not open it"."""
    first = sentence.words[0] if sentence.follows(1) else ""
    if first not in lists.words["commands"] or "do" not in lists.negated or sentence.text.rstrip().endswith("?"):
        return []
    options = [f"{start} {first}" for start in (lists.negated["do"], f"do {lists.negation}")]
    return sentence.replaced(0, options, f"a negation of {first!r}")


def _is_negated(words: Sequence[str], lists: WordLists) -> bool:
    return any(lists.roles.get(word) in ("affirmed", "negation") for word in words)


POLARITY: dict[str, Callable[[Sentence, int, WordLists], list[Edit]]] = {
    "opposite": _opposite,
    "affirmed": _affirmed,
    "negation": _without_negation,
    "auxiliary": _auxiliary,
    "infinitive": _infinitive,
}


def number_edits(sentence: Sentence, lists: WordLists) -> list[Edit]:
    """Find all edits that replace digits, or the name of a number, ordinal, month, day or unit."""
    words, found = sentence.words, []
    if not lists.classes.keys().isdisjoint(words):
        for i, word in enumerate(words):
            if word in lists.classes and lists.allow(words, i):
                if word in lists.words["capitalised"] or not sentence.is_name(i):
                    others = [other for other in lists.classes[word] if other not in words]
                    found += sentence.replaced(i, others, f"a word of the same kind as {word!r}")
    if DIGIT.search(sentence.text):
        for i, word in enumerate(words):
            if word[0].isdecimal():
                found += _digits(sentence, i)
    return found


def _digits(sentence: Sentence, i: int) -> list[Edit]:
    """Return the edits of word i, a number in digits. The date 24.12.2025 gets three edits, one per part."""
    text, number, start = sentence.text, sentence.word(i), sentence.start(i)
    before, after = text[start - 1 : start], text[start + len(number) : start + len(number) + 1]
    if (before.isalpha() and after.isalpha()) or _in_address(text, start):  # as in "b2b"
        return []
    groups = re.split("[.,]", number)
    is_whole = len(groups) < 3 or all(len(group) == 3 for group in groups[1:])
    found = []
    for match in re.finditer(".+" if is_whole else r"\d+", number):
        begin, end = start + match.start(), start + match.end()
        ending = text[end : end + 2].lower()
        most = 100 if ending[:1] == "%" else 12 if HOUR.match(text, end) else None
        options = () if text[:begin].endswith(":") else near_numbers(match[0], most)  # minutes do not change
        if ending in ("th", *ENDINGS.values()):
            end, options = end + 2, tuple(like(text[end : end + 2], ordinal(other)) for other in options)
        if options:
            found.append(Edit(begin, end, options, f"a number other than {text[begin:end]!r}"))
    return found


def _in_address(text: str, place: int) -> bool:
    """Return whether position `place` is inside an e-mail or web address."""
    end = text.find(" ", place)
    return ADDRESS.search(text[text.rfind(" ", 0, place) + 1 : end if end >= 0 else None]) is not None


def ordinal(number: str) -> str:
    """Turn "1" into "1st"."""
    n = int(number[-2:]) if number[-2:].isdecimal() else int(number[-1])
    return f"{number}{'th' if 10 < n < 14 else ENDINGS.get(n % 10, 'th')}"


@lru_cache(2**12)
def near_numbers(number: str, most: int | None = None) -> tuple[str, ...]:
    """Return numbers close to `number`, in the same script and notation: "1,000" gives "1,100" and others.

    A year changes by at most NEAR_YEARS. Any other number changes by a multiple of a step. For numbers up to SMALL, the
    step is 1. For larger numbers, it is the largest power of ten that divides the number and is smaller than it, such
    as 100 for 1,000. The change is at most ``max(FEW, min(MANY, number / step / 2))`` steps up or down.
    most: the highest useful result, such as 12 for an hour.
    """
    digits = "".join(filter(str.isdecimal, number))
    if len(digits) > LONGEST_NUMBER:
        return ()
    n, zero, is_plain, unit, least = int(digits), ord(digits[0]) - int(digits[0]), digits == number, 1, 1
    steps = NEAR_YEARS
    if not (is_plain and n in YEARS):
        while n > SMALL and n % (10 * unit) == 0 and n > 10 * unit:
            unit *= 10
        steps = max(FEW, min(n // unit // 2, MANY))
    if not is_plain and all(len(group) == 3 for group in re.split("[.,]", number)[1:]):
        least = min(n, 10 ** (len(digits) - 1))  # a value near "1,000" has at least as many digits
    highest = n + steps * unit if most is None else min(n + steps * unit, max(n, most))
    values = [value for value in range(n - steps * unit, highest + 1, unit) if value >= least and value != n]
    width = len(digits) if not is_plain or digits[0] == chr(zero) else 0
    return tuple(_written_like(f"{value:0{width}}", number, zero) for value in values)


def _written_like(digits: str, number: str, zero: int) -> str:
    """Write the ASCII `digits` like `number`: "1100" becomes "1,100" if `number` is "1,000".

    zero: the code point of the digit 0 in the script of `number`.
    """
    out = [chr(zero + int(digit)) for digit in digits]
    for place, character in enumerate(reversed(number)):
        if not character.isdecimal():
            out.insert(len(out) - place, character)
    return "".join(out)


def swap_edits(sentence: Sentence, importance: Mapping[str, float], function_words: Collection[str]) -> list[Edit]:
    """Return the edits that swap two words of similar importance that are not adjacent.

    Both words are content words with at least the mean importance of the sentence's words. The edits are sorted by
    the words' difference in importance, and only the first half, at least one edit, is returned. Words without an
    importance are ignored.
    """
    places = [i for i, word in enumerate(sentence.words) if word in importance]
    scores = {i: importance[sentence.words[i]] for i in places}
    mean = sum(scores.values()) / max(1, len(scores))
    content = [i for i in places if scores[i] >= mean and sentence.words[i] not in function_words]
    pairs = [(i, j) for i, j in combinations(content, 2) if j > i + 1 and sentence.words[i] != sentence.words[j]]
    pairs.sort(key=lambda pair: abs(scores[pair[0]] - scores[pair[1]]))
    return [_swapped(sentence, *pair) for pair in pairs[: max(1, len(pairs) // 2)]]


def _swapped(sentence: Sentence, i: int, j: int) -> Edit:
    first, second = sentence.word(i), sentence.word(j)
    between = "".join(sentence.parts[2 * i + 2 : 2 * j + 1])
    if i == 0 and first.istitle():  # keep the sentence's capital at its start
        first, second = first.lower(), like(first, second)
    start = sentence.start(i)
    old = sentence.text[start : sentence.start(j) + len(sentence.word(j))]
    return Edit(start, start + len(old), (f"{second}{between}{first}",), f"{first!r} and {second!r} change places")
