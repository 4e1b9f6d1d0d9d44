"""Harmless edits: small changes of wording that preserve the meaning of a sentence, to make positives."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from una_fast.augment.base import TextAugmentation
from una_fast.augment.counter_rng import CounterRNG, SampleKey, pick, seed_of
from una_fast.augment.edits import Edit, Sentence
from una_fast.augment.rows import Rows
from una_fast.augment.word_lists import WordLists, read_word_lists
from una_fast.errors import suggests_keywords
from una_fast.index.index import Index

LONGEST_OPENING = 8  # words
FINAL = re.compile(r"(?<=\w)\s*[.?!。？！]$")


class HarmlessEdits(TextAugmentation):
    """Makes small edits to each sentence that preserve its meaning.

    Each edit that fits is made with probability 1/2, and at least one is always made. An edit changes the case (of the
    first letter, or of all letters), the final mark, a contraction ("what is", "what's") or the opening of a question
    ("How do I", "How can I"). Other edits remove an article, or insert or remove a filler ("really"). If no edit fits,
    the sentence is kept. The word lists are English; the edits of case and final marks work in any language.

    The draws are a function of only (seed, epoch, sample index, row), as in `Augmenter`.

    Args:
        index: the corpus.
        seed: any integer.
        tokenizer: a Hugging Face tokenizer; only `token_ids` needs it.
        n_jobs: threads that encode the index with the tokenizer.
    """

    @suggests_keywords
    def __init__(self, index: Index, seed: int = 42, tokenizer: Any = None, n_jobs: int | None = None):
        super().__init__(index, seed=seed, tokenizer=tokenizer, n_jobs=n_jobs)
        self._seed, self._lists = seed_of("harmless", seed), read_word_lists()

    def _texts(self, source: Rows, rows: np.ndarray, key: SampleKey) -> list[str]:
        draws = CounterRNG(self._seed, key.epoch, source.streams(rows), key.sample_index)
        bits = zip(*(draws.bits(len(EDITS) + 2, number).tolist() for number in range(3)), strict=True)
        return [self._edited(text, *of_row) for text, of_row in zip(source.texts(rows), bits, strict=True)]

    def _edited(self, text: str, coins: list[int], places: list[int], options: list[int]) -> str:
        """Edit a text. If two edits overlap, only the first is made.

        Each list contains 64 random bits for each of EDITS, then for lower case, and one item more. They decide whether
        an edit is made, where, and with which option. If the coins choose no edit, the last coin chooses one that fits.
        """
        sentence = Sentence(text)
        if not sentence.words:
            return text if text.strip() else ""
        found = [find(sentence, self._lists) for find in EDITS]
        fitting = [k for k, edits in enumerate(found) if edits] + [len(EDITS)] * (text.lower() != text)
        if not fitting:
            return text
        chosen = [k for k in fitting if coins[k] >> 63] or [pick(coins[-1], fitting)]
        made: list[Edit] = []
        for k in chosen:
            if k < len(EDITS):
                edit = pick(places[k], found[k]).drawn(options[k])
                if all(edit.stop <= other.start or other.stop <= edit.start for other in made):
                    made.append(edit)
        for edit in sorted(made, reverse=True):
            text = edit.applied(text)
        return text.lower() if chosen[-1] == len(EDITS) else text


def openings(sentence: Sentence, lists: WordLists) -> list[Edit]:
    """Replace the first words by another opening of the same question."""
    for n in range(LONGEST_OPENING, 0, -1):
        others = lists.openings.get(" ".join(sentence.words[:n]))
        if others and sentence.follows(n):
            return sentence.replaced(0, others, "another opening", n)
    return []


def contractions(sentence: Sentence, lists: WordLists) -> list[Edit]:
    """Contract two words, or expand a contraction."""
    words, found = sentence.words, []
    for i, word in enumerate(words):
        n = 1 if word in lists.contracted else 2
        new = lists.contracted.get(" ".join(words[i : i + n]))
        asks = i == 0 or words[i - 1] in lists.words["question words"]  # "Why don't we" does not become "Why do not we"
        if new and (n == 1 or sentence.follows(i + 1)) and not (asks and word in lists.affirmed):
            found += sentence.replaced(i, [new], "a contraction", n)
    return found


def articles(sentence: Sentence, lists: WordLists) -> list[Edit]:
    """Remove an article inside a sentence."""
    words, found = sentence.words, []
    for i, word in enumerate(words):
        if word in lists.words["articles"] and sentence.follows(i + 1) and sentence.word(i).islower():
            found += sentence.removed(i) if lists.allow(words, i) else []
    return found


def fillers(sentence: Sentence, lists: WordLists) -> list[Edit]:
    """Remove a filler, or insert one before a verb that follows an auxiliary and a subject ("do you really know")."""
    words, known, found = sentence.words, lists.words["fillers"], []
    for i, word in enumerate(words[:-1]):
        if word in known and sentence.follows(i + 1):
            found += sentence.removed(i)
        elif word in lists.words["subjects"] and sentence.follows(i) and sentence.follows(i + 1):
            if words[i - 1] in lists.negated and words[i + 1] not in known:
                verb = sentence.word(i + 1)
                found += sentence.replaced(i + 1, [f"{new} {verb}" for new in sorted(known)], "a filler")
    return found


def final_marks(sentence: Sentence, lists: WordLists) -> list[Edit]:
    """Remove the final mark, or add one after a letter or digit: "?" if the text begins like a question, else "."."""
    text = sentence.text.rstrip()
    if mark := FINAL.search(text):
        return [Edit(mark.start(), mark.end(), ("",), "no final mark")]
    if not text.isascii() or not text[-1].isalnum():
        return []
    asks = sentence.words[0] in lists.negated or sentence.words[0] in lists.words["question words"]
    return [Edit(len(text), len(text), ("?" if asks else ".",), "a final mark")]


def first_letter(sentence: Sentence, lists: WordLists) -> list[Edit]:
    """Swap the case of the first letter, unless the first two characters are in upper case."""
    text = sentence.text
    new = text[:1].swapcase()
    return [Edit(0, 1, (new,), "another case")] if new != text[:1] and not text[:2].isupper() else []


EDITS: tuple[Callable[[Sentence, WordLists], list[Edit]], ...] = (
    openings, contractions, articles, fillers, final_marks, first_letter,
)  # fmt: skip
