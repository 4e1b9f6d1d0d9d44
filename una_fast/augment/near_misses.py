"""Near-misses: each sentence gets one small edit that changes what it means."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from una_fast._kernels.draws.negatives import Negatives
from una_fast.augment.base import KernelAugmentation, TextAugmentation, check_arguments
from una_fast.augment.counter_rng import CounterRNG, SampleKey, seed_of
from una_fast.augment.edits import LETTER, Edit, Sentence, number_edits, polarity_edits, swap_edits
from una_fast.augment.rows import Rows
from una_fast.augment.settings import KeptWords, make_config
from una_fast.augment.una import groups_of_unseen
from una_fast.augment.word_lists import ENGLISH, WordLists, read_word_lists
from una_fast.errors import InputError, nearest, suggests_keywords, warn_user
from una_fast.index.index import Index

BY_TEXT: dict[str, Callable[[Sentence, WordLists], list[Edit]]] = {"polarity": polarity_edits, "number": number_edits}
WORD = re.compile(rf"{LETTER}+")
KINDS = (*BY_TEXT, "name", "swap", "word")
SAMPLE = 200  # sentences by which a corpus without words of the lists is noticed
LEAST_SHARE = 0.02  # of them that an edit must fit


@dataclass(frozen=True)
class NearMiss:
    """What was done to a sentence: `str` gives two lines, `to_dict` plain data for JSON.

    edit: one of polarity, number, name, swap, word; old, new: the text that was replaced, and by what; place: where
    `old` starts in the sentence, in characters; why: the rule; fits: all edits that fit the sentence; result: its text.
    """

    sentence: str
    edit: str
    old: str
    new: str
    place: int
    why: str
    fits: list[str]
    result: str

    def to_dict(self) -> dict[str, Any]:
        """Strings, a number and a list of strings."""
        return asdict(self)

    def __str__(self) -> str:
        what = f"{self.edit}: {self.old!r} -> {self.new!r} at {self.place}: {self.why}" if self.edit else "no edit fits"
        return f"{self.result}\n{what} (fitting: {', '.join(self.fits) or 'none'})"


class NearMisses(TextAugmentation):
    """Makes one small edit of each sentence that changes what it means, written like the sentence.

    Every draw is a function of (seed, epoch, sample index, row) alone, as in `Augmenter`: which of the chosen edits
    that fit the sentence, by their weights, at which place, and with what. A sentence that none of them fits gets
    "word".

    Args:
        index: the corpus.
        edits: names with their weights, as "polarity:1,number:4"; a name without a weight has 1. polarity: the opposite
            of a word, or a negation that is inserted or removed; number: another number, ordinal, month, day or unit;
            name: another name, a word that has a capital in most of its places inside sentences; swap: two important
            words change places; word: the most important word becomes another one (UNA with beta 0).
        polarity: a file of words in another language, or of your own, in the form of `una_fast/augment/english.txt`:
            two opposites on a line, with a tab or a comma between, and each negation on a line of its own. It is read
            instead of the English lists.
        seed: any integer.
        tokenizer: a Hugging Face tokenizer; only `token_ids` needs it.
        n_jobs: threads for large batches; all cores this process may use if None.

    Raises:
        InputError: an unknown edit, a weight that is no number above 0, or a file that cannot be read.

    Warns:
        InputWarning: polarity or number fits hardly a sentence of the corpus, as where its language is not English.
    """

    @suggests_keywords
    def __init__(
        self,
        index: Index,
        edits: str = "polarity:1,number:4",
        polarity: str | Path | None = None,
        seed: int = 42,
        tokenizer: Any = None,
        n_jobs: int | None = None,
    ):
        check_arguments(NearMisses.__init__, index, {})
        self._weights = parse_edits(edits)
        self._lists = read_word_lists(Path(polarity) if polarity else ENGLISH)
        settings = {"edits": edits, "polarity": polarity, "seed": seed}
        super().__init__(index, **settings, tokenizer=tokenizer, n_jobs=n_jobs)
        self._seed = seed_of("near-misses", seed)
        self.kept_words = KeptWords(punctuation=True)
        self._kernels = {"word": replaced_term(index, self.kept_words, seed)}
        self._names = np.zeros(index.n_terms, dtype=bool)
        if "name" in self._weights:
            self._names = find_names(index)
            names = frozenset(index.terms[i] for i in np.flatnonzero(self._names))
            if len(names) >= 2:
                self._kernels["name"] = replaced_term(index, OtherWords(words=names), seed)
        self._warn_of_other_language()

    def _warn_of_other_language(self) -> None:
        rows = np.unique(np.linspace(0, len(self.index) - 1, SAMPLE).astype(int)).tolist()
        sentences = [sentence for row in rows if (sentence := Sentence.of(self.index.sentence(row))).words]
        for name in BY_TEXT.keys() & self._weights.keys():
            n_fitting = sum(bool(BY_TEXT[name](sentence, self._lists)) for sentence in sentences)
            if n_fitting < LEAST_SHARE * len(sentences):
                needed = "" if self._settings["polarity"] else "; its lists are English: give polarity=FILE of your own"
                warn_user(
                    f"edits: {name} fits {n_fitting} of {len(sentences)} sentences of the corpus, and the others get "
                    f"the edits that remain, or else word{needed}"
                )

    def _fitting(self, source: Rows, row: int, sentence: Sentence) -> dict[str, list[Edit]]:
        """The chosen edits that fit a row, in the order of `KINDS`; those of a kernel have an empty list."""
        found: dict[str, list[Edit]] = {}
        for name in self._weights:
            if name in BY_TEXT:
                found[name] = BY_TEXT[name](sentence, self._lists)
            elif name == "swap":
                found[name] = swap_edits(sentence, self._importance(source, row))
            elif name == "word" or (name in self._kernels and self._names[self._seen(source, row)].any()):
                found[name] = []
        return {name: edits for name, edits in found.items() if edits or name in ("word", "name")} or {"word": []}

    def _seen(self, source: Rows, row: int) -> np.ndarray:
        ids = source.words[row]
        return ids[ids < self.index.n_terms]

    def _importance(self, source: Rows, row: int) -> dict[str, float]:
        ids = self._seen(source, row)
        return dict(zip((self.index.terms[i].lower() for i in ids.tolist()), self.index.idf[ids].tolist(), strict=True))

    def _plan(self, source: Rows, rows: np.ndarray, key: SampleKey) -> list[tuple[str, Sentence, Edit | None, str]]:
        """For each of `rows` the name of its edit and, unless a kernel makes it, the edit and what it puts in."""
        bits = CounterRNG(self._seed, key.epoch, source.numbers(rows), key.sample_index).bits(3).tolist()
        plan: list[tuple[str, Sentence, Edit | None, str]] = []
        for row, (by_kind, by_place, by_option) in zip(rows.tolist(), bits, strict=True):
            sentence = Sentence.of(source.sentence(row))
            fitting = self._fitting(source, row, sentence)
            name = self._chosen([*fitting], by_kind)
            if not (edits := fitting[name]):
                plan.append((name, sentence, None, ""))
                continue
            edit = edits[by_place * len(edits) >> 64]
            plan.append((name, sentence, edit, edit.options[by_option * len(edit.options) >> 64]))
        return plan

    def _chosen(self, names: list[str], bits: int) -> str:
        """One of `names` by their weights and 64 random bits."""
        weights = [self._weights.get(name, 1.0) for name in names]
        height = (bits >> 11) * 2.0**-53 * sum(weights)
        for name, weight in zip(names, weights, strict=True):
            height -= weight
            if height < 0:
                return name
        return names[-1]

    def _texts(self, source: Rows, rows: np.ndarray, key: SampleKey) -> list[str]:
        plan = self._plan(source, rows, key)
        texts = [apply(sentence.text, edit, new) if edit else "" for _, sentence, edit, new in plan]
        for name, kernel in self._kernels.items():
            lines = [i for i, (of, _, edit, _) in enumerate(plan) if of == name and edit is None]
            own = kernel._documents if source is self._documents else source
            for i, text in zip(lines, kernel._texts(own, rows[lines], key) if lines else (), strict=True):
                texts[i] = text
        return texts

    def explain(self, sentence: str, epoch: int = 0, *, sample_index: int = 0) -> NearMiss:
        """What was done to `sentence`, and why; `str` gives two lines."""
        source, row, key = self._read([sentence]), np.zeros(1, dtype=np.int64), SampleKey(epoch, sample_index)
        ((name, parsed, edit, new),) = self._plan(source, row, key)
        (result,) = self._texts(source, row, key)
        fits = [*self._fitting(source, 0, parsed)]
        if result == parsed.text:
            return NearMiss(parsed.text, "", "", "", 0, "", [], result)
        if edit is None:
            start, old, new = difference(parsed.text, result)
            why = "its most important name" if name == "name" else "its most important word"
            return NearMiss(parsed.text, name, old, new, start, why, fits, result)
        old = parsed.text[edit.start : edit.stop]
        return NearMiss(parsed.text, name, old, new, edit.start, edit.why, fits, result)


class OtherWords(KeptWords):
    """Keeps all words except `words`."""

    def among(self, words: Sequence[str]) -> np.ndarray:  # noqa: D102  of KeptWords
        return np.fromiter((word not in self.words for word in words), bool, len(words))


def replaced_term(index: Index, kept: KeptWords, seed: int) -> KernelAugmentation:
    """UNA with beta 0: the most important word that is not `kept` becomes another such word."""
    law: dict[str, Any] = {"beta": 0, "radius": None, "seed": seed, "select": "tfidf", "replace": "tfidf"}
    config = make_config(index, kept, "kept", **law, variant="paper", same_script=True)
    drawn = np.unique(config.groups)

    def make_kernel(source: Rows) -> Negatives:
        return Negatives(source.words, config, None, source.keys, groups_of_unseen(kept, drawn, source))

    return KernelAugmentation(index, make_kernel, surface="kept", tokenizer=None, n_jobs=None)


def parse_edits(edits: str) -> dict[str, float]:
    """The weight of each edit, in the order of `KINDS`, of text such as "polarity:1,number:4".

    Raises:
        InputError: an unknown or repeated name, or a weight that is no number above 0.
    """
    found: dict[str, float] = {}
    for part in edits.split(",") if isinstance(edits, str) else ():
        name, colon, weight = (item.strip() for item in part.partition(":"))
        if name not in KINDS:
            answer = nearest(name, KINDS) or f"choose from {', '.join(KINDS)}"
            raise InputError(f"edits={edits!r}: there is no edit {name!r}: {answer}")
        try:
            found[name] = float(weight) if colon else 1.0
        except ValueError:
            found[name] = math.nan
        if not 0 < found[name] < math.inf:
            raise InputError(f"edits={edits!r}: {name} has the weight {weight!r}: give a number above 0, as {name}:2")
    if not found:
        raise InputError(f"edits={edits!r}: give names with weights, such as 'polarity:1,number:4'")
    return {name: found[name] for name in KINDS if name in found}


def find_names(index: Index) -> np.ndarray:
    """Which terms are names: bool (V,). They have a capital in most of their places inside sentences.

    The first chunk of a sentence does not count, nor does a word of one letter.
    """
    chunks, sentences = index.chunks, index.sentences
    inside = np.bincount(sentences.values, minlength=len(chunks))
    inside -= np.bincount(sentences.values[sentences.indptr[:-1][sentences.lengths() > 0]], minlength=len(chunks))
    counts: Counter[str] = Counter()  # capitals less other places
    for k in np.flatnonzero(inside).tolist():
        word = WORD.search(chunks[k])
        if word and len(word[0]) > 1:
            counts[word[0].lower()] += int(inside[k]) * (1 if word[0][0].isupper() else -1)
    return np.array([counts[word.lower()] > 0 and (index.lowercase or word[0].isupper()) for word in index.terms], bool)


def difference(old: str, new: str) -> tuple[int, str, str]:
    """Where two texts begin to differ, at the start of a word, and the differing parts of both up to a word's end."""
    start = first_difference(old, new)
    start = max(old.rfind(" ", 0, start), -1) + 1
    left, right = old[start:], new[start:]
    end = first_difference(left[::-1], right[::-1])
    end = max(left[::-1].rfind(" ", 0, end), 0)
    return start, left[: len(left) - end], right[: len(right) - end]


def first_difference(a: str, b: str) -> int:
    """The first place at which two texts differ; the length of the shorter one if there is none."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def apply(text: str, edit: Edit, new: str) -> str:
    """The text after an edit that puts in `new`."""
    return f"{text[: edit.start]}{new}{text[edit.stop :]}"
