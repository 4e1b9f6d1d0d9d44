"""Pairs of texts from templates.txt: roles, quantifiers, directions, causes, comparisons and negations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from una_fast.augment.draws import Draws
from una_fast.augment.rewordings import items_of, raised, read_sections

FILE = Path(__file__).with_name("templates.txt")
SLOT = re.compile(r"\{(\w+?)(\d?)(\.\w+)?\}")
NEAR_MISSES = ("role", "other meaning", "word")  # kinds of template pairs
VERB_FORMS = {"": 0, ".ed": 1, ".en": 2, ".s": 3, ".ing": 4}
NAMES = ("person", "place", "firm")  # slots that are filled with names of the corpus in half of the pairs


class Pair(NamedTuple):
    """Two texts, and whether they are a near-miss (1) or mean the same (0). kind: how the pair was made."""

    first: str
    second: str
    near_miss: int
    kind: str


@dataclass(frozen=True)
class Meaning:
    """One meaning of a block. order: what the exchange of slots 1 and 2 does: ">" changes the meaning, "=" does not."""

    wordings: list[str]
    order: str


class Templates(NamedTuple):
    """The content of templates.txt."""

    slots: dict[str, list[str]]
    verbs: list[list[str]]
    adjectives: list[list[str]]  # more, less, adjective, opposite
    opposites: list[list[str]]  # adjective, opposite, synonym
    acts: list[list[str]]  # verb, opposite, synonym
    blocks: list[list[Meaning]]


@lru_cache(1)
def read_templates() -> Templates:
    """Read templates.txt."""
    sections = read_sections(FILE)
    slots = (line.split(": ", 1) for line in sections["slots"] if line)
    items = {
        name: [item.split() for line in sections[name] if line for item in items_of(line)]
        for name in ("verbs", "adjectives", "adjective pairs", "verb pairs")
    }
    return Templates(
        {name: items_of(text) for name, text in slots},
        items["verbs"],
        items["adjectives"],
        items["adjective pairs"],
        items["verb pairs"],
        [*_blocks(sections["blocks"])],
    )


def _blocks(lines: Sequence[str]) -> Iterator[list[Meaning]]:
    block: list[Meaning] = []
    for line in [*lines, ""]:
        if line:
            order = line[0] if line[0] in ">=" else ""
            block.append(Meaning(items_of(line[len(order) :]), order))
        elif block:
            yield block
            block = []


def template_pair(templates: Templates, names: Mapping[str, Sequence[str]], draws: Draws) -> Pair:
    """Draw a pair: two wordings of a meaning, exchanged slots, another meaning or another word in a slot.

    A "distant" pair is of two blocks with a common slot; its label is 0, because the verifier has to abstain there.

    names: by slot, the words of a corpus that are put into it in half of the pairs.
    """
    block = draws.pick(templates.blocks)
    meaning = draws.pick(block)
    distant = draws.pick(templates.blocks)
    fill = other = _filling(templates, names, [*block, *distant], draws)
    first = draws.pick(meaning.wordings)
    weights = {"same": 5.0, "role": 9.0 * (meaning.order == ">"), "symmetric": 9.0 * (meaning.order == "=")}
    weights |= {"other meaning": 5.0 * (len(block) > 1), "word": 1.0 * bool(SLOT.search(first))}
    weights["distant"] = 2.0 * (distant is not block)
    kind = [*weights][draws.weighted([*weights.values()])]
    second = draws.pick(meaning.wordings)
    if kind == "other meaning":
        second = draws.pick(draws.pick([one for one in block if one is not meaning]).wordings)
    elif kind == "word":
        slot = "".join(draws.pick([match.groups("") for match in SLOT.finditer(first)]))
        second, other = first, {**fill, slot: _filling(templates, names, block, draws)[slot]}
    elif kind == "distant":
        second = draws.pick(draws.pick(distant).wordings)
    elif kind != "same":
        other = _exchanged(fill)
        second = first if draws.unit() < 0.4 else second
    return Pair(written(first, fill), written(second, other), int(kind in NEAR_MISSES), f"template {kind}")


def _exchanged(fill: Mapping[str, str]) -> dict[str, str]:
    """Exchange the fillings of all slots that end in 1 and 2."""
    other = {"1": "2", "2": "1"}
    return {slot: fill.get(slot[:-1] + other.get(slot[-1], slot[-1]), text) for slot, text in fill.items()}


def _filling(
    templates: Templates, names: Mapping[str, Sequence[str]], block: Sequence[Meaning], draws: Draws
) -> dict[str, str]:
    """Fill all slots of a block. The slots of one type get different texts."""
    verb, adjective = draws.pick(templates.verbs), draws.pick(templates.adjectives)
    opposites, fill = {"adj": _turned(templates.opposites, draws), "act": _turned(templates.acts, draws)}, {}
    of_corpus = draws.unit() < 0.5
    if draws.unit() < 0.5:
        adjective = [adjective[1], adjective[0], adjective[3], adjective[2]]
    used: set[str] = set()
    slots = {match.groups("") for meaning in block for wording in meaning.wordings for match in SLOT.finditer(wording)}
    for name, number, form in sorted(slots):
        if name == "verb":
            text = verb[VERB_FORMS[form]]
        elif name in ("more", "less"):
            text = adjective[name == "less"]
        elif name in opposites and form:
            text = opposites[name][(".pos", ".neg", ".syn").index(form)]
        elif name == "adj":
            text = adjective[2]
        else:
            source = names[name] if of_corpus and names.get(name) else templates.slots[name]
            text = draws.pick([item for item in source if item not in used] or templates.slots[name])
            used.add(text)
        fill[f"{name}{number}{form}"] = text
    return fill


def _turned(pairs: Sequence[list[str]], draws: Draws) -> list[str]:
    """Draw a word with its opposite and synonym, or the opposite with the word."""
    word, opposite, synonym = draws.pick(pairs)
    return [word, opposite, synonym] if draws.unit() < 0.5 else [opposite, word, opposite]


def written(wording: str, fill: Mapping[str, str]) -> str:
    """Put the texts into the slots of a wording; a statement gets a full stop."""
    text = raised(SLOT.sub(lambda match: fill["".join(match.groups(""))], wording))
    return text if text[-1] in "?.!" else f"{text}."
