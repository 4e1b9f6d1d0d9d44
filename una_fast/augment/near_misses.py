"""Near-misses: each sentence gets one small edit that changes what it means."""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from una_fast.augment.base import Explanation, KernelAugmentation, TextAugmentation
from una_fast.augment.counter_rng import CounterRNG, SampleKey, pick, seed_of, unit
from una_fast.augment.edits import WORD, Edit, Sentence, number_edits, polarity_edits, swap_edits
from una_fast.augment.kept_words import KeptWords
from una_fast.augment.sampler import Sampler
from una_fast.augment.split_sentences import SplitSentences
from una_fast.augment.word_lists import FUNCTION, WordLists, read_word_lists
from una_fast.errors import InputError, nearest, suggests_keywords, warn_user
from una_fast.index.index import Index

BY_LISTS: dict[str, Callable[[Sentence, WordLists], list[Edit]]] = {"polarity": polarity_edits, "number": number_edits}
EDITS = (*BY_LISTS, "name", "swap", "word")
FIRST_WORD = re.compile(WORD)
SAMPLE = 200  # sentences in which edits are counted, to detect a corpus in another language
LEAST_SHARE = 0.02  # an edit that fits a smaller share of these sentences gives a warning


@dataclass(frozen=True)
class NearMiss(Explanation):
    """A sentence and its near-miss, with the edit that was made. It prints as two lines."""

    sentence: str
    edit: str  # its name; "" if the text was not changed
    old: str  # the text that was replaced
    new: str  # its replacement
    place: int  # where `old` starts in `sentence`, in characters
    why: str  # the rule that found the edit
    fitting: list[str]  # the names of the edits that could have been drawn

    def __str__(self) -> str:
        what = f"{self.edit}: {self.why}: {self.old!r} -> {self.new!r}" if self.edit else "no edit"
        return f"{self.result}\n{what} (edits that fit: {', '.join(self.fitting)})"


class NearMisses(TextAugmentation):
    """Changes the meaning of each sentence with one small edit.

    One of the edits that fit a sentence is drawn, with a probability proportional to its weight in `edits`, then its
    place and the replacement. If none of `edits` fits, the sentence gets the edit "word". The random numbers depend
    only on the seed, epoch, sample index and row.

    Args:
        index: the corpus.
        edits: names and weights of edits, such as "polarity:1,number:4". A name without a weight has weight 1.

            - polarity: replace a word with its opposite, or insert or remove a negation.
            - number: replace a number, ordinal, month, day or unit with another one.
            - name: replace a name (a word that is mostly capitalised inside sentences) with another name.
            - swap: swap two important words.
            - word: replace the most important word with another one (UNA with beta 0).
        polarity: a file that replaces the English word lists, in the format of una_fast/augment/english.txt. Each line
            contains two opposites, separated by a tab or a comma, or one negation. Further sections may follow.
        seed: any integer.
        tokenizer: a Hugging Face tokenizer; only `token_ids` needs it.
        n_jobs: threads that encode the index with the tokenizer.

    Raises:
        InputError: an unknown edit, a weight that is not a number above 0, or a file that cannot be read.

    Warns:
        InputWarning: polarity or number fits few sentences of the corpus, perhaps because they are not English.
    """

    training_options = ("edits", "polarity")

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
        self._weights, self._lists = parse_edits(edits), read_word_lists(polarity)
        super().__init__(index, edits=edits, polarity=polarity, seed=seed, tokenizer=tokenizer, n_jobs=n_jobs)
        self._function_words = self._lists.words[FUNCTION] or read_word_lists().words[FUNCTION]
        self._seed = seed_of("near-misses", seed)
        self.kept_words = KeptWords(punctuation=True)
        self._kernels = {"word": _important_word(index, self.kept_words, seed)}
        self._is_name = np.zeros(index.n_terms, dtype=bool)
        if "name" in self._weights:
            self._is_name = find_names(index, self._lists.words["question words"])
        if np.count_nonzero(self._is_name) >= 2:
            names = frozenset(index.terms.take(np.flatnonzero(self._is_name)))
            self._kernels["name"] = _important_word(index, KeptWords(replaceable=names), seed)
        self._warn_of_other_language()

    def _warn_of_other_language(self) -> None:
        rows = np.unique(np.linspace(0, len(self.index) - 1, SAMPLE).astype(int))
        sentences = [sentence for text in self._documents.texts(rows) if (sentence := Sentence(text)).words]
        for name in BY_LISTS.keys() & self._weights.keys():
            n = sum(bool(BY_LISTS[name](sentence, self._lists)) for sentence in sentences)
            if n < LEAST_SHARE * len(sentences):
                advice = "" if self._settings["polarity"] else ". The word lists are English: give polarity=FILE"
                warn_user(f"edits: {name} fits {n} of {len(sentences)} sentences; the others get another edit{advice}")

    def _find(self, name: str, ids: np.ndarray, sentence: Sentence) -> list[Edit] | None:
        """Return the possible edits of one kind, such as "number", in a sentence. ids: the sentence's word ids.

        Kernels make the edits "word" and "name", so for these two the result is None if the edit is possible, else [].
        """
        if name in BY_LISTS:
            return BY_LISTS[name](sentence, self._lists)
        if name == "word":
            return None
        seen = ids[ids < self.index.n_terms]
        if name == "swap":
            terms = map(str.lower, self.index.terms.take(seen))
            return swap_edits(
                sentence, dict(zip(terms, self.index.idf[seen].tolist(), strict=True)), self._function_words
            )
        return None if name in self._kernels and self._is_name[seen].any() else []

    def _fitting(self, ids: np.ndarray, sentence: Sentence) -> dict[str, list[Edit] | None]:
        found = {name: self._find(name, ids, sentence) for name in self._weights}
        return {name: edits for name, edits in found.items() if edits != []} or {"word": None}

    def fits(self, rows: np.ndarray) -> np.ndarray:
        """Return, for each document in `rows`, whether any of the chosen `edits` fits it: bool (n_rows,)."""
        texts, words = self._documents.texts(rows), self._documents.words
        sentences = zip(rows.tolist(), map(Sentence, texts), strict=True)
        return np.array(
            [any(self._find(name, words[i], s) != [] for name in self._weights) for i, s in sentences], bool
        )

    def _draw_edit(self, ids: np.ndarray, text: str, bits: Sequence[int]) -> tuple[str, Edit | None]:
        """Draw the name of an edit that fits `text`, then one of the edits with this name, then one of its options.

        Returns the name, and the edit with this option. The edit is None for "word" and "name" (see `_find`).
        """
        fitting = self._fitting(ids, Sentence(text))
        ends = [*accumulate(self._weights.get(name, 1.0) for name in fitting)]
        name = [*fitting][bisect(ends[:-1], unit(bits[0]) * ends[-1])]
        edits = fitting[name]
        return name, pick(bits[1], edits).drawn(bits[2]) if edits else None

    def _bits(self, source: SplitSentences, rows: np.ndarray, key: SampleKey) -> list[list[int]]:
        return CounterRNG(self._seed, key.epoch, source.streams(rows), key.sample_index).bits(3).tolist()

    def _texts(self, source: SplitSentences, rows: np.ndarray, key: SampleKey) -> list[str]:
        texts, of_kernels = source.texts(rows), defaultdict(list)
        for i, bits in enumerate(self._bits(source, rows, key)):
            name, edit = self._draw_edit(source.words[rows[i]], texts[i], bits)
            if edit:
                texts[i] = edit.applied(texts[i])
            else:
                of_kernels[name].append(i)
        for name, places in of_kernels.items():
            for i, text in zip(places, self._kernels[name]._texts(source, rows[places], key), strict=True):
                texts[i] = text
        return texts

    def explain(self, sentence: str, epoch: int = 0, *, sample_index: int = 0) -> NearMiss:
        """Return which edit `sentence` gets, where and why. The result prints as two lines."""
        source, row, key = self._read([sentence]), np.zeros(1, dtype=np.int64), SampleKey(epoch, sample_index)
        (text,), (result,), ids = source.texts(row), self._texts(source, row, key), source.words[0]
        name, edit = self._draw_edit(ids, text, *self._bits(source, row, key))
        edit = edit or difference(text, result, f"the most important {name} of the sentence")
        replaced, (new,) = text[edit.start : edit.stop], edit.options
        fitting = [*self._fitting(ids, Sentence(text))]
        return NearMiss(result, text, "" if result == text else name, replaced, new, edit.start, edit.why, fitting)


def _important_word(index: Index, kept: KeptWords, seed: int) -> KernelAugmentation:
    """Make UNA with beta 0, which replaces only the most important word that is not `kept`."""
    return KernelAugmentation(index, Sampler(index, kept, beta=0, seed=seed).kernel, surface="kept")


def difference(old: str, new: str, why: str) -> Edit:
    """Return the edit that turns the text `old` into `new`. It replaces whole chunks (texts between spaces)."""
    chunks, others = old.split(" "), new.split(" ")
    n_first = _n_equal(chunks, others)
    n_last = _n_equal(chunks[n_first:][::-1], others[n_first:][::-1])
    start = len(" ".join([*chunks[:n_first], ""]))
    replaced, put = (" ".join(each[n_first : len(each) - n_last]) for each in (chunks, others))
    return Edit(start, start + len(replaced), (put,), why)


def _n_equal(these: Sequence[str], those: Sequence[str]) -> int:
    return next((i for i, (a, b) in enumerate(zip(these, those, strict=False)) if a != b), min(len(these), len(those)))


def parse_edits(edits: str) -> dict[str, float]:
    """Parse a text such as "polarity:1,number:4" into a dict from names of edits to weights, in the order of EDITS."""
    found: dict[str, float] = {}
    for part in str(edits).split(","):
        name, colon, weight = (item.strip() for item in part.partition(":"))
        if name not in EDITS:
            answer = nearest(name, EDITS) or f"choose from {', '.join(EDITS)}"
            raise InputError(f"edits={edits!r}: no edit is called {name!r}: {answer}")
        try:
            found[name] = float(weight) if colon else 1.0
        except ValueError:
            found[name] = math.nan
        if not 0 < found[name] < math.inf:
            raise InputError(f"edits={edits!r}: the weight of {name} is {weight!r}: give a number above 0")
    return {name: found[name] for name in EDITS if name in found}


def find_names(index: Index, never: Collection[str] = ()) -> np.ndarray:
    """Return whether each term is a name: bool (n_terms,).

    A name is a word of at least two letters that is capitalised in most of its occurrences inside documents. never:
    lower-case words that are not names, such as "what", which often starts the second sentence of a document.
    """
    chunks, sentences = index.chunks, index.chunk_ids
    inside = np.bincount(sentences.values, minlength=len(chunks))
    inside -= np.bincount(sentences.values[sentences.indptr[:-1][sentences.lengths() > 0]], minlength=len(chunks))
    surplus: Counter[str] = Counter()  # capitalised occurrences minus the others
    for text, n in zip(chunks, inside.tolist(), strict=True):
        word = n and FIRST_WORD.search(text)
        if word and len(word[0]) > 1:
            surplus[word[0].lower()] += n if word[0][0].isupper() else -n
    return np.array(
        [
            surplus[word.lower()] > 0 and word.lower() not in never and (index.lowercase or word[:1].isupper())
            for word in index.terms
        ],
        bool,
    )
