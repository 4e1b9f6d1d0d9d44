"""Reads text files: the word lists that the edits need (see english.txt), and any file with one item per line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import xxhash

from una_fast._kernels.edits.finder import GUARDS, EditFinder
from una_fast.errors import InputError, nearest
from una_fast.storage.files import numbered_lines

ENGLISH = Path(__file__).with_name("english.txt")
NEVER = "(?!)"  # matches nothing
DIVIDERS = {  # sections with several items per line, and the separators of the items
    "opposites": r"[\t,]",
    "auxiliaries": ",",
    "classes": r"\s",
    **dict.fromkeys(GUARDS, ":"),
}
IN_PAIRS = "opposites", "auxiliaries", *GUARDS
FUNCTION = "function words"
WORDS = (
    *("commands", "subjects", "before infinitives", "determiners", "question words", "why", "whether", "participles"),
    *("months", "a or an", "negative words", "before nouns", FUNCTION),
)
SECTIONS = (*DIVIDERS, "negations", *WORDS)
VOWELS = frozenset("aeiou")
Line = tuple[str, ...]
WordListFiles = str | Path | Iterable[str | Path] | None


class WordLists:
    """The word lists of files, as dicts and sets. lines: name of a section -> its lines, each split into items."""

    def __init__(self, lines: dict[str, list[Line]]):
        self.digest = xxhash.xxh3_64_hexdigest(repr(sorted(lines.items())).encode())
        # words that a file writes with a capital: German nouns, and names of days
        pairs = lines["opposites"] + lines["classes"]
        self.capitalised = frozenset(item.lower() for line in pairs for item in line if item[0].isupper())
        lines = {name: [tuple(map(str.lower, line)) for line in lines[name]] for name in lines}
        negations = [line[0].split() for line in lines["negations"]]
        self.opposites = {word: others for word, others in _others(lines["opposites"]).items() if " " not in word}
        self.classes = _others(lines["classes"])  # a number, day, month or unit -> other words of the same kind
        self.negation = " ".join(negations[0]) if negations else ""  # which an edit inserts
        self.negations = sorted(negations, key=len, reverse=True)  # which an edit can remove
        self.negated = {pair[0]: pair[1] for pair in reversed(lines["auxiliaries"])}  # "is" -> "isn't"
        self.affirmed = {pair[1]: pair[0] for pair in lines["auxiliaries"]}  # "isn't" -> "is"
        self.words = {name: frozenset(" ".join(line[0] for line in lines[name]).split()) for name in WORDS}
        first_words = [words[0] for words in negations]
        self.negative = self.words["negative words"].union(self.affirmed, first_words)  # all words that negate
        # each word that a polarity edit can change -> the rule that finds the edit, see `EditFinder`
        self.roles = dict.fromkeys(self.opposites, "opposite") | dict.fromkeys(self.affirmed, "affirmed")
        if self.negation:
            self.roles |= dict.fromkeys(self.negated, "auxiliary") | {words[0]: "negation" for words in negations}
            self.roles |= dict.fromkeys(["to"] if self.words["before infinitives"] else [], "infinitive")
        self.guards: dict[str, dict[str, frozenset[str]]] = {}  # by word and section: what must or must not be near
        for name in GUARDS:
            for words, near in lines[name]:
                for word in words.split():
                    guard = self.guards.setdefault(word, {})
                    guard[name] = guard.get(name, frozenset()) | {*near.split()}

    @cached_property
    def finder(self) -> EditFinder:
        """What finds edits by these lists."""
        return EditFinder(self)

    def article(self, text: str) -> str:
        """Return "an" if `text` begins with a vowel, "8", "11" or "18", and is no exception, else "a"."""
        word = re.split(r"[\s,.-]", text.lower(), maxsplit=1)[0]
        begins = word.startswith("8") or word in ("11", "18") if word[:1].isdecimal() else word[:1] in VOWELS
        return "an" if begins != (word in self.words["a or an"]) else "a"


def _others(lines: Sequence[Line]) -> dict[str, Line]:
    """Map each word to the distinct other words that occur in a line with it."""
    found: dict[str, dict[str, None]] = {}
    for line in lines:
        for word in line:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in line if other != word))
    return {word: tuple(others) for word, others in found.items()}


def read_word_lists(files: WordListFiles = None) -> WordLists:
    """Read one or several files of word lists into one object. None reads the English lists."""
    lines: dict[str, list[Line]] = {name: [] for name in SECTIONS}
    for file in as_files(files) or [ENGLISH]:
        section = ""
        for number, line in numbered_lines("word_lists", file, "a file in the format of una_fast's english.txt"):
            text, where = line.strip(), f"word_lists: {file}: line {number}"
            if text.startswith("["):
                section = text.strip("[]")
                if section not in lines:
                    answer = nearest(section, lines) or ", ".join(lines)
                    raise InputError(f"{where}: no section is called {text}: {answer}")
            elif not text.startswith("# "):
                items = _items(section, text, where)
                lines[section].append(items)
    if not any(lines.values()):
        raise InputError(f"word_lists: {file}: contains no words: write them as in una_fast's english.txt")
    return WordLists(lines)


def as_files(files: WordListFiles) -> list[str | Path]:
    """Return one or several files as a list."""
    if files is None or files == "":
        return []
    return [files] if isinstance(files, (str, Path)) else [*files]


def _items(section: str, text: str, where: str) -> Line:
    """Split a line of a word-list section into items. where: the file and the line, for error messages."""
    if not section:
        raise InputError(f"{where}: {text!r} belongs to no section: write a heading above it, such as [opposites]")
    items = [" ".join(item.split()) for item in re.split(DIVIDERS.get(section, NEVER), text)]
    if not all(items) or len({*map(str.lower, items)}) < len(items) or (section in IN_PAIRS and len(items) != 2):
        mark = "a colon" if section in GUARDS else "a comma" if section == "auxiliaries" else "a comma or a tab"
        needed = f"two different items with {mark} between them" if section in IN_PAIRS else "different words"
        raise InputError(f"{where}: {text!r} is not a line of [{section}]: give {needed}, as in una_fast's english.txt")
    if section == "opposites" and all(" " in item for item in items):
        raise InputError(f"{where}: {text!r}: an edit replaces single words: one of the opposites must be one word")
    if section not in IN_PAIRS and ("," in text or "\t" in text):
        raise InputError(f"{where}: {text!r} is not a line of [{section}]: separate its words by spaces only")
    return tuple(items)
