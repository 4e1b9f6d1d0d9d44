"""Near-misses: each sentence gets one small edit that changes what it means."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from una_fast._kernels.draws.edits import NO_KIND, draw_edits
from una_fast._kernels.edits.finder import FoundBatch
from una_fast.augment.base import Explanation, KernelAugmentation, TextAugmentation
from una_fast.augment.counter_rng import CounterRNG, SampleKey, seed_of
from una_fast.augment.edits import BY_LISTS, WORD, Edit, listed_edits, swap_edits, word_ends
from una_fast.augment.found_edits import DrawnEdits, edit_writer, find_edits, stored_edits
from una_fast.augment.kept_words import KeptWords
from una_fast.augment.sampler import Sampler
from una_fast.augment.split_sentences import SplitSentences
from una_fast.augment.surface import KeptSurface, WriteIds, fill_ids
from una_fast.augment.word_lists import FUNCTION, WordListFiles, read_word_lists
from una_fast.corpus.word_tokenizers import NAMED
from una_fast.errors import InputError, is_number, nearest, suggests_keywords, warn_user
from una_fast.index.index import Index, empty_index
from una_fast.options import Edits, names_of
from una_fast.storage.array_folder import Arrays
from una_fast.tokens.ids import RowNumbers, TokenIds, checked_rows

EDITS = (*BY_LISTS, "name", "swap", "word")
USUAL: Mapping[str, float] = MappingProxyType({"polarity": 1, "number": 4})
FIRST_WORD = re.compile(WORD)
MOST_BYTES = 2**31 - 1  # of a sentence, because the places of its edits are int32
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

    training_options = names_of(Edits)

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
        if word_lists is not None and not isinstance(word_lists, (str, Path)):
            word_lists = [*word_lists]  # an iterator can be read only once
        self._weights, self._lists = check_edits(edits), read_word_lists(word_lists)
        index = empty_index() if index is None else index
        settings = {"edits": self._weights, "word_lists": word_lists, "seed": seed}
        super().__init__(index, **settings, tokenizer=tokenizer if index else None, n_jobs=n_jobs)
        self._function_words = self._words(FUNCTION)
        self._seed = seed_of("near-misses", seed)
        self._has_own_words = index.word_tokenizer not in NAMED
        self.kept_words = KeptWords(punctuation=True)
        self._kinds = [*dict.fromkeys([*self._weights, "word"])]
        self._weight_of_kind = np.array([self._weights.get(name, 0.0) for name in self._kinds])
        self._listed = [*BY_LISTS, *(["swap"] if "swap" in self._weights else [])]  # kinds with edits
        self._places = np.array([self._listed.index(name) if name in self._listed else -1 for name in self._kinds])
        self._kernels: dict[int, KernelAugmentation] = {}  # place in `_kinds` -> what makes this kind
        self._is_name = np.zeros(index.n_terms + 1, dtype=bool)  # the last item is for all unseen words
        self._writer = edit_writer(self._documents)
        if index:
            self._add_kernels(index, seed)
            self._warn_of_other_language()
        elif beyond := [*("tokenizer",) * (tokenizer is not None), *self._weights.keys() - BY_LISTS]:
            raise InputError(f"{beyond[0]}: needs an index: give NearMisses(index, ...)")
        if self.tokens is not None and self.tokens.by_word:
            self._write_ids = self._id_writer(self.tokens)
            if self._are_stored:
                _ = self._stored  # now, because the threads of `token_ids` would each find all edits

    def _words(self, section: str) -> frozenset[str]:
        """Return the words of a section of the word lists, or the English ones if the section is empty."""
        return self._lists.words[section] or read_word_lists().words[section]

    def _add_kernels(self, index: Index, seed: int) -> None:
        self._kernels[self._kinds.index("word")] = _important_word(index, self.kept_words, seed)
        if "name" in self._weights:
            self._is_name[:-1] = find_names(index, self._lists.words["question words"], self._words("before nouns"))
            names = frozenset(index.terms.take(np.flatnonzero(self._is_name)))
            if len({*map(str.lower, names)}) >= 2:
                kernel = _important_word(index, KeptWords(replaceable=names), seed)
                self._kernels[self._kinds.index("name")] = kernel

    @property
    def _are_stored(self) -> bool:
        return "swap" not in self._listed  # swaps would take many times the space of the others: 2 KB per sentence

    @cached_property
    def _stored(self) -> Arrays:
        """The edits of all sentences of the index."""
        find = partial(self._find, self._documents)
        return stored_edits(self.index, f"near-misses-{self._lists.digest}", find, self._documents, len(self._listed))

    def _edits(self, source: SplitSentences, rows: np.ndarray) -> tuple[Arrays, np.ndarray]:
        """Return the edits of the sentences `rows`, and in which rows of the arrays they are."""
        if source.are_documents and self._are_stored:
            return self._stored, rows
        return find_edits(partial(self._find, source), rows), np.arange(len(rows))

    def _warn_of_other_language(self) -> None:
        rows = np.unique(np.linspace(0, len(self.index) - 1, SAMPLE).astype(int))
        rows = rows[self._documents.words.indptr[rows + 1] > self._documents.words.indptr[rows]]
        found = find_edits(partial(self._find, self._documents), rows)
        n_edits = np.diff(found["edits_indptr"]).reshape(len(rows), len(self._listed))
        for k, name in enumerate(BY_LISTS):
            n = np.count_nonzero(n_edits[:, k])
            if name in self._weights and n < LEAST_SHARE * len(rows):
                advice = "" if self.word_lists else ". The word lists are English: give word_lists=FILE"
                warn_user(f"edits: {name} fits {n} of {len(rows)} sentences; the others get another edit{advice}")

    def _find(self, source: SplitSentences, rows: np.ndarray, found: FoundBatch) -> None:
        """Add the edits of each sentence in `rows` to `found`, of each kind in `_listed`."""
        find, n_kinds = self._lists.finder.find, len(self._listed)
        for row, text in zip(rows.tolist(), source.texts(rows), strict=True):
            if len(text) > MOST_BYTES // 4 and (n_bytes := len(text.encode())) > MOST_BYTES:
                raise InputError(f"sentence {row} has {n_bytes:,} bytes: at most {MOST_BYTES:,} can be read: divide it")
            find(text, found, word_ends(text, self._own_words(source, row)))
            if "swap" in self._listed:
                found.add(self._swaps(source, row, text))
            found.to_bytes(text, n_kinds)

    def _own_words(self, source: SplitSentences, row: int) -> list[str]:
        """Return the words of a sentence that `EditFinder` does not find itself.

        Text in scripts without spaces is split into the words of the index. Other text is split by the rules of
        `EditFinder`, which keep "don't" and "12.5" whole, unlike the word tokenizers in NAMED.
        """
        return source.strings(source.words[row]) if self._has_own_words else []

    def _swaps(self, source: SplitSentences, row: int, text: str) -> list[Edit]:
        ids = source.words[row]
        seen = ids[ids < self.index.n_terms]
        terms = map(str.lower, self.index.terms.take(seen))
        importance = dict(zip(terms, self.index.idf[seen].tolist(), strict=True))
        return swap_edits(text, importance, self._function_words, self._lists, self._own_words(source, row))

    def _can_make(self, source: SplitSentences, rows: np.ndarray) -> np.ndarray:
        """Return whether a kernel can make each kind in `_kinds`: uint8 (n_rows, n_kinds)."""
        possible, bounds = np.zeros((len(rows), len(self._kinds)), dtype=np.uint8), source.words.indptr
        for kind in self._kernels:
            possible[:, kind] = bounds[rows + 1] > bounds[rows]
            if self._kinds[kind] == "name":
                words = source.words.take(rows)
                n_names = np.append(0, np.cumsum(self._is_name[np.minimum(words.values, self.index.n_terms)]))
                possible[:, kind] = np.diff(n_names[words.indptr]) > 0
        return possible

    def _draw(self, source: SplitSentences, rows: np.ndarray, key: SampleKey) -> DrawnEdits:
        """Draw the kind of an edit that fits, then one of the edits of this kind, then one of its options."""
        arrays, places = self._edits(source, rows)
        bits = CounterRNG(self._seed, key.epoch, source.streams(rows), key.sample_index).bits(3)
        return DrawnEdits(
            arrays,
            *draw_edits(
                places, bits, self._can_make(source, rows), self._weight_of_kind, self._places, len(self._listed),
                arrays["edits_indptr"], arrays["edits_values"], arrays["list_bounds"],
            ),
        )  # fmt: skip

    def fits(self, rows: RowNumbers) -> np.ndarray:
        """Tell which sentences any of the chosen `edits` fits. The others get the edit "word", or none.

        Args:
            rows: row numbers of the index, integers (n_rows,).

        Returns:
            bool (n_rows,).

        Raises:
            InputError: `rows` is not one-dimensional or contains a number outside the index.
        """
        drawn = self._draw(self._documents, checked_rows(rows, self.index.n_documents), SampleKey())
        is_changed: np.ndarray = (drawn.kinds != NO_KIND) & (self._weight_of_kind[drawn.kinds] > 0)
        return is_changed

    def _texts(self, source: SplitSentences, rows: np.ndarray, key: SampleKey) -> list[str]:
        return self._written(source, rows, key, self._draw(source, rows, key))

    def _written(self, source: SplitSentences, rows: np.ndarray, key: SampleKey, drawn: DrawnEdits) -> list[str]:
        writer = self._writer if source.are_documents else edit_writer(source)
        kept = np.flatnonzero(drawn.kinds == NO_KIND)
        parts = [
            (drawn.listed, drawn.written(writer, rows).texts()),
            (kept, ["" if text.isspace() else text for text in source.texts(rows[kept])]),
        ]
        for kind, kernel in self._kernels.items():
            places = np.flatnonzero(drawn.kinds == kind)
            parts.append((places, kernel._texts(source, rows[places], key) if len(places) else []))
        texts = [""] * len(rows)
        for places, found in parts:
            for i, text in zip(places.tolist(), found, strict=True):
                texts[i] = text
        return texts

    def _id_writer(self, tokens: TokenIds) -> WriteIds:
        """Return a `WriteIds` that keeps the stored token ids of every chunk that an edit does not touch."""
        subwords = KeptSurface(self.index, self._documents).subwords(tokens)
        writer = edit_writer(self._documents, subwords)
        of_kernels = {kind: kernel.id_writer(tokens) for kind, kernel in self._kernels.items()}

        def fill(drawn: DrawnEdits, rows: np.ndarray, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
            written = drawn.written(writer, rows, ids.shape[1] - tokens.frame.n_special)
            return fill_ids(written, subwords, tokens, rows[drawn.listed], ids, mask)

        def write(rows: np.ndarray, key: SampleKey, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
            drawn = self._draw(self._documents, rows, key)
            parts = [(drawn.listed, partial(fill, drawn, rows))]
            for kind, write_ids in of_kernels.items():
                places = np.flatnonzero(drawn.kinds == kind)
                parts.append((places, partial(write_ids, rows[places], key)))
            needs_text = np.ones(len(rows), dtype=bool)
            for places, into in parts:
                if len(places):
                    part = np.empty((2, len(places), ids.shape[1]), dtype=ids.dtype)
                    needs_text[places] = into(*part)
                    ids[places], mask[places] = part
            return needs_text

        return write

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
        drawn = self._draw(source, row, key)
        (text,), (result,) = source.texts(row), self._written(source, row, key, drawn)
        by_kind = listed_edits(text, self._lists, self._own_words(source, 0))
        if "swap" in self._listed:
            by_kind["swap"] = self._swaps(source, 0, text)
        can_make = dict(zip(self._kinds, self._can_make(source, row)[0].tolist(), strict=True))
        fitting = [name for name in self._weights if by_kind.get(name) or can_make[name]]
        name = "" if drawn.kinds[0] == NO_KIND or result == text else self._kinds[drawn.kinds[0]]
        edit = Edit(0, 0, ("",), "")
        if drawn.edits[0] >= 0:
            edit = [*chain.from_iterable(by_kind.values())][drawn.edits[0]]
            edit = edit._replace(options=(result[edit.start : len(result) - len(text) + edit.stop],))
        elif drawn.kinds[0] != NO_KIND:
            edit = difference(text, result, f"the most important {name} of the sentence")
        old, fallback = text[edit.start : edit.stop], [self._kinds[kind] for kind in drawn.kinds if kind != NO_KIND]
        return NearMiss(result, text, name, old, edit.options[0], edit.start, edit.why, fitting or fallback)


def _important_word(index: Index, kept: KeptWords, seed: int) -> KernelAugmentation:
    """Make UNA with beta 0, which replaces only the most important word that is not `kept`."""
    sampler = Sampler(index, kept, beta=0, seed=seed)
    make_kernel: Callable[..., Any] = sampler.kernel
    if not index.lowercase:
        make_kernel = partial(_CasedKernel, sampler, np.flatnonzero(~kept.terms(index)))
    return KernelAugmentation(index, make_kernel, surface="kept")


class _CasedKernel:
    """Draws new words like the kernel of `sampler`, but none that differs from the old word only by case.

    Such a word gets the old word's capitalisation, so the text would not change. The next of the `candidates`, int64
    (n_candidates,), that differs is taken.
    """

    def __init__(self, sampler: Sampler, candidates: np.ndarray, source: SplitSentences):
        self._kernel, self._candidates, self._source = sampler.kernel(source), candidates, source

    def terms(self, rows: np.ndarray, epoch: int, sample_index: int = 0) -> tuple[np.ndarray, np.ndarray]:
        drawn, bounds = self._kernel.terms(rows, epoch, sample_index)
        old = self._source.words.take(rows).values
        changed = np.flatnonzero(drawn != old)
        words = zip(*map(self._source.strings, (drawn[changed], old[changed])), strict=True)
        for i, (new, word) in zip(changed.tolist(), words, strict=True):
            if (form := word.lower()) == new.lower():
                first = np.searchsorted(self._candidates, drawn[i])
                others = chain(self._candidates[first:].tolist(), self._candidates[:first].tolist())
                drawn[i] = next((k for k in others if self._source.terms[k].lower() != form), drawn[i])
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
