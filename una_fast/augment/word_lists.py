"""Reads text files: the word lists that the edits need (see english.txt), and any file with one item per line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from una_fast.errors import InputError, nearest

ENGLISH = Path(__file__).with_name("english.txt")
NEVER = "(?!)"  # matches nothing
NUMBER = "#"  # stands for any number in digits in the sections GUARDS
REACH = 3  # how many words before a word [only after] checks
GUARDS = "only after", "only before", "not after", "not before"
DIVIDERS = {  # sections with several items per line, and the separators of the items
    "opposites": r"[\t,]",
    "auxiliaries": ",",
    "classes": r"\s",
    **dict.fromkeys(GUARDS, ":"),
}
IN_PAIRS = "auxiliaries", *GUARDS
FUNCTION = "function words"
WORDS = (
    *("capitalised", "commands", "subjects", "before infinitives", "determiners", "question words", "participles"),
    FUNCTION,
)
Line = tuple[str, ...]


class WordLists:
    """The word lists of a file, as dicts and sets. lines: name of a section -> its lines, each split into items."""

    def __init__(self, lines: dict[str, list[Line]]):
        pairs = [line for line in lines["opposites"] if len(line) == 2]
        negations = [line[0].split() for line in lines["opposites"] if len(line) == 1]
        self.opposites = {word: others for word, others in _others(pairs).items() if " " not in word}
        self.classes = _others(lines["classes"])  # a number, day, month or unit -> other words of the same kind
        self.negation = " ".join(negations[0]) if negations else ""  # which an edit inserts
        self.negations = sorted(negations, key=len, reverse=True)  # which an edit can remove
        self.negated = {pair[0]: pair[1] for pair in reversed(lines["auxiliaries"])}  # "is" -> "isn't"
        self.affirmed = {pair[1]: pair[0] for pair in lines["auxiliaries"]}  # "isn't" -> "is"
        self.words = {name: frozenset(" ".join(line[0] for line in lines[name]).split()) for name in WORDS}
        # each word that a polarity edit can change -> the name of the edit, a key of `edits.POLARITY`
        self.roles = dict.fromkeys(self.opposites, "opposite") | dict.fromkeys(self.affirmed, "affirmed")
        if self.negation:
            self.roles |= dict.fromkeys(self.negated, "auxiliary") | {words[0]: "negation" for words in negations}
            self.roles |= dict.fromkeys(["to"] if self.words["before infinitives"] else [], "infinitive")
        self._guards: dict[str, dict[str, frozenset[str]]] = {}
        for name in GUARDS:
            for words, near in lines[name]:
                for word in words.split():
                    guard = self._guards.setdefault(word, {})
                    guard[name] = guard.get(name, frozenset()) | {*near.split()}

    def allow(self, words: Sequence[str], i: int) -> bool:
        """Return whether the words near word i allow a change: "up" may change only after a word such as "turn"."""
        if not (guard := self._guards.get(words[i])):
            return True
        before, after = (_neighbour(words[k]) if 0 <= k < len(words) else "" for k in (i - 1, i + 1))
        if before in guard.get("not after", ()) or after in guard.get("not before", ()):
            return False
        near, only_after = {before, *words[max(0, i - REACH) : i]}, guard.get("only after", frozenset())
        return not near.isdisjoint(only_after) or after in guard.get("only before", () if only_after else {after})


def _neighbour(word: str) -> str:
    return NUMBER if word[0].isdecimal() else word


def _others(lines: Sequence[Line]) -> dict[str, Line]:
    """Map each word to the distinct other words that occur in a line with it."""
    found: dict[str, dict[str, None]] = {}
    for line in lines:
        for word in line:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in line if other != word))
    return {word: tuple(others) for word, others in found.items()}


def read_word_lists(file: str | Path | None = None) -> WordLists:
    """Read a file of word lists. None reads the English lists."""
    lines: dict[str, list[Line]] = {name: [] for name in (*DIVIDERS, *WORDS)}
    file, section = file or ENGLISH, "opposites"
    for number, line in numbered_lines("polarity", file, "a file with two words per line, separated by a tab or comma"):
        text, where = line.strip(), f"polarity: {file}: line {number}"
        if text.startswith("["):
            section = text.strip("[]")
            if section not in lines:
                raise InputError(f"{where}: no section is called {text}: {nearest(section, lines) or ', '.join(lines)}")
        elif not text.startswith("# "):
            lines[section].append(_items(section, text, where))
    return WordLists(lines)


def _items(section: str, text: str, where: str) -> Line:
    """Split a line of a word-list section into lower-case items. where: the file and the line, for error messages."""
    items = [" ".join(item.split()) for item in re.split(DIVIDERS.get(section, NEVER), text.lower())]
    n_items = {2} if section in IN_PAIRS else {1, 2} if section == "opposites" else {len(items)}
    if not all(items) or len(items) not in n_items or len({*items}) < len(items):
        needed = "two different words, separated by a tab or a comma, or one negation"
        raise InputError(f"{where}: {text!r} is not a line of [{section}]: give {needed}, as in una_fast's english.txt")
    return tuple(items)


def numbered_lines(setting: str, file: str | Path, what: str) -> list[tuple[int, str]]:
    """Return (line number, line) for each non-blank line of a UTF-8 file. The first line has number 1.

    setting, what: the argument that names the file, and a description of the expected file, for error messages.
    """
    try:
        lines = Path(file).read_bytes().decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"{setting}: {file}: {reason}: give {what}") from error
    return [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
