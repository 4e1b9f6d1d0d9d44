"""Near-misses: each sentence gets one small edit that changes what it means."""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from una_fast._kernels.draws.negatives import UnaRows
from una_fast.augment.base import KernelAugmentation, TextAugmentation, check_arguments
from una_fast.augment.counter_rng import CounterRNG, SampleKey, seed_of
from una_fast.augment.edits import WORD, Edit, Sentence, number_edits, polarity_edits, swap_edits
from una_fast.augment.id_writers import EditedIds, changed_chunks
from una_fast.augment.rows import Rows
from una_fast.augment.settings import KeptWords, make_config
from una_fast.augment.una import groups_of_unseen
from una_fast.augment.word_lists import ENGLISH, WordLists, read_word_lists
from una_fast.errors import InputError, nearest, suggests_keywords, warn_user
from una_fast.index.index import Index
from una_fast.tokens.ids import TokenIds

BY_LISTS: dict[str, Callable[[Sentence, WordLists], list[Edit]]] = {"polarity": polarity_edits, "number": number_edits}
EDITS = (*BY_LISTS, "name", "swap", "word")
FIRST_WORD = re.compile(WORD)
SAMPLE = 200  # sentences by which a corpus is noticed whose language the lists do not have
LEAST_SHARE = 0.02  # of them that an edit must fit


@dataclass(frozen=True)
class NearMiss:
    """What was done to a sentence: `str` gives two lines, `to_dict` plain data for JSON.

    result: the text that it became; edit: its name, "" if none fits; old, new: what was replaced, by what; place: where
    `old` starts, in characters; why: the rule; fitting: the names of all edits that fit the sentence.
    """

    sentence: str
    result: str
    edit: str
    old: str
    new: str
    place: int
    why: str
    fitting: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Strings, a number and a list of strings."""
        return asdict(self)

    def __str__(self) -> str:
        what = f"{self.edit}: {self.why}: {self.old!r} -> {self.new!r}" if self.edit else "no edit"
        return f"{self.result}\n{what} (what fits: {', '.join(self.fitting)})"


class NearMisses(TextAugmentation):
    """Makes one small edit of each sentence that changes what it means, written like the sentence.

    Every draw is a function of (seed, epoch, sample index, row) alone, as in `Augmenter`: which of the chosen edits
    that fit the sentence, by their weights, at which place, and with what. A sentence that none of them fits gets
    "word".

    Args:
        index: the corpus.
        edits: names with their weights, such as "polarity:1,number:4"; a name without a weight has 1. polarity: the
            opposite of a word, or a negation that is inserted or removed; number: another number, ordinal, month, day
            or unit; name: another name, which is a word with a capital in most of its places inside sentences; swap:
            two important words change places; word: the most important word becomes another one (UNA with beta 0).
        polarity: a file of words, for another language or of your own, which is read instead of the English lists. Two
            opposites on a line, with a tab or a comma between; each negation on a line of its own. `english.txt` in
            una_fast/augment, which has the same form, shows what else it may hold.
        seed: any integer.
        tokenizer: a Hugging Face tokenizer; only `token_ids` needs it.
        n_jobs: threads for large batches; all cores this process may use if None.

    Raises:
        InputError: an unknown edit, a weight that is not a number above 0, or a file that cannot be read.

    Warns:
        InputWarning: polarity or number fits hardly any sentence of the corpus, as where its language is not English.
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
        check_arguments(NearMisses.__init__, index, {})
        self._weights, self._lists = check_edits(edits, polarity)
        super().__init__(index, edits=edits, polarity=polarity, seed=seed, tokenizer=tokenizer, n_jobs=n_jobs)
        self._seed = seed_of("near-misses", seed)
        self.kept_words = KeptWords(punctuation=True)
        self._kernels = {"word": self._replaced_word(self.kept_words, seed)}
        self._is_name = np.zeros(index.n_terms, dtype=bool)
        if "name" in self._weights:
            self._is_name = find_names(index)
        if np.count_nonzero(self._is_name) >= 2:
            names = frozenset(index.terms[i] for i in np.flatnonzero(self._is_name).tolist())
            self._kernels["name"] = self._replaced_word(AllExcept(words=names), seed)
        if self.tokens is not None and self.tokens.by_word:
            self._id_writer = NearMissIds(self, self.tokens)
        self._warn_of_other_language()

    def _replaced_word(self, kept: KeptWords, seed: int) -> KernelAugmentation:
        """UNA with beta 0: the most important word that is not `kept` becomes another such word."""
        law: dict[str, Any] = {"beta": 0, "radius": None, "seed": seed, "select": "tfidf", "replace": "tfidf"}
        config = make_config(self.index, kept, "kept", **law, variant="paper", same_script=True)
        drawn = np.unique(config.groups)

        def make_kernel(source: Rows) -> UnaRows:
            return UnaRows(source.words, config, None, source.keys, groups_of_unseen(kept, drawn, source))

        return KernelAugmentation(self.index, make_kernel, surface="kept", tokenizer=self.tokens, n_jobs=None)

    def _warn_of_other_language(self) -> None:
        rows = np.unique(np.linspace(0, len(self.index) - 1, SAMPLE).astype(int))
        sentences = [sentence for text in self._documents.texts(rows) if (sentence := Sentence(text)).words]
        for name in BY_LISTS.keys() & self._weights.keys():
            n = sum(bool(BY_LISTS[name](sentence, self._lists)) for sentence in sentences)
            if n < LEAST_SHARE * len(sentences):
                advice = "" if self._settings["polarity"] else "; the word lists are English: give polarity=FILE"
                warn_user(f"edits: {name} fits {n} of {len(sentences)} sentences, the others get another edit{advice}")

    def _find(self, name: str, ids: np.ndarray, sentence: Sentence) -> list[Edit] | None:
        """The edits of a name that fit a sentence whose words have these ids. None: a kernel draws the edit."""
        if name in BY_LISTS:
            return BY_LISTS[name](sentence, self._lists)
        if name == "word":
            return None
        seen = ids[ids < self.index.n_terms]
        if name == "swap":
            terms = map(str.lower, self.index.terms.take(seen))
            return swap_edits(sentence, dict(zip(terms, self.index.idf[seen].tolist(), strict=True)))
        return None if name in self._kernels and self._is_name[seen].any() else []

    def _fitting(self, ids: np.ndarray, sentence: Sentence) -> dict[str, list[Edit] | None]:
        found = {name: self._find(name, ids, sentence) for name in self._weights}
        return {name: edits for name, edits in found.items() if edits != []} or {"word": None}

    def fits(self, rows: np.ndarray) -> np.ndarray:
        """Which rows of the index one of the chosen edits fits, bool (R,); the others get "word"."""
        words, texts = self._documents.words, self._documents.texts(rows)
        return np.array(
            [
                any(self._find(name, words[row], sentence) != [] for name in self._weights)
                for row, sentence in zip(rows.tolist(), map(Sentence, texts), strict=True)
            ],
            bool,
        )

    def _draw_edit(self, ids: np.ndarray, text: str, bits: list[int]) -> tuple[str, Edit | None, str]:
        """Draw the name of an edit of a text and, unless a kernel draws it, the edit and what it puts in.

        bits: 64 random ones for the name, the edit and the option each.
        """
        fitting = self._fitting(ids, Sentence(text))
        ends = [*accumulate(self._weights.get(name, 1.0) for name in fitting)]
        name = [*fitting][bisect(ends[:-1], (bits[0] >> 11) * 2.0**-53 * ends[-1])]
        if not (edits := fitting[name]):
            return name, None, ""
        edit = edits[bits[1] * len(edits) >> 64]
        return name, edit, edit.options[bits[2] * len(edit.options) >> 64]

    def _bits(self, source: Rows, rows: np.ndarray, key: SampleKey) -> list[list[int]]:
        return CounterRNG(self._seed, key.epoch, source.numbers(rows), key.sample_index).bits(3).tolist()

    def _plan(
        self, source: Rows, rows: np.ndarray, key: SampleKey
    ) -> tuple[list[str], list[str], dict[str, list[int]]]:
        """The texts of `rows` before and after the edits that no kernel draws; the lines of each kernel, and of ""."""
        old, new, lines = source.texts(rows), [], defaultdict(list)
        for i, (row, bits) in enumerate(zip(rows.tolist(), self._bits(source, rows, key), strict=True)):
            name, edit, put = self._draw_edit(source.words[row], old[i], bits)
            new.append(f"{old[i][: edit.start]}{put}{old[i][edit.stop :]}" if edit else old[i])
            lines["" if edit else name].append(i)
        return old, new, lines

    def _texts(self, source: Rows, rows: np.ndarray, key: SampleKey) -> list[str]:
        _, new, lines = self._plan(source, rows, key)
        for name, at in lines.items():
            if kernel := self._kernels.get(name):
                own = kernel._documents if source is self._documents else source
                for i, text in zip(at, kernel._texts(own, rows[at], key), strict=True):
                    new[i] = text
        return new

    def explain(self, sentence: str, epoch: int = 0, *, sample_index: int = 0) -> NearMiss:
        """What was done to `sentence`, and why; prints as two lines."""
        source, row, key = self._read([sentence]), np.zeros(1, dtype=np.int64), SampleKey(epoch, sample_index)
        (text,), (result,), ids = source.texts(row), self._texts(source, row, key), source.words[0]
        name, edit, new = self._draw_edit(ids, text, *self._bits(source, row, key))
        if edit:
            old, place, why = text[edit.start : edit.stop], edit.start, edit.why
        else:
            n_first, n_last, between = changed_chunks(text, result)
            chunks, new, why = text.split(" "), between[1:], f"the most important {name} of the sentence"
            old, place = " ".join(chunks[n_first : len(chunks) - n_last]), len(" ".join([*chunks[:n_first], ""]))
        fitting = [*self._fitting(ids, Sentence(text))]
        return NearMiss(text, result, "" if result == text else name, old, new, place, why, fitting)


class NearMissIds(EditedIds):
    """The ids of near-misses: kernels write what they draw."""

    def __init__(self, near_misses: NearMisses, tokens: TokenIds):
        super().__init__(tokens, near_misses._documents, near_misses._texts)
        self._plan, self._kernels = near_misses._plan, near_misses._kernels

    def write(self, rows: np.ndarray, key: SampleKey, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """See `IdWriter`."""
        needs_tokenizer = np.empty(len(rows), dtype=bool)
        old, new, lines = self._plan(self._documents, rows, key)
        for name, at in lines.items():
            part = np.empty((2, len(at), ids.shape[1]), dtype=ids.dtype)
            if kernel := self._kernels.get(name):
                needs_tokenizer[at] = kernel._id_writer.write(rows[at], key, *part)
            else:
                texts = [[texts[i] for i in at] for texts in (old, new)]
                needs_tokenizer[at] = self.write_texts(rows[at], texts[0], texts[1], *part)
            ids[at], mask[at] = part
        return needs_tokenizer


class AllExcept(KeptWords):
    """Keeps all words except `words`."""

    def among(self, words: Sequence[str]) -> np.ndarray:
        """See `KeptWords`."""
        return np.fromiter((word not in self.words for word in words), bool, len(words))


def check_edits(edits: str, polarity: str | Path | None) -> tuple[dict[str, float], WordLists]:
    """The weights and the word lists of the arguments of `NearMisses`. Raises InputError as it does."""
    return parse_edits(edits), read_word_lists(Path(polarity or ENGLISH))


def parse_edits(edits: str) -> dict[str, float]:
    """The weight of each edit of text such as "polarity:1,number:4", in the order of EDITS.

    Raises:
        InputError: no or an unknown name, or a weight that is not a number above 0.
    """
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


def find_names(index: Index) -> np.ndarray:
    """Which terms are names: bool (V,). They have a capital in most of their places inside sentences.

    The first chunk of a sentence does not count, nor does a word of one letter.
    """
    chunks, sentences = index.chunks, index.sentences
    inside = np.bincount(sentences.values, minlength=len(chunks))
    inside -= np.bincount(sentences.values[sentences.indptr[:-1][sentences.lengths() > 0]], minlength=len(chunks))
    surplus: Counter[str] = Counter()  # places with a capital, less those without
    for text, n in zip(chunks, inside.tolist(), strict=True):
        word = n and FIRST_WORD.search(text)
        if word and len(word[0]) > 1:
            surplus[word[0].lower()] += n if word[0][0].isupper() else -n
    return np.array(
        [surplus[word.lower()] > 0 and (index.lowercase or word[:1].isupper()) for word in index.terms], bool
    )
