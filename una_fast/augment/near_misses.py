"""Near-misses: each sentence gets one small edit that changes what it means."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from una_fast._kernels.draws.negatives import Negatives
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


class Planned(NamedTuple):
    """The edit of a row: its name and, unless a kernel draws it, the edit and the option that is put in."""

    name: str
    edit: Edit | None
    new: str


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
        self._weights = parse_edits(edits)
        self._lists = read_word_lists(Path(polarity) if polarity else ENGLISH)
        super().__init__(index, edits=edits, polarity=polarity, seed=seed, tokenizer=tokenizer, n_jobs=n_jobs)
        self._seed = seed_of("near-misses", seed)
        self.kept_words = KeptWords(punctuation=True)
        self._kernels = {"word": self._replaced_word(self.kept_words, seed)}
        self._is_name = find_names(index) if "name" in self._weights else np.zeros(index.n_terms, dtype=bool)
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

        def make_kernel(source: Rows) -> Negatives:
            return Negatives(source.words, config, None, source.keys, groups_of_unseen(kept, drawn, source))

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
            terms = (self.index.terms[i].lower() for i in seen.tolist())
            return swap_edits(sentence, dict(zip(terms, self.index.idf[seen].tolist(), strict=True)))
        return None if name in self._kernels and self._is_name[seen].any() else []

    def _fitting(self, ids: np.ndarray, sentence: Sentence) -> dict[str, list[Edit] | None]:
        found = {name: self._find(name, ids, sentence) for name in self._weights}
        return {name: edits for name, edits in found.items() if edits or edits is None} or {"word": None}

    def _plan(self, source: Rows, rows: np.ndarray, texts: list[str], key: SampleKey) -> list[Planned]:
        """The edit of each of `rows`, whose sentences are `texts`."""
        bits = CounterRNG(self._seed, key.epoch, source.numbers(rows), key.sample_index).bits(3).tolist()
        plan = []
        for row, text, (by_name, by_edit, by_option) in zip(rows.tolist(), texts, bits, strict=True):
            fitting = self._fitting(source.words[row], Sentence(text))
            name = choose({name: self._weights.get(name, 1.0) for name in fitting}, by_name)
            if edits := fitting[name]:
                edit = edits[by_edit * len(edits) >> 64]
                plan.append(Planned(name, edit, edit.options[by_option * len(edit.options) >> 64]))
            else:
                plan.append(Planned(name, None, ""))
        return plan

    def _texts(self, source: Rows, rows: np.ndarray, key: SampleKey) -> list[str]:
        texts = source.texts(rows)
        plan = self._plan(source, rows, texts, key)
        for name, lines in lines_by_writer(plan):
            if kernel := self._kernels.get(name):
                own = kernel._documents if source is self._documents else source
                made = kernel._texts(own, rows[lines], key)
            else:
                made = [edited(texts[i], plan[i]) for i in lines]
            for i, text in zip(lines, made, strict=True):
                texts[i] = text
        return texts

    def explain(self, sentence: str, epoch: int = 0, *, sample_index: int = 0) -> NearMiss:
        """What was done to `sentence`, and why; prints as two lines."""
        source, row, key = self._read([sentence]), np.zeros(1, dtype=np.int64), SampleKey(epoch, sample_index)
        (text,), (result,) = source.texts(row), self._texts(source, row, key)
        ((name, edit, new),) = self._plan(source, row, [text], key)
        fitting = [*self._fitting(source.words[0], Sentence(text))]
        if edit:
            old, place, why = text[edit.start : edit.stop], edit.start, edit.why
        else:
            n_first, n_last, new = changed_chunks(text, result)
            chunks = text.split(" ")
            old, place = " ".join(chunks[n_first : len(chunks) - n_last]), len(" ".join([*chunks[:n_first], ""]))
            new, why = new[1:], f"the most important {name} of the sentence"
        return NearMiss(text, result, "" if result == text else name, old, new, place, why, fitting)


class NearMissIds(EditedIds):
    """The ids of near-misses: kernels write what they draw."""

    def __init__(self, near_misses: NearMisses, tokens: TokenIds):
        super().__init__(tokens, near_misses._documents, near_misses._texts)
        self._plan, self._kernels = near_misses._plan, near_misses._kernels

    def write(self, rows: np.ndarray, key: SampleKey, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """See `IdWriter`."""
        texts, needs_tokenizer = self._documents.texts(rows), np.empty(len(rows), dtype=bool)
        plan = self._plan(self._documents, rows, texts, key)
        for name, lines in lines_by_writer(plan):
            own = np.empty((2, len(lines), ids.shape[1]), dtype=ids.dtype)
            if kernel := self._kernels.get(name):
                needs_tokenizer[lines] = kernel._id_writer.write(rows[lines], key, *own)
            else:
                old, new = zip(*((texts[i], edited(texts[i], plan[i])) for i in lines), strict=True)
                needs_tokenizer[lines] = self.write_texts(rows[lines], old, new, *own)
            ids[lines], mask[lines] = own
        return needs_tokenizer


class AllExcept(KeptWords):
    """Keeps all words except `words`."""

    def among(self, words: Sequence[str]) -> np.ndarray:
        """See `KeptWords`."""
        return np.fromiter((word not in self.words for word in words), bool, len(words))


def lines_by_writer(plan: list[Planned]) -> list[tuple[str, list[int]]]:
    """The lines of a plan that each kernel draws, by its name, and under "" those that have an edit."""
    found: dict[str, list[int]] = {}
    for i, planned in enumerate(plan):
        found.setdefault("" if planned.edit else planned.name, []).append(i)
    return [*found.items()]


def edited(text: str, planned: Planned) -> str:
    """The text after a planned edit."""
    assert planned.edit is not None
    return f"{text[: planned.edit.start]}{planned.new}{text[planned.edit.stop :]}"


def choose(weights: Mapping[str, float], bits: int) -> str:
    """One of the names by their weights and 64 random bits."""
    height = (bits >> 11) * 2.0**-53 * sum(weights.values())
    for name, weight in weights.items():
        height -= weight
        if height < 0:
            return name
    return name


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
