"""The plain reference of `EditFinder`: finds the edits of a sentence in plain Python."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate

from support.plain_numbers import LONGEST, near_numbers, ordinal
from una_fast.augment.edits import Edit
from una_fast.augment.word_lists import WordLists

# TOKENS matches a number with its separators, or a word: letters of any script with their accents, and at most one
# apostrophe inside.
MARKS = r"!-/:-@\[-`{-~\u00a1-\u00bf\u2010-\u205e\u0964\u3000-\u303f\uff00-\uff0f\uff1a-\uff20"
WORD = rf"[^\s\d{MARKS}]+"
TOKENS = re.compile(rf"(\d+(?:[.,]\d+)*|{WORD}(?:['\u2019]{WORD})?)")
DIGIT = re.compile(r"\d")
ENDS_SENTENCE = re.compile(r"[.!?:;\u3002\uff01\uff1f]['\")\u201d\u2019]*\s|[\u3002\uff01\uff1f]")
QUESTION_MARKS = "?", "\uff1f"
CHUNK = re.compile(r"\S+")
ADDRESS = re.compile(r"@|://|www\.")
THOUSANDS = r"\d{1,3}(?:,\d{3})+|\d{1,3}(?:\.\d{3})+"
WITH_CENTS = re.compile(rf"({THOUSANDS})[.,]\d+")
WHOLE = re.compile(rf"\d+(?:[.,]\d+)?|{THOUSANDS}")
DATE = re.compile(
    r"(?<!\d)\d{1,2}/\d{1,4}(?:/\d{1,4})?|\d{4}/\d{1,2}/\d{1,2}|\d{1,4}-\d{1,2}-\d{1,4}|\d{1,2}\.\d{1,2}\.\d{2,4}"
)
HOUR = re.compile(r"\s?[ap]\.?m\b", re.IGNORECASE)
MINUTES = re.compile(r":\d\d(?!\d)")
PERCENT = re.compile(r"%|\s?per\s?cent")
DECADE = re.compile(r"(?:\d\d)?\d0['\u2019]?s\b")
TO_NUMBER = re.compile(r"\s?(?:[-\u2010-\u2013/]|to\s)\s?(\d{1,15})(?![\d.,:/]\d)")
RANGE = re.compile("[-\u2010-\u2013/]|to")
FROM_NUMBER = re.compile(r"(?<![\d.,:/])(\d{1,15})\s?(?:[-\u2010-\u2013/]|\bto)\s?\Z")
ORDINAL_ENDINGS = ("st", "nd", "rd", "th")
AFTER_DIGITS = frozenset((*ORDINAL_ENDINGS, "s", "am", "pm", "a", "p"))  # "1990s", "9a.m."
JOINS = "-", "\\", "/"  # a word right after one of them is no word of its own: "14-strong", "\big", "should/shouldn't"
DATE_MARKS = frozenset("/-.")
ALWAYS = "24/7"
APOSTROPHES = "'", "\u2019"  # before a short year
LAST_SAFE_DAY = 28  # every month has it
LAST_DAYS = frozenset(("29", "30", "31"))  # a month next to one of them stays
NEAR_DECADES = 5
WINDOW = 24  # characters before a number that may contain the start of its range
NUMBER, END = "#", "."  # in guards: any number in digits, and the start or the end of the text
REACH, NEAR = 3, 8  # how many words [only after] and [not near] check
NO_WORDS: frozenset[str] = frozenset()


class Sentence:
    """A text, split into words. A number is also a word.

    Args:
        text: any text.
        words: the words of `text` in order, if a word tokenizer knows better where they begin and end, as in languages
            without spaces. If one of them is not in the text, `words` is ignored.
    """

    def __init__(self, text: str, words: Sequence[str] = ()):
        self.text = text
        parts = TOKENS.split(text)
        # alternately the text between two words, and a word as written
        self.parts = (words and _divided(parts, words)) or parts
        self.words = [word.lower() for word in self.parts[1::2]]
        if "\u2019" in text:
            self.words = [word.replace("\u2019", "'") for word in self.words]
        self._starts = [*accumulate(map(len, self.parts), initial=0)]

    @cached_property
    def distinct(self) -> frozenset[str]:
        """The distinct words."""
        return frozenset(self.words)

    @cached_property
    def repeated(self) -> frozenset[str]:
        """The words that occur more than once."""
        if len(self.distinct) == len(self.words):
            return frozenset()
        return frozenset(word for word, n in Counter(self.words).items() if n > 1)

    @cached_property
    def is_title(self) -> bool:
        """Whether every word of the text is capitalised."""
        return self.text.istitle()

    @cached_property
    def first_words(self) -> list[int]:
        """For each word, the position of the first word of its sentence, since the text may have several."""
        gaps, firsts = self.parts[2:-1:2], [0] * len(self.words)
        if any(map(_ends_sentence, {*gaps})):
            for i, gap in enumerate(gaps, 1):
                firsts[i] = i if _ends_sentence(gap) else firsts[i - 1]
        return firsts

    @cached_property
    def asks(self) -> list[bool]:
        """For each word, whether its sentence ends in a question mark."""
        gaps, ends, is_question = self.parts[2::2], [], False
        if not gaps or self.first_words[-1] == 0:
            return [any(mark in gap for gap in gaps[-1:] for mark in QUESTION_MARKS)] * len(gaps)
        for i in reversed(range(len(gaps))):
            if i + 1 == len(gaps) or self.first_words[i + 1] == i + 1:
                is_question = any(mark in gaps[i] for mark in QUESTION_MARKS)
            ends.append(is_question)
        return ends[::-1]

    @cached_property
    def addresses(self) -> frozenset[int]:
        """The positions in the text that are inside an e-mail or web address."""
        if not any(mark in self.text for mark in ("@", "://", "www.")):
            return frozenset()
        return frozenset(i for chunk in CHUNK.finditer(self.text) if ADDRESS.search(chunk[0]) for i in _inside(chunk))

    @cached_property
    def dates(self) -> frozenset[int]:
        """The positions in the text that are inside a date in digits."""
        return frozenset(i for date in DATE.finditer(self.text) if date[0] != ALWAYS for i in _inside(date))

    def word(self, i: int) -> str:
        """Return word i as written in the text."""
        return self.parts[2 * i + 1]

    def start(self, i: int) -> int:
        """Return the position in the text where word i starts."""
        return self._starts[2 * i + 1]

    def follows(self, i: int) -> bool:
        """Return whether words i - 1 and i exist, and at most white space separates them."""
        return 0 < i < len(self.words) and not self.parts[2 * i].strip()

    def is_name(self, i: int, lists: WordLists) -> bool:
        """Return whether word i is probably a name: capitalised inside a sentence that is not in title case."""
        is_capitalised = self.first_words[i] != i and self.word(i).istitle() and not self.is_title
        return is_capitalised and self.words[i] not in lists.capitalised

    def replaced(self, i: int, options: Iterable[str], why: str, lists: WordLists, n: int = 1) -> list[Edit]:
        """Return a list with one edit, in which one of `options` replaces the n words that start at word i.

        Each option gets the old words' capitalisation, and the article before it agrees: "an old" becomes "a new". The
        list is empty if every option then equals the old words.
        """
        old = self.word(i) if n == 1 else "".join(self.parts[2 * i + 1 : 2 * (i + n)])
        new = _all_like(old, tuple(options))
        return self.with_article(self.start(i), old, new, why, lists, i) if new else []

    def with_article(self, start: int, old: str, new: Sequence[str], why: str, lists: WordLists, i: int) -> list[Edit]:
        """Return a list with the edit that replaces `old`, at position `start` in word i, with one of `new`."""
        if i and self.words[i - 1] in ("a", "an") and self.follows(i) and lists.words["a or an"]:
            article, gap = self.word(i - 1), self.parts[2 * i]
            new = [f"{like(article, lists.article(option))}{gap}{option}" for option in new]
            start, old = self.start(i - 1), f"{article}{gap}{old}"
        return [Edit(start, start + len(old), tuple(new), why)]


@lru_cache(2**10)
def _ends_sentence(gap: str) -> bool:
    """Return whether a sentence ends in the text between two words."""
    return ENDS_SENTENCE.match(gap.lstrip("'\")\u201d\u2019")) is not None


def _inside(match: re.Match[str]) -> range:
    return range(*match.span())


def _divided(parts: list[str], words: Sequence[str]) -> list[str]:
    """Divide the words of `parts` (see `Sentence.parts`) where one of `words` ends, or return [] if one is missing."""
    text, at, ends = "".join(parts).lower(), 0, set()
    if len(text) != sum(map(len, parts)):  # lower-casing changed the positions
        return []
    for word in words:
        start = text.find(word.lower(), at)
        if start < 0:
            return []
        at = start + len(word)
        ends |= {start, at}
    found, at = [parts[0]], len(parts[0])
    for word, gap in zip(parts[1::2], parts[2::2], strict=True):
        cuts = [0, *(k for k in range(1, len(word)) if at + k in ends and not word[0].isdecimal()), len(word)]
        for start, stop in zip(cuts, cuts[1:], strict=False):
            found += [word[start:stop], ""]
        found[-1] = gap
        at += len(word) + len(gap)
    return found


@lru_cache(2**12)
def _all_like(old: str, options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the distinct options, capitalised like `old`, except `old` itself."""
    return tuple(text for text in dict.fromkeys(like(old, option) for option in options) if text != old)


def like(old: str, new: str) -> str:
    """Return `new` capitalised like `old`: "cold" becomes "COLD" if `old` is "HOT", and "Cold" if `old` is "Hot"."""
    if len(old) > 1 and old.isupper():
        return new.upper()
    if old.islower():
        return new.lower()
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


def allow(lists: WordLists, words: Sequence[str], i: int, word: str = "") -> bool:
    """Return whether the words near word i allow a change: "up" may change only after a word such as "turn".

    word: the word that is checked as word i; by default, the one in `words`, or NUMBER for digits.
    """
    if not (guard := lists.guards.get(word or _neighbour(words[i]))):
        return True
    before = _neighbour(words[i - 1]) if i else END
    after = _neighbour(words[i + 1]) if i + 1 < len(words) else END
    if before in guard.get("not after", NO_WORDS) or after in guard.get("not before", NO_WORDS):
        return False
    if "not near" in guard and not guard["not near"].isdisjoint(words[max(0, i - NEAR) : i + NEAR + 1]):
        return False
    if before not in guard.get("right after", (before,)):
        return False
    only_after = guard.get("only after", NO_WORDS)
    if before in only_after or not only_after.isdisjoint(words[max(0, i - REACH) : i]):
        return True
    return after in guard.get("only before", NO_WORDS if only_after else (after,))


def _neighbour(word: str) -> str:
    return NUMBER if word[0].isdecimal() else word


def polarity_edits(sentence: Sentence, lists: WordLists) -> list[Edit]:
    """Find all edits that replace a word with an opposite, insert a negation or remove one."""
    finder = _Polarity(sentence, lists)
    found = finder.command()
    for i, role in finder.roles.items():
        if allow(lists, sentence.words, i) and not sentence.parts[2 * i].endswith(JOINS):
            found += getattr(finder, role)(i)
    return found


class _Polarity:
    """Finds the polarity edits of one sentence. The method `auxiliary` finds those of words with this role, etc."""

    def __init__(self, sentence: Sentence, lists: WordLists):
        self.sentence, self.words, self.lists = sentence, sentence.words, lists
        roles = lists.roles
        self.roles = {i: roles[word] for i, word in enumerate(sentence.words) if word in roles}

    @cached_property
    def negative(self) -> frozenset[int]:
        """The positions of negations and other negative words."""
        negative = self.lists.negative
        if negative.isdisjoint(self.words):
            return frozenset()
        return frozenset(i for i, word in enumerate(self.words) if word in negative)

    @cached_property
    def leading(self) -> frozenset[int]:
        """The positions of the auxiliaries that lead a question, as in "What does it do" and "Is it good"."""
        firsts, found, last = self.sentence.first_words, set(), -1
        for i, role in self.roles.items():
            if firsts[i] != last and role in ("auxiliary", "affirmed"):
                last = firsts[i]
                follows_question_word = i == last + 1 and self.words[last] in self.lists.words["question words"]
                has_subject = role == "auxiliary" and "'" in self.words[i]  # as in "it's"
                if (i == last and not has_subject) or follows_question_word or self.sentence.asks[i]:
                    found.add(i)
        return frozenset(found)

    def keeps_question(self, i: int) -> bool:
        """Return whether a negation of word i, an auxiliary, asks the same: "Is it?" and "Isn't it?" do."""
        if i not in self.leading:
            return False
        first = self.sentence.first_words[i]
        before = *self.words[first : min(first + 1, i)], *self.words[max(first, i - 1) : i]
        return self.lists.words["why"].isdisjoint(before)

    def opposite(self, i: int) -> list[Edit]:
        sentence, words, lists = self.sentence, self.words, self.lists
        if sentence.is_name(i, lists) or self.reports(i) or sentence.parts[2 * i + 2].startswith("-"):  # "new-comers"
            return []
        others = lists.opposites[words[i]]
        if not sentence.distinct.isdisjoint(others):  # as in "good or bad"
            return []
        others = tuple(other for other in others if allow(lists, words, i, other))
        return sentence.replaced(i, others, "an opposite", lists)

    def affirmed(self, i: int) -> list[Edit]:
        sentence, lists = self.sentence, self.lists
        if i == sentence.first_words[i] and lists.affirmed[self.words[i]] == "do" and sentence.follows(i + 1):
            if self.words[i + 1] in lists.words["subjects"] or sentence.asks[i]:
                return []
            verb = like(sentence.word(i), sentence.word(i + 1))
            return sentence.replaced(i, [verb], "a negation is removed", lists, 2)
        if self.keeps_question(i):
            return []
        return sentence.replaced(i, [lists.affirmed[self.words[i]]], "a negation is removed", lists)

    def negation(self, i: int) -> list[Edit]:
        """Return the edit that removes the negation that starts at word i: "is not true" -> "is true"."""
        sentence, words = self.sentence, self.words
        n = next((len(phrase) for phrase in self.lists.negations if words[i : i + len(phrase)] == phrase), 0)
        first = sentence.first_words[i]
        if not n or not sentence.follows(i) or (first in self.leading and i <= first + 3):  # "Is he not here?"
            return []
        start = sentence.start(i) - len(sentence.parts[2 * i])
        old = "".join(sentence.parts[2 * i : 2 * (i + n)])
        return [Edit(start, start + len(old), ("",), "a negation is removed")]

    def auxiliary(self, i: int) -> list[Edit]:
        """Return the edit that negates word i, an auxiliary: "is" -> "isn't" or "is not"; "is it" -> "is it not"."""
        sentence, words, lists = self.sentence, self.words, self.lists
        following = words[i + 1 : i + 3]
        if not sentence.follows(i + 1) or self.keeps_question(i) or self.is_negated(i - 3, i + 4) or self.reports(i):
            return []
        is_inverted = following[0] in lists.words["subjects"]
        if is_inverted and i not in self.leading:
            return []
        if words[i] in ("has", "have", "had"):  # only before a participle are these words auxiliaries
            verb = following[-1] if is_inverted else following[0]
            if not verb.endswith(("ed", "en")) and verb not in lists.words["participles"]:
                return []
        if words[i] in ("do", "does", "did") and i not in self.leading and following[0] in lists.words["determiners"]:
            return []  # as in "it does its work"
        form, why = lists.negated[words[i]], "a negation is inserted"
        if is_inverted:
            subject = sentence.word(i + 1)
            return sentence.replaced(i, [f"{words[i]} {subject} {lists.negation}", f"{form} {subject}"], why, lists, 2)
        options = [form]
        if i not in self.leading and following[0] not in lists.words["determiners"]:
            if sentence.word(i + 1).islower():
                options.append(f"{words[i]} {lists.negation}")
        return sentence.replaced(i, options, why, lists)

    def reports(self, i: int) -> bool:
        """Return whether word i is in a clause that asks the same with a negation: "how do I know that it is on"."""
        words = self.words[max(self.sentence.first_words[i], i - 8) : i]
        return not self.lists.words["whether"].isdisjoint(words)

    def infinitive(self, i: int) -> list[Edit]:
        """Return the edit that negates the infinitive whose "to" is word i: "to go" -> "to not go"."""
        sentence, words, lists = self.sentence, self.words, self.lists
        if not sentence.follows(i) or not sentence.follows(i + 1) or not sentence.word(i + 1).islower():
            return []
        if words[i - 1] not in lists.words["before infinitives"] or words[i + 1] in lists.words["determiners"]:
            return []
        if self.is_negated(i - 4, i + 2):
            return []
        return sentence.replaced(i, [f"to {lists.negation}"], "an infinitive is negated", lists)

    def command(self) -> list[Edit]:
        """Return the edit that negates a command: "open it" -> "don't open it" or "do not open it"."""
        sentence, lists = self.sentence, self.lists
        first = self.words[0] if sentence.follows(1) else ""
        if first not in lists.words["commands"] or "do" not in lists.negated or sentence.asks[0]:
            return []
        if sentence.word(1).istitle():  # as in "Show Business"
            return []
        options = [f"{start} {first}" for start in (lists.negated["do"], f"do {lists.negation}")]
        return sentence.replaced(0, options, "a command is negated", lists)

    def is_negated(self, start: int, stop: int) -> bool:
        return not self.negative.isdisjoint(range(start, stop))


def number_edits(sentence: Sentence, lists: WordLists) -> list[Edit]:
    """Find all edits that replace digits, or the name of a number, ordinal, month, day or unit."""
    words, found, classes = sentence.words, [], lists.classes
    if not classes.keys().isdisjoint(words):
        for i, word in enumerate(words):
            if word in classes and allow(lists, words, i) and not sentence.is_name(i, lists):
                if word in lists.words["months"] and any(
                    words[j] in LAST_DAYS for j in (i - 1, i + 1) if 0 <= j < len(words)
                ):
                    continue
                if sentence.parts[2 * i] == "-" and i and words[i - 1] in lists.classes:  # as in "twenty-two"
                    continue
                others = [other for other in lists.classes[word] if other not in sentence.distinct]
                found += sentence.replaced(i, others, "a word of the same kind", lists)
    if DIGIT.search(sentence.text):
        for i, word in enumerate(words):
            if word[0].isdecimal():
                found += _digits(sentence, i, lists)
    return found


def _digits(sentence: Sentence, i: int, lists: WordLists) -> list[Edit]:
    """Return the edits of word i, a number in digits. The date 24.12.2025 gets three edits, one per part."""
    text, number, start = sentence.text, sentence.word(i), sentence.start(i)
    before, after = text[start - 1 : start], text[start + len(number) : start + len(number) + 1]
    following = sentence.words[i + 1] if i + 1 < len(sentence.words) else ""
    # "mp3", "3D", "'99"
    if _has_case(before) or before in APOSTROPHES or (_has_case(after) and not _is_unit(following, lists)):
        return []
    if start in sentence.addresses or ALWAYS in text[max(0, start - 3) : start + len(ALWAYS)]:
        return []
    if sentence.words[i] in sentence.repeated or not allow(lists, sentence.words, i):  # "Road 404 (Rv404)", "3 of 4"
        return []
    found = []
    for place, old in _groups(number):
        begin, end = start + place, start + place + len(old)
        ending = text[end : end + 2]
        options: Sequence[str] = ()
        if ending.lower() in ORDINAL_ENDINGS:
            most = LAST_SAFE_DAY if _has_month(sentence, lists, i - 1, i + 2) else None
            options, end = [ordinal(other, ending) for other in _near(sentence, old, 1, most)], end + 2
        elif DECADE.match(text, begin):  # "1990s" becomes "1980s", and "20s" becomes "30s"
            decade, end = old[:-1], end - 1
            most = int(decade) + NEAR_DECADES if len(old) == 4 else 9
            options = _near(sentence, decade, max(2, int(decade) - NEAR_DECADES), most, "0")
        elif limits := _limits(sentence, i, begin, end, old, lists):
            options = _near(sentence, old, *limits)
        if options and begin == start:
            found += sentence.with_article(begin, text[begin:end], options, "another number", lists, i)
        elif options:
            found.append(Edit(begin, end, options, "another number"))
    return found


def _groups(number: str) -> list[tuple[int, str]]:
    """Return the parts of a number that change separately, and their places: of "1,000.50" only "1,000"."""
    if number.isdecimal() or WHOLE.fullmatch(number):
        return [(0, number)]
    if cents := WITH_CENTS.fullmatch(number):
        return [(0, cents[1])]
    return [(group.start(), group[0]) for group in re.finditer(r"\d+", number)]


def _is_unit(word: str, lists: WordLists) -> bool:
    return word in lists.classes or word in AFTER_DIGITS


def _has_case(character: str) -> bool:
    return character.lower() != character.upper()


def _near(sentence: Sentence, number: str, least: int, most: int | None = None, ending: str = "") -> Sequence[str]:
    """Return the numbers near `number` that are no words of the sentence if `ending` follows them."""
    options = near_numbers(number, least, most)
    if not ending and sentence.distinct.isdisjoint(options):
        return options
    return [other for other in options if f"{other}{ending}" not in sentence.distinct]


def _limits(
    sentence: Sentence, i: int, begin: int, end: int, number: str, lists: WordLists
) -> tuple[int, int | None] | None:
    """Return the least and the highest useful number instead of ``text[begin:end]``. None: keep the number."""
    text, percent = sentence.text, 100 if PERCENT.match(sentence.text, end) else None
    if not number.isdecimal():
        return 0, percent and percent * 10 ** len(re.split("[.,]", number)[-1])
    if text[max(0, begin - 1) : begin] == ":" or len(number) > LONGEST:  # minutes do not change
        return None
    n, least = int(number), min(1, int(number))
    before, after = text[max(0, begin - 1) : begin], text[end : end + 1]
    if (before in DATE_MARKS or after in DATE_MARKS) and begin in sentence.dates:
        return 1, (12 if n <= 12 else LAST_SAFE_DAY) if n <= 31 else None
    if n <= 31 and _has_month(sentence, lists, i - 1, i + 1):
        return _range_limits(text, begin, end, number, 1, LAST_SAFE_DAY)
    minutes = MINUTES.match(text, end)
    if HOUR.match(text, minutes.end() if minutes else end):
        return 1, 12
    if minutes and n <= 24:
        return 0, 23
    if sentence.follows(i + 1) and sentence.parts[2 * i + 2]:
        if n == 1:  # the next word may be a noun in the singular
            return None
        least = 2
    return _range_limits(text, begin, end, number, least, percent)


def _has_month(sentence: Sentence, lists: WordLists, *places: int) -> bool:
    return any(sentence.words[i] in lists.words["months"] for i in places if 0 <= i < len(sentence.words))


def _range_limits(
    text: str, begin: int, end: int, number: str, least: int, most: int | None
) -> tuple[int, int | None] | None:
    """Return limits that keep the order of a range, such as "10-12" or "from 10 to 12".

    None: keep the number, because the range has no room, as in the season "2015-16".
    """
    n = int(number)
    if not RANGE.search(text[max(0, begin - 3) : end + 4]):
        return least, most
    if match := TO_NUMBER.match(text, end):
        if (n + 1) % 10 ** len(match[1]) == int(match[1]):
            return None
        other = _completed(match[1], number)
        least, most = (least, other - 1) if n < other else (max(least, other + 1), most)
    if match := FROM_NUMBER.search(text[max(0, begin - WINDOW) : begin]):
        is_short = len(match[1]) > len(number)  # as in "2008-09"
        other = int(match[1]) % 10 ** len(number)
        if (other + 1) % 10 ** len(number) == n:
            return None
        least, most = (max(least, other + 1), most) if n > other else (least, other - 1)
        most = 10 ** len(number) - 1 if is_short and most is None else most
    return least, most


def _completed(number: str, start: str) -> int:
    """Return the end of a range, such as 2009 for "09" if the range starts with "2008"."""
    n = 10 ** len(number)
    return int(number) + (int(start) // n * n if len(number) < len(start) else 0)
