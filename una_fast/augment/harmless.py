"""Harmless edits: small changes of how a sentence is written that keep what it means, for positives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from una_fast.augment.base import TextAugmentation, check_arguments
from una_fast.augment.counter_rng import CounterRNG, SampleKey, seed_of
from una_fast.augment.edits import Edit, Sentence, like
from una_fast.augment.rows import Rows
from una_fast.augment.word_lists import WordLists, read_word_lists
from una_fast.errors import suggests_keywords
from una_fast.index.index import Index

FINAL = re.compile(r"(?<=\w)\s*[.?!。？！]$")


class HarmlessEdits(TextAugmentation):
    """Makes small edits of each sentence that keep what it means.

    Of the edits that fit, each is made with probability 1/2, and one at least: case (of the first letter, or of all),
    the final mark, an article that is left out, a contraction ("what is", "what's"), a filler ("really") that is put in
    or left out, and the opening of a question ("How do I", "How can I"). A sentence that none fits stays as it is. The
    word lists are English; case and final marks are of any language.

    Every draw is a function of (seed, epoch, sample index, row) alone, as in `Augmenter`.

    Args:
        index: the corpus.
        seed: any integer.
        tokenizer: a Hugging Face tokenizer; only `token_ids` needs it.
        n_jobs: threads that read the tokenizer's sub-words of the index.
    """

    @suggests_keywords
    def __init__(self, index: Index, seed: int = 42, tokenizer: Any = None, n_jobs: int | None = None):
        check_arguments(HarmlessEdits.__init__, index, {})
        super().__init__(index, seed=seed, tokenizer=tokenizer, n_jobs=n_jobs)
        self._seed, self._lists = seed_of("harmless", seed), read_word_lists()

    def _texts(self, source: Rows, rows: np.ndarray, key: SampleKey) -> list[str]:
        draws = CounterRNG(self._seed, key.epoch, source.numbers(rows), key.sample_index)
        bits = zip(*(draws.bits(len(EDITS) + 1, number).tolist() for number in range(3)), strict=True)
        return [self._edited(source.sentence(row), *of_row) for row, of_row in zip(rows.tolist(), bits, strict=True)]

    def _edited(self, text: str, coins: list[int], places: list[int], options: list[int]) -> str:
        """The edits that are made are chosen by `coins`: 64 random bits for each of EDITS, and for the one at least."""
        sentence = Sentence.of(text)
        if not sentence.words:
            return text if text.strip() else ""
        fitting = [k for k, find in enumerate(EDITS) if any(find(sentence, self._lists))]
        made = [k for k in fitting if coins[k] >> 63]
        if fitting and not made:
            made = [fitting[coins[-1] * len(fitting) >> 64]]
        for k in made:
            edits = [*EDITS[k](sentence, self._lists)]  # an earlier edit may have moved it, or taken its place
            if edits:
                edit = edits[places[k] * len(edits) >> 64]
                new = edit.options[options[k] * len(edit.options) >> 64]
                sentence = Sentence.of(f"{sentence.text[: edit.start]}{new}{sentence.text[edit.stop :]}")
        return sentence.text


def openings(sentence: Sentence, lists: WordLists) -> Iterator[Edit]:
    """The first words become others that open the same question."""
    lower = f"{sentence.text.lower()} "
    for phrases in lists.tables["openings"]:
        for phrase in phrases:
            if lower.startswith(f"{phrase.lower()} ") and len(lower) > len(phrase) + 2:
                old = sentence.text[: len(phrase)]
                others = tuple(_cased(old, other) for other in phrases if other != phrase)
                yield Edit(0, len(phrase), others, "another opening")


def contractions(sentence: Sentence, lists: WordLists) -> Iterator[Edit]:
    """Two words become their contraction, and a contraction two words."""
    words = sentence.words
    for i, word in enumerate(words):
        pair = f"{word} {words[i + 1]}" if i + 1 < len(words) and sentence.follows(i + 1) else ""
        for of, last in ((word, i), (pair, i + 1)):
            if (new := lists.contracted.get(of)) and not (of in lists.affirmed and _is_inverted(words, i, lists)):
                span = sentence.spans[i][0], sentence.spans[last][1]
                yield Edit(*span, (_cased(sentence.text[span[0] : span[1]], new),), "a contraction")


def _is_inverted(words: list[str], i: int, lists: WordLists) -> bool:
    """Whether a subject may follow word i, "don't" or the like, so that it is no short form of two words."""
    return i == 0 or words[i - 1] in lists.words["question words"] or words[i - 1] in ("who", "which")


def _cased(old: str, new: str) -> str:
    return new.lower() if old.islower() else like(old, new)


def articles(sentence: Sentence, lists: WordLists) -> Iterator[Edit]:
    """An article is left out."""
    for i, word in enumerate(sentence.words[:-1]):
        if word in lists.words["articles"] and sentence.written(i).islower() and sentence.follows(i + 1):
            if lists.allow(sentence.words, i):
                yield Edit(sentence.spans[i][0], sentence.spans[i + 1][0], ("",), f"{word} is left out")


def fillers(sentence: Sentence, lists: WordLists) -> Iterator[Edit]:
    """A filler is left out or, after an auxiliary and its subject, put in."""
    words = sentence.words
    for i, word in enumerate(words[1:], 1):
        if word in lists.words["fillers"]:
            if sentence.follows(i):
                yield Edit(sentence.spans[i - 1][1], sentence.spans[i][1], ("",), f"{word} is left out")
        elif word in lists.words["subjects"] and words[i - 1] in lists.negated and i + 1 < len(words):
            if words[i + 1] not in lists.words["fillers"] and sentence.follows(i) and sentence.follows(i + 1):
                end = sentence.spans[i][1]
                yield Edit(end, end, tuple(f" {new}" for new in sorted(lists.words["fillers"])), "a filler")


def final_marks(sentence: Sentence, lists: WordLists) -> Iterator[Edit]:
    """The last mark is left out or, after a letter or digit, put in: "?" after the opening of a question, else "."."""
    text = sentence.text.rstrip()
    if mark := FINAL.search(text):
        yield Edit(mark.start(), mark.end(), ("",), "no final mark")
    elif text[-1].isascii() and text[-1].isalnum() and sentence.words:
        asks = sentence.words[0] in lists.negated or sentence.words[0] in lists.words["question words"]
        yield Edit(len(text), len(text), ("?" if asks else ".",), "a final mark")


def case(sentence: Sentence, lists: WordLists) -> Iterator[Edit]:
    """The first letter, or all, in another case."""
    text = sentence.text
    first = text[:1].swapcase() if not text[:2].isupper() else text[:1]
    options = dict.fromkeys((first + text[1:], text.lower()))
    if changed := tuple(option for option in options if option != text):
        yield Edit(0, len(text), changed, "another case")


EDITS: tuple[Callable[[Sentence, WordLists], Iterator[Edit]], ...] = (
    openings, contractions, articles, fillers, final_marks, case,
)  # fmt: skip
