"""Reads WordNet's files: synonyms, opposites and sisters (words under the same general word) of English words.

WordNet is not part of una_fast. Debian's package wordnet-base installs it in /usr/share/wordnet, and nltk.downloader
in nltk_data/corpora/wordnet. Its licence allows any use that keeps its notice with copies.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from una_fast.errors import InputError, first_line

FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
KIND = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}  # the digit after % in a sense key
WORD = re.compile(r"[a-z]{3,}")
MAIN_SHARE = 0.7  # a part of speech with this share of a word's uses is its main one
ENDINGS = {"s": ("s", "es"), "ed": ("ed", "d"), "ing": ("ing",)}


class Synset(NamedTuple):
    """Words with one meaning. key: part of speech and offset. pointers: (symbol, key, own word or -1, other word)."""

    key: str
    words: list[str]
    pointers: list[tuple[str, str, int, int]]


class WordNet:
    """Synonyms, opposites and sisters of a word by its first sense, if the word has one main part of speech."""

    def __init__(self, folder: Path):
        try:
            self._counts = _read_counts(folder)
            synsets = {synset.key: synset for kind in FILES for synset in _read_synsets(folder, kind)}
            self._first = {pair: key for kind in FILES for pair, key in _read_first_senses(folder, kind)}
        except (OSError, ValueError, IndexError, KeyError) as error:
            raise InputError(
                f"wordnet={str(folder)!r}: {first_line(error)}: give the folder of WordNet's data.noun and the others"
            ) from error
        self.opposites = _opposites(synsets)
        self.synonyms: dict[str, list[str]] = {}
        self.sisters: dict[str, list[str]] = {}
        children = defaultdict(list)
        for (word, kind), key in self._first.items():
            if kind == "n" and self._counts[word]["n"] > 1 and (above := _hypernym(synsets[key])):
                children[above].append(word)
        for (word, kind), key in self._first.items():
            if self.kind(word) != kind:
                continue
            same = [other for other in synsets[key].words if other != word and self._is_first(other, kind, key)]
            if same:
                self.synonyms[word] = same
            if kind == "n" and (above := _hypernym(synsets[key])):
                self.sisters[word] = [other for other in children[above] if other not in synsets[key].words]

    def _is_first(self, word: str, kind: str, key: str) -> bool:
        """Return whether the synset `key` is the first sense of `word` too, so that the words nearly mean the same."""
        return self._first.get((word, kind)) == key and self.kind(word) == kind and self._counts[word][kind] > 1

    @lru_cache(2**16)  # noqa: B019  there is one object per process
    def kind(self, word: str) -> str:
        """Return the main part of speech of a word, one of n, v, a and r, or "" if it has none."""
        if not (counts := self._counts.get(word)):
            return ""
        kind, n = counts.most_common(1)[0]
        return kind if n >= MAIN_SHARE * counts.total() else ""

    @lru_cache(2**16)  # noqa: B019
    def lemma(self, word: str) -> tuple[str, str]:
        """Return the base of a regular form, and its ending: "dogs" -> ("dog", "s"). An unknown word is unchanged."""
        if word in self._counts:
            return word, ""
        for ending, cuts in ENDINGS.items():
            for stem in (word[: -len(cut)] for cut in cuts if word.endswith(cut)):
                doubled = stem[:-1] if stem[-1:] == stem[-2:-1] else stem
                if base := next((base for base in (stem, f"{stem}e", doubled) if base in self._counts), ""):
                    return base, ending
        return word, ""


def inflected(base: str, ending: str) -> str:
    """Add a regular ending to the base of a word: ("party", "s") -> "parties"."""
    if ending == "s":
        if re.search("[^aeiou]y$", base):
            return f"{base[:-1]}ies"
        return base + ("es" if re.search("(s|x|ch|sh)$", base) else "s")
    if ending == "ed" and re.search("[^aeiou]y$", base):
        return f"{base[:-1]}ied"
    return re.sub("e$", "", base) + ending if ending else base


def _read_counts(folder: Path) -> dict[str, Counter[str]]:
    """Return how often each word was used as each part of speech in WordNet's tagged texts."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for line in (folder / "cntlist.rev").read_text(encoding="utf-8").splitlines():
        key, _, n = line.split()
        word, _, sense = key.partition("%")
        counts[word][KIND[sense[0]]] += int(n)
    return counts


def _lines(path: Path) -> Iterator[list[str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(" "):  # the licence at the top is indented
            yield line.split(" | ")[0].split()


def _read_synsets(folder: Path, kind: str) -> Iterator[Synset]:
    for fields in _lines(folder / f"data.{FILES[kind]}"):
        n = int(fields[3], 16)
        words = [word.lower().split("(")[0] for word in fields[4 : 4 + 2 * n : 2]]
        rest, pointers = fields[5 + 2 * n :], []
        for symbol, offset, other, ends in zip(*[iter(rest[: 4 * int(fields[4 + 2 * n])])] * 4, strict=True):
            key = ("a" if other == "s" else other) + offset
            pointers.append((symbol, key, int(ends[:2], 16) - 1, int(ends[2:], 16) - 1))
        yield Synset(kind + fields[0], words, pointers)


def _read_first_senses(folder: Path, kind: str) -> Iterator[tuple[tuple[str, str], str]]:
    for fields in _lines(folder / f"index.{FILES[kind]}"):
        if WORD.fullmatch(fields[0]):
            yield (fields[0], kind), kind + fields[6 + int(fields[3])]


def _hypernym(synset: Synset) -> str:
    return next((key for symbol, key, *_ in synset.pointers if symbol == "@"), "")


def _opposites(synsets: dict[str, Synset]) -> dict[str, list[str]]:
    """Return the opposites of each word; an adjective also gets those of the adjective that it is a special case of."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for synset in synsets.values():
        for symbol, key, own, other in synset.pointers:
            if symbol == "!":
                found[synset.words[own]][synsets[key].words[other]] = None
    for synset in synsets.values():
        for symbol, key, *_ in synset.pointers:
            if symbol == "&" and (head := synsets[key].words[0]) in found:
                for word in synset.words:
                    if word not in found or word == head:
                        found.setdefault(word, {}).update(dict.fromkeys([*found[head]][:1]))
    words = {word: [*filter(WORD.fullmatch, others)] for word, others in found.items() if WORD.fullmatch(word)}
    return {word: others for word, others in words.items() if others}
