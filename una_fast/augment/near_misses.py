"""Near-misses: each sentence gets one small edit that changes what it means."""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from types import MappingProxyType
from typing import Any

import numpy as np

from una_fast.augment.base import Explanation, KernelAugmentation, TextAugmentation
from una_fast.augment.counter_rng import CounterRNG, SampleKey, pick, seed_of, unit
from una_fast.augment.edits import WORD, Edit, Sentence, number_edits, polarity_edits, swap_edits
from una_fast.augment.kept_words import KeptWords
from una_fast.augment.sampler import Sampler
from una_fast.augment.split_sentences import SplitSentences
from una_fast.augment.word_lists import FUNCTION, WordListFiles, WordLists, read_word_lists
from una_fast.corpus.word_tokenizers import NAMED
from una_fast.errors import InputError, is_number, nearest, suggests_keywords, warn_user
from una_fast.index.index import Index, empty_index
from una_fast.tokens.ids import RowNumbers, checked_rows

BY_LISTS: dict[str, Callable[[Sentence, WordLists], list[Edit]]] = {"polarity": polarity_edits, "number": number_edits}
EDITS = (*BY_LISTS, "name", "swap", "word")
USUAL: Mapping[str, float] = MappingProxyType({"polarity": 1, "number": 4})
FIRST_WORD = re.compile(WORD)
SAMPLE = 200  # sentences in which edits are counted, to detect a corpus in another language
LEAST_SHARE = 0.02  # an edit that fits a smaller share of these sentences gives a warning
MOST_AFTER_DETERMINERS = 0.2  # a word that follows "the", "a", "der", "eine" ... more often is no name


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
        index: the corpus. Without it, only `augment` and `explain` are available, with the edits polarity and number,
            and a text that no edit fits is returned unchanged.
        edits: names of edits, or a mapping from names to weights, numbers above 0.

            - polarity: replace a word with its opposite, or insert or remove a negation.
            - number: replace a number, ordinal, month, day or unit with another one.
            - name: replace a name (a word that is mostly capitalised inside sentences) with another name.
            - swap: swap two important words.
            - word: replace the most important word with another one (UNA with beta 0).
        word_lists: one or several files that replace the English word lists, in the format of
            una_fast/augment/english.txt.
        seed: any integer.
        tokenizer: a Hugging Face tokenizer; only `token_ids` needs it.
        n_jobs: threads that encode the index with the tokenizer.

    Raises:
        InputError: an unknown edit, a weight that is not a number above 0, an edit or a tokenizer that needs an index,
            or a file that cannot be read.
    """

    training_options = ("edits", "word_lists")

    @suggests_keywords
    def __init__(
        self,
        index: Index | None = None,
        *,
        edits: Mapping[str, float] | Iterable[str] = USUAL,
        word_lists: WordListFiles = None,
        seed: int = 42,
        tokenizer: Any = None,
        n_jobs: int | None = None,
    ):
        self._weights, self._lists = check_edits(edits), read_word_lists(word_lists)
        index = empty_index() if index is None else index
        settings = {"edits": self._weights, "word_lists": word_lists, "seed": seed}
        super().__init__(index, **settings, tokenizer=tokenizer if index else None, n_jobs=n_jobs)
        self._function_words = self._words(FUNCTION)
        self._seed = seed_of("near-misses", seed)
        self._has_own_words = index.word_tokenizer not in NAMED
        self.kept_words = KeptWords(punctuation=True)
        self._kernels: dict[str, KernelAugmentation] = {}
        self._is_name = np.zeros(index.n_terms, dtype=bool)
        if index:
            self._add_kernels(index, seed)
            self._warn_of_other_language()
        elif beyond := [*("tokenizer",) * (tokenizer is not None), *self._weights.keys() - BY_LISTS.keys()]:
            raise InputError(f"{beyond[0]}: needs an index: give NearMisses(index, ...)")

    def _words(self, section: str) -> frozenset[str]:
        """Return the words of a section of the word lists, or the English ones if the section is empty."""
        return self._lists.words[section] or read_word_lists().words[section]

    def _add_kernels(self, index: Index, seed: int) -> None:
        self._kernels["word"] = _important_word(index, self.kept_words, seed)
        if "name" in self._weights:
            self._is_name = find_names(index, self._lists.words["question words"], self._words("before nouns"))
        names = frozenset(index.terms.take(np.flatnonzero(self._is_name)))
        if len({*map(str.lower, names)}) >= 2:
            self._kernels["name"] = _important_word(index, KeptWords(replaceable=names), seed)

    def _warn_of_other_language(self) -> None:
        rows = np.unique(np.linspace(0, len(self.index) - 1, SAMPLE).astype(int))
        sentences = [sentence for sentence in self._sentences(self._documents, rows) if sentence.words]
        for name in BY_LISTS.keys() & self._weights.keys():
            n = sum(bool(BY_LISTS[name](sentence, self._lists)) for sentence in sentences)
            if n < LEAST_SHARE * len(sentences):
                advice = "" if self._settings["word_lists"] else ". The word lists are English: give word_lists=FILE"
                warn_user(f"edits: {name} fits {n} of {len(sentences)} sentences; the others get another edit{advice}")

    def _sentences(self, source: SplitSentences, rows: np.ndarray) -> Iterator[Sentence]:
        """Yield each sentence in `rows`, split into the words of the index, or by the usual rules for text with spaces.

        The usual rules keep "don't" and "12.5" whole, unlike the word tokenizers in NAMED.
        """
        for row, text in zip(rows.tolist(), source.texts(rows), strict=True):
            yield Sentence(text, source.strings(source.words[row]) if self._has_own_words else ())

    def _find(self, name: str, ids: np.ndarray, sentence: Sentence) -> list[Edit] | None:
        """Return the possible edits of one kind, such as "number", in a sentence. ids: the sentence's word ids.

        Kernels make the edits "word" and "name", so for these two the result is None if the edit is possible, else [].
        """
        if name in BY_LISTS:
            return BY_LISTS[name](sentence, self._lists)
        seen = ids[ids < self.index.n_terms]
        if name == "swap":
            terms = map(str.lower, self.index.terms.take(seen))
            importance = dict(zip(terms, self.index.idf[seen].tolist(), strict=True))
            return swap_edits(sentence, importance, self._function_words)
        is_possible = name in self._kernels and (self._is_name[seen].any() if name == "name" else len(ids) > 0)
        return None if is_possible else []

    def _fitting(self, ids: np.ndarray, sentence: Sentence) -> dict[str, list[Edit] | None]:
        """Return the possible edits by kind. If there are none, the kind is "word", if this is possible."""
        for names in (self._weights, ("word",)):
            found = {name: self._find(name, ids, sentence) for name in names}
            if fitting := {name: edits for name, edits in found.items() if edits != []}:
                return fitting
        return {}

    def fits(self, rows: RowNumbers) -> np.ndarray:
        """Tell which sentences any of the chosen `edits` fits. The others get the edit "word", or none.

        Args:
            rows: row numbers of the index, integers (n_rows,).

        Returns:
            bool (n_rows,).

        Raises:
            InputError: `rows` is not one-dimensional or contains a number outside the index.
        """
        numbers, words = checked_rows(rows, self.index.n_documents), self._documents.words
        sentences = zip(numbers.tolist(), self._sentences(self._documents, numbers), strict=True)
        fitting = (any(self._find(name, words[i], s) != [] for name in self._weights) for i, s in sentences)
        return np.fromiter(fitting, bool, len(numbers))

    def texts(self, rows: RowNumbers, epoch: int = 0, *, sample_index: int = 0) -> list[str]:
        """Return the near-miss of sentences of the index; "" for a blank sentence.

        Args:
            rows: row numbers of the index, integers (n_rows,).
            epoch: as in `augment`.
            sample_index: as in `augment`.

        Returns:
            n_rows texts. They depend on the row numbers, so another row with equal text gets another text.

        Raises:
            InputError: there is no index, `rows` is not one-dimensional or contains a number outside the index, or
                `epoch` or `sample_index` is out of range.
        """
        if not self.index:
            raise InputError("texts: needs an index: give NearMisses(index, ...), or call augment([...])")
        return super().texts(rows, epoch, sample_index=sample_index)

    def _draw_edit(self, ids: np.ndarray, sentence: Sentence, bits: Sequence[int]) -> tuple[str, Edit | None]:
        """Draw the name of an edit that fits, then one of the edits with this name, then one of its options.

        Returns the name, and the edit with this option. The edit is None for "word" and "name" (see `_find`), and if
        no edit fits; then the name is "" too.
        """
        if not (fitting := self._fitting(ids, sentence)):
            return "", None
        ends = [*accumulate(self._weights.get(name, 1.0) for name in fitting)]
        name = [*fitting][bisect(ends[:-1], unit(bits[0]) * ends[-1])]
        edits = fitting[name]
        return name, pick(bits[1], edits).drawn(bits[2]) if edits else None

    def _bits(self, source: SplitSentences, rows: np.ndarray, key: SampleKey) -> list[list[int]]:
        return CounterRNG(self._seed, key.epoch, source.streams(rows), key.sample_index).bits(3).tolist()

    def _texts(self, source: SplitSentences, rows: np.ndarray, key: SampleKey) -> list[str]:
        texts, of_kernels = [], defaultdict(list)
        for i, (bits, sentence) in enumerate(
            zip(self._bits(source, rows, key), self._sentences(source, rows), strict=True)
        ):
            name, edit = self._draw_edit(source.words[rows[i]], sentence, bits)
            kept = "" if sentence.text.isspace() else sentence.text
            texts.append(edit.applied(sentence.text) if edit else kept)
            if name in self._kernels and not edit:
                of_kernels[name].append(i)
        for name, places in of_kernels.items():
            for i, text in zip(places, self._kernels[name]._texts(source, rows[places], key), strict=True):
                texts[i] = text
        return texts

    def explain(self, sentence: str, epoch: int = 0, *, sample_index: int = 0) -> NearMiss:
        """Explain which edit `sentence` gets, where and why. The result prints as two lines.

        Args:
            sentence: any text.
            epoch: as in `augment`.
            sample_index: as in `augment`.

        Returns:
            The near-miss as `result`, with the name, the place and the rule of the edit.

        Raises:
            InputError: `sentence` is not a str, or `epoch` or `sample_index` is out of range.
        """
        source, row, key = self._read([sentence]), np.zeros(1, dtype=np.int64), SampleKey(epoch, sample_index)
        (split,), (result,), ids = self._sentences(source, row), self._texts(source, row, key), source.words[0]
        name, edit = self._draw_edit(ids, split, *self._bits(source, row, key))
        if not edit:
            why = f"the most important {name} of the sentence"
            edit = difference(split.text, result, why) if name else Edit(0, 0, ("",), "")
        name = "" if result == split.text else name
        replaced, (new,) = split.text[edit.start : edit.stop], edit.options
        return NearMiss(result, split.text, name, replaced, new, edit.start, edit.why, [*self._fitting(ids, split)])


def _important_word(index: Index, kept: KeptWords, seed: int) -> KernelAugmentation:
    """Make UNA with beta 0, which replaces only the most important word that is not `kept`."""
    sampler = Sampler(index, kept, beta=0, seed=seed)
    make_kernel: Callable[..., Any] = sampler.kernel if index.lowercase else partial(_CasedKernel, index, sampler)
    return KernelAugmentation(index, make_kernel, surface="kept")


class _CasedKernel:
    """Draws new words like the kernel of `sampler`, but none that differs from the old word only by case.

    Such a word gets the old word's capitalisation, so the text would not change. The next term that differs is taken.
    """

    def __init__(self, index: Index, sampler: Sampler, source: SplitSentences):
        self._kernel, self._words = sampler.kernel(source), source.words
        lower = [text.lower() for text in (*source.terms, *source.unseen)]
        self._forms = np.unique(lower, return_inverse=True)[1]
        self._candidates = np.flatnonzero(~sampler.kept.terms(index))

    def terms(self, rows: np.ndarray, epoch: int, sample_index: int = 0) -> tuple[np.ndarray, np.ndarray]:
        drawn, bounds = self._kernel.terms(rows, epoch, sample_index)
        old = self._words.take(rows).values
        for i in np.flatnonzero((drawn != old) & (self._forms[drawn] == self._forms[old])).tolist():
            first = np.searchsorted(self._candidates, drawn[i])
            order = np.roll(self._candidates, -first)
            differs = self._forms[order] != self._forms[old[i]]
            drawn[i] = order[differs.argmax()]
        return drawn, bounds


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


def check_edits(edits: Mapping[str, float] | Iterable[str]) -> dict[str, float]:
    """Return the weight of each edit by name, in the order of EDITS, or raise InputError."""
    if isinstance(edits, str) or not isinstance(edits, Iterable):
        raise InputError(f'edits={edits!r}: give a list such as ["polarity"], or a dict such as {{"polarity": 1}}')
    weights = [*edits.items()] if isinstance(edits, Mapping) else [(name, 1.0) for name in edits]
    for name, weight in weights:
        if not isinstance(name, str) or name not in EDITS:
            answer = nearest(str(name), EDITS) or f"choose from {', '.join(EDITS)}"
            raise InputError(f"edits={edits!r}: no edit is called {name!r}: {answer}")
        if not is_number(weight) or not 0 < weight < math.inf:
            raise InputError(f"edits={edits!r}: the weight of {name} is {weight!r}: give a number above 0")
    if not weights:
        raise InputError(f"edits={edits!r}: names no edit: choose from {', '.join(EDITS)}")
    by_name = {name: float(weight) for name, weight in weights}
    return {name: by_name[name] for name in EDITS if name in by_name}


def find_names(index: Index, never: Collection[str] = (), before_nouns: Collection[str] = ()) -> np.ndarray:
    """Return whether each term is a name: bool (n_terms,).

    A name is a word of at least two letters that is capitalised in most of its occurrences inside sentences.

    Args:
        index: the corpus.
        never: lower-case words that are not names, such as "what", which often starts the second sentence of a text.
        before_nouns: lower-case words such as "the". A word that often follows one of them is a noun, which German
            capitalises, and not a name.
    """
    chunks, values, bounds = index.chunks, index.chunk_ids.values, index.chunk_ids.indptr
    firsts = bounds[:-1][index.chunk_ids.lengths() > 0]
    inside = np.bincount(values, minlength=len(chunks)) - np.bincount(values[firsts], minlength=len(chunks))
    is_determiner = np.array([text.lower() in before_nouns for text in chunks], bool)
    follows = np.zeros(len(values) + 1, dtype=bool)
    follows[1:] = is_determiner[values]
    follows[firsts] = False
    after = np.bincount(values[follows[:-1]], minlength=len(chunks))
    surplus: Counter[str] = Counter()  # capitalised occurrences minus the others
    excess: Counter[str] = Counter()  # occurrences after a determiner minus those that are allowed
    for text, n, n_after in zip(chunks, inside.tolist(), after.tolist(), strict=True):
        word = n and FIRST_WORD.search(text)
        if word and len(word[0]) > 1:
            surplus[word[0].lower()] += n if word[0][0].isupper() else -n
            excess[word[0].lower()] += n_after - MOST_AFTER_DETERMINERS * n

    def is_name(word: str) -> bool:
        lower = word.lower()
        has_case = index.lowercase or word[:1].isupper()
        return surplus[lower] > 0 and excess[lower] <= 0 and lower not in never and has_case

    return np.array([is_name(word) for word in index.terms], bool)
