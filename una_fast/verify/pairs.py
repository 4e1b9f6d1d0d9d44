"""Makes labelled pairs from unlabelled text: near-misses, and texts that mean the same."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from una_fast.augment.counter_rng import CounterRNG, seed_of
from una_fast.augment.draws import Draws
from una_fast.augment.harmless import chosen_changes, reworded
from una_fast.augment.near_misses import NearMisses
from una_fast.augment.rewordings import (
    AUXILIARY,
    END,
    FUNCTION_WORDS,
    JUDGING,
    NAME,
    Change,
    exchanged_word,
    harmful_changes,
    lowered,
    raised,
    replaced_once,
)
from una_fast.augment.wordnet import WordNet
from una_fast.errors import InputError, InputWarning
from una_fast.index.build import build_index
from una_fast.verify.templates import Pair, read_templates, template_pair

BY_NEAR_MISSES = {"polarity": 2.0, "number": 6.0, "name": 1.0, "word": 1.0}  # edits of `NearMisses`, and their weights
# a change that fits few texts has a large weight, so that these texts get it
WEIGHTS = {
    **BY_NEAR_MISSES, "contrast": 4.0, "time order": 20.0, "passive": 20.0, "active": 20.0, "asked": 20.0,
    "compared": 20.0, "from to": 20.0, "twice negated": 10.0, "around": 4.0, "roles": 3.0, "added": 0.7,
    "opposite": 4.0, "sister": 1.0,
}  # fmt: skip
RARE = "time order", "passive", "active", "asked", "compared", "from to"
JOINED = {"and", "or", "vs", "versus", "between", "both", "either", "with"}  # words on both sides may change places
AROUND = re.compile(
    rf"\b((?:the |an? )?(?:{NAME}|[a-z][\w-]+)) (to|than|into|from|of|for|over|without|instead of|causes?|beats?|"
    r"defeated|replaced|likes?|loves?|owns?|owes?|bought|follows?|uses?|against|in|on|by) "
    rf"((?:the |an? )?(?:{NAME}|[a-z][\w-]+))(?=[?.,! ]|$)"
)
SUBJECT = rf"(?:He|She|It|They|This|These|I|We|(?:The|His|Her|Its|Their)(?: [\w-]+){{1,3}}?|{NAME})"
FEW_SHARED = 0.3  # pairs with a smaller overlap are distant
SHARE_OF_QUESTIONS = 0.4  # of the statements that can be turned into a question


class PairMaker:
    """Makes pairs from the sentences of a corpus.

    Everything depends only on the texts, the seed and the row of a text.

    Args:
        texts: the sentences, at least two.
        seed: any integer.
        wordnet: WordNet's folder, for opposites, sisters and synonyms; None does without.
    """

    def __init__(self, texts: Sequence[str], seed: int = 42, wordnet: str | Path | None = None):
        if len(texts) < 2:
            raise InputError(f"texts: {len(texts)} given: give at least 2 sentences")
        self._seed, net = seed, WordNet(Path(wordnet)) if wordnet else None
        self.texts = [self._asked_sometimes(text, row) for row, text in enumerate(texts)]
        self._index = build_index(self.texts)
        self._harmless = _trained(chosen_changes(wordnet=net))
        self._harmful = {**_trained(harmful_changes()), "around": around, "added": self._added}
        self._harmful["roles"] = partial(roles, wordnet=net)
        if net:
            self._harmful |= {
                "opposite": exchanged_word(net, net.opposites), "sister": exchanged_word(net, net.sisters)
            }  # fmt: skip
        self._templates = read_templates()
        if net:
            self._templates = self._templates._replace(
                opposites=self._templates.opposites * 10 + _opposites(net, "a"),
                acts=self._templates.acts * 5 + _opposites(net, "v"),
            )
        self._adjectives = _adjectives(self.texts, net) if net else {}

    def _draws(self, purpose: str, row: int, epoch: int = 0) -> Draws:
        return Draws(CounterRNG(seed_of(f"verifier {purpose}", self._seed), epoch, np.array([row])))

    def _asked_sometimes(self, text: str, row: int) -> str:
        draws = self._draws("question", row)
        return (question_of(text) or text) if draws.unit() < SHARE_OF_QUESTIONS else text

    def _added(self, text: str, draws: Draws) -> str | None:
        """Put an adjective before a noun that has it elsewhere in the corpus, or leave one out."""
        words = text.split(" ")
        places = [i for i, word in enumerate(words) if i and word.strip("?.,") in self._adjectives]
        if not places:
            return None
        i = draws.pick(places)
        options = self._adjectives[words[i].strip("?.,")]
        if words[i - 1] in options:
            return " ".join(words[: i - 1] + words[i:])
        return " ".join([*words[:i], draws.pick(options), *words[i:]])

    def near_misses(self, epoch: int = 0) -> Iterator[Pair]:
        """Yield a near-miss of each text that has one. In half of the pairs, harmless changes follow."""
        rows = np.arange(len(self.texts))
        edited = {name: _edited(near, rows, epoch) for name, near in self._near.items()}
        for row, text in enumerate(self.texts):
            draws = self._draws("near-miss", row, epoch)
            made = self._near_miss(text, {name: texts[row] for name, texts in edited.items()}, draws)
            if made is None:
                continue
            first, (second, kind) = text, made
            extra = draws.weighted((0.5, 0.3, 0.2))
            if extra > 1:
                first = reworded(first, 1, self._harmless, draws)[0]
            if extra:
                second = reworded(second, 1, self._harmless, draws)[0]
            yield Pair(first, second, 1, kind)

    @cached_property
    def _near(self) -> dict[str, NearMisses]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # an edit that fits few texts is replaced by the others
            return {name: NearMisses(self._index, edits=[name], seed=self._seed) for name in BY_NEAR_MISSES}

    def _near_miss(self, text: str, edited: dict[str, str], draws: Draws) -> tuple[str, str] | None:
        weights = {name: WEIGHTS.get(name, 1.0) for name in [*edited, *self._harmful]}
        for name in draws.ordered(weights):
            new = edited[name] if name in edited else self._harmful[name](text, draws)
            if new and new.lower() != text.lower() and not (name == "polarity" and is_asked_negatively(text, new)):
                return new, name
        return None

    def same_meaning(self, epoch: int = 0) -> Iterator[Pair]:
        """Yield each text with a harmless form of it, made by 1 to 4 changes, unless none fits."""
        for row, text in enumerate(self.texts):
            draws = self._draws("same", row, epoch)
            n = 1 + draws.weighted((0.35, 0.3, 0.2, 0.15))
            new, names = reworded(text, n, self._harmless, draws)
            if names:
                yield Pair(text, new, 0, "+".join(names))

    def from_templates(self, n: int) -> Iterator[Pair]:
        """Yield n pairs from templates, half of them with names of the corpus."""
        names = _names(self.texts)
        templates = self._templates
        for row in range(n):
            draws = self._draws("template", row)
            pair = template_pair(templates, {"person": names, "place": names, "firm": names}, draws)
            first, second = pair.first, pair.second
            if pair.near_miss and first == second:
                continue
            extra = draws.unit()
            if first == second or extra < 0.4:
                first = reworded(first, 1, self._harmless, draws)[0]
            if extra < 0.2:
                second = reworded(second, 1, self._harmless, draws)[0]
            if first != second:
                yield pair._replace(first=first, second=second)

    def distant(self) -> Iterator[Pair]:
        """Yield pairs with a common name, number or long word that share few words.

        Their label is 0, whatever they mean: where most words differ, nothing can be learned from small changes, so the
        verifier has to leave the decision to the cosine.
        """
        latest: dict[str, str] = {}
        for text in self.texts:
            keys = sorted(marked(text)[0])
            if words := text.split():
                keys.append(max(words, key=len).lower())
            others = [latest[key] for key in keys if key in latest and overlap(text, latest[key]) < FEW_SHARED]
            latest |= dict.fromkeys(keys, text)
            if others:
                yield Pair(others[0], text, 0, "distant")

    def from_neighbours(self, neighbours: Sequence[tuple[int, int]]) -> Iterator[Pair]:
        """Yield pairs of texts that an encoder finds alike, by row.

        Two texts with the same numbers, names and negations count as the same meaning. The others are left out. The
        first text of each pair is also paired with a near-miss of the second.
        """
        # without the texts that `near_misses` reworded: with them, the packaged weights could not be trained again
        near = {pair.first: pair for pair in self.near_misses(epoch=1)}
        for one, other in neighbours:
            first, second = self.texts[one], self.texts[other]
            if marked(first) == marked(second):
                yield Pair(first, second, 0, "neighbour")
                if second in near:
                    yield Pair(first, near[second].second, 1, f"neighbour {near[second].kind}")


def _edited(near: NearMisses, rows: np.ndarray, epoch: int) -> list[str]:
    """Return the texts with an edit of `near`; "" where none fits."""
    texts, fits = near.texts(rows, epoch), near.fits(rows)
    return [text if fit else "" for text, fit in zip(texts, fits.tolist(), strict=True)]


def _trained(changes: Mapping[str, Change]) -> dict[str, Change]:
    return {name: change for name, change in changes.items() if name not in JUDGING}


NEGATIONS = {"not", "no", "never", "none", "nobody", "nothing", "without", "cannot"}


def marked(text: str) -> tuple[frozenset[str], bool, bool]:
    """Return what two texts of one meaning share: numbers and names, whether it is negated, and whether it asks."""
    words = re.findall(r"[\w']+", text)
    names = frozenset(word.lower() for word in words[1:] if word[0].isupper() or word[0].isdigit()) - {"i"}
    negations = [word for word in words if word.lower() in NEGATIONS or word.lower().endswith("n't")]
    return names, len(negations) % 2 == 1, text.rstrip().endswith("?")


def question_of(text: str) -> str | None:
    """Turn a short statement into a question: "The castle was built in 1210." -> "Was the castle built in 1210?"."""
    match = re.match(rf"({SUBJECT} )({'|'.join(AUXILIARY)}) ([^;:]+?){END}", text)
    if not match or text.rstrip().endswith("?"):
        return None
    return f"{raised(match[2])} {lowered(match[1])}{match[3]}?"


def overlap(first: str, second: str) -> float:
    """Return the share of distinct words that two texts have in common."""
    words, others = (set(re.findall(r"\w+", text.lower())) for text in (first, second))
    return len(words & others) / max(1, len(words | others))


def has_roles(text: str) -> bool:
    """Return whether a rare change fits: a passive, a comparison, "from A to B", "A before B" and the like."""
    draws = Draws(CounterRNG(0, 0, np.zeros(1, np.int64)))
    return any(harmful_changes()[name](text, draws) for name in RARE)


def is_asked_negatively(text: str, edited: str) -> bool:
    """Return whether an edit only put a negation into a question for yes or no, which asks the same: "Isn't it?"."""
    return text.split(" ", 1)[0].lower() in AUXILIARY and marked(text)[1] != marked(edited)[1]


def around(text: str, draws: Draws) -> str | None:
    """Exchange the two phrases around a preposition or a verb: "PDF to Word" becomes "Word to PDF"."""
    found = [
        match
        for match in AROUND.finditer(text)
        if match[1].split()[-1].lower() not in FUNCTION_WORDS
        and match[3].split()[-1].lower() not in FUNCTION_WORDS
        and match[1].split()[-1].lower() != match[3].split()[-1].lower()
        and match[1][:1].isupper() == match[3][:1].isupper()
    ]
    return replaced_once(text, draws, found, lambda match: f"{match[3]} {match[2]} {match[1]}")


def roles(text: str, draws: Draws, wordnet: WordNet | None = None) -> str | None:
    """Exchange two names or two nouns that no "and", "or" and the like joins. Nouns need `wordnet`."""
    found = re.finditer(rf"(?<=\w ){NAME}|(?<=\w )\b[a-z]{{3,}}\b", text)
    kept = [match for match in found if match[0].lower() not in FUNCTION_WORDS and _can_move(match[0], wordnet)]
    pairs = [
        (one, other)
        for i, one in enumerate(kept)
        for other in kept[i + 1 :]
        if one[0][:1].isupper() == other[0][:1].isupper()
        and one[0].lower() != other[0].lower()
        and one[0].endswith("s") == other[0].endswith("s")
        and JOINED.isdisjoint(text[max(0, one.start() - 9) : other.start()].lower().split())
        and other.start() - one.end() > 1
    ]
    if not pairs:
        return None
    one, other = draws.pick(pairs)
    return f"{text[: one.start()]}{other[0]}{text[one.end() : other.start()]}{one[0]}{text[other.end() :]}"


def _can_move(word: str, wordnet: WordNet | None) -> bool:
    return word[0].isupper() or bool(wordnet and wordnet.kind(wordnet.lemma(word)[0]) == "n")


def _names(texts: Sequence[str]) -> list[str]:
    """Return words that are capitalised inside at least three texts and never small, at most 2,000."""
    capital: dict[str, int] = defaultdict(int)
    small: set[str] = set()
    for text in texts:
        for word in re.findall(r"(?<=\w )[A-Za-z][a-z]{2,}\b", text):
            if word[0].isupper():
                capital[word] += 1
            else:
                small.add(word)
    return [word for word, n in capital.items() if n >= 3 and word.lower() not in small][:2000]


def _opposites(wordnet: WordNet, kind: str) -> list[list[str]]:
    """Return words of a part of speech, each with its opposite and a synonym, or itself without a synonym."""
    return [
        [word, others[0], wordnet.synonyms.get(word, [word])[0]]
        for word, others in wordnet.opposites.items()
        if wordnet.kind(word) == kind and word in wordnet.opposites.get(others[0], ())
    ]


def _adjectives(texts: Sequence[str], wordnet: WordNet) -> dict[str, list[str]]:
    """Return, for each noun, the adjectives right before it in the texts."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for text in texts:
        words = text.split(" ")
        for one, other in zip(words, words[1:], strict=False):
            noun = other.strip("?.,")
            if one not in FUNCTION_WORDS and wordnet.kind(one) == "a" and wordnet.kind(wordnet.lemma(noun)[0]) == "n":
                found[noun][one] = None
    return {noun: [*adjectives] for noun, adjectives in found.items()}
