"""The words of a language by which edits are found, read from a file such as english.txt here."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from una_fast.augment.settings import read_lines
from una_fast.errors import InputError, nearest

ENGLISH = Path(__file__).with_name("english.txt")
NUMBER = "#"  # stands for every number in digits where a list names neighbours of a word
REACH = 3  # words before a word, among which `only after` looks
TABLES = {  # sections, and what divides the items of their lines
    "opposites": r"[\t,]",
    "auxiliaries": ",",
    "classes": r"\s",
    "contractions": ",",
    "openings": r"\|",
}
GUARDS = "only after", "only before", "not after", "not before"
WORDS = "capitalised commands subjects participles infinitives articles fillers".split()
WORDS += ["question words", "not an infinitive"]
Pairs = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class WordLists:
    """The lists of one file.

    tables: of each section in `TABLES` its lines, each as its items; guards: of each in `GUARDS` by word the
    neighbours that allow or forbid to edit it; words: of each section in `WORDS`.
    """

    tables: Mapping[str, Pairs]
    guards: Mapping[str, Mapping[str, frozenset[str]]]
    words: Mapping[str, frozenset[str]]

    @cached_property
    def opposites(self) -> dict[str, tuple[str, ...]]:
        """Of each word its opposites."""
        pairs = [pair for pair in self.tables["opposites"] if len(pair) == 2]
        return {word: others for word, others in _others(pairs).items() if " " not in word}

    @cached_property
    def classes(self) -> dict[str, tuple[str, ...]]:
        """Of each word the others of its class."""
        return _others(self.tables["classes"])

    @cached_property
    def negations(self) -> dict[str, list[tuple[str, ...]]]:
        """Of each word the phrases that it begins and that can be removed, the longest first."""
        found = defaultdict(list)
        for line in self.tables["opposites"]:
            if len(line) == 1:
                found[line[0].split()[0]].append(tuple(line[0].split()))
        return {word: sorted(phrases, key=len, reverse=True) for word, phrases in found.items()}

    @cached_property
    def negation(self) -> str:
        """The negation that is inserted: the first one of the file."""
        return next((line[0] for line in self.tables["opposites"] if len(line) == 1), "")

    @cached_property
    def negated(self) -> dict[str, str]:
        """Of each auxiliary its negative form, the first one of the file."""
        return {pair[0]: pair[1] for pair in reversed(self.tables["auxiliaries"])}

    @cached_property
    def affirmed(self) -> dict[str, str]:
        """Of each negative form its auxiliary."""
        return {pair[1]: pair[0] for pair in self.tables["auxiliaries"]}

    @cached_property
    def contracted(self) -> dict[str, str]:
        """Of two words their contraction, and of a contraction its two words."""
        return {a.lower(): b for pair in self.tables["contractions"] for a, b in (pair, pair[::-1])}

    def allow(self, words: Sequence[str], i: int) -> bool:
        """Whether the neighbours of word i allow to edit it."""
        word, guards = words[i], self.guards
        before, after = (_as_neighbour(words[k]) if 0 <= k < len(words) else "" for k in (i - 1, i + 1))
        if before in guards["not after"].get(word, ()) or after in guards["not before"].get(word, ()):
            return False
        left, right = guards["only after"].get(word), guards["only before"].get(word)
        if left is None and right is None:
            return True
        near = {before, *words[max(0, i - REACH) : i]}
        return not near.isdisjoint(left or ()) or after in (right or ())


def _as_neighbour(word: str) -> str:
    return NUMBER if word[0].isdecimal() else word


def _others(lines: Sequence[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        for word in line:
            found[word] += [other for other in line if other not in (word, *found[word])]
    return {word: tuple(others) for word, others in found.items()}


@cache
def read_word_lists(file: Path = ENGLISH) -> WordLists:
    """The lists of a file, in the form that english.txt describes.

    Raises:
        InputError: the file cannot be read, or a line of it does not have the form of its section.
    """
    lines: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    section = "opposites"
    for number, line in read_lines("polarity", file, "a file with two words on a line, a tab or comma between them"):
        text, where = line.strip(), f"polarity: {file}: line {number}"
        if text.startswith("["):
            section = _section(text.strip("[]").lower(), where)
        elif not text.startswith("#"):
            lines[section].append(_items(section, text, where))
    guards: dict[str, dict[str, frozenset[str]]] = {name: {} for name in GUARDS}
    for name in GUARDS:
        for word, near in lines[name]:
            guards[name][word] = guards[name].get(word, frozenset()) | {*near.split()}
    words = {name: frozenset(" ".join(line[0] for line in lines[name]).split()) for name in WORDS}
    return WordLists({name: tuple(lines[name]) for name in TABLES}, guards, words)


def _section(name: str, where: str) -> str:
    known = [*TABLES, *GUARDS, *WORDS]
    if name not in known:
        raise InputError(f"{where}: there is no section [{name}]: {nearest(name, known) or ', '.join(known)}")
    return name


def _items(section: str, text: str, where: str) -> tuple[str, ...]:
    """The items of a line, with single spaces; only openings and contractions keep their capitals, of "I"."""
    divider = TABLES.get(section, ":" if section in GUARDS else "$")
    text = text if section in ("openings", "contractions") else text.lower()
    items = tuple(" ".join(item.split()) for item in re.split(divider, text) if item.strip())
    n_items = {"opposites": (1, 2), "auxiliaries": (2,), "contractions": (2,), **dict.fromkeys(GUARDS, (2,))}
    if len(items) not in n_items.get(section, (len(items),)) or len({*items}) < len(items):
        raise InputError(f"{where}: {text!r}: give two different words, or one negation: see english.txt for its form")
    return items
