"""The base classes of text augmentations, which change sentences at random and return text or token ids."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from una_fast._kernels.draws.rows import RowKernel
from una_fast.arrays import RaggedArray
from una_fast.augment.counter_rng import CounterRNG, SampleKey, seed_of
from una_fast.augment.kept_words import KeptWords
from una_fast.augment.split_sentences import SplitSentences, split_sentences
from una_fast.augment.surface import QUOTES, KeptSurface, PaperSurface, WriteIds
from una_fast.corpus.word_tokenizers import WordTokenizer
from una_fast.errors import InputError, check_flag
from una_fast.index.index import Index
from una_fast.parallel import n_cores
from una_fast.tokens.ids import RowNumbers, TokenIds, checked_rows

if TYPE_CHECKING:
    import torch

SHOWN = 40  # characters of a setting in `repr`
ROWS_A_THREAD = 1024  # for fewer rows, starting another thread (50 us) costs more than it saves


@dataclass(frozen=True)
class Explanation:
    """What an augmentation made of a sentence, and how. It prints as text."""

    result: str  # the augmented text


@dataclass(frozen=True)
class Edited(Explanation):
    """The augmented text of a sentence, and the words from which it was made."""

    words: list[str]

    def __str__(self) -> str:
        return f"{' '.join(self.words)}\n{self.result}"


class TextAugmentation(ABC):
    """Changes sentences of an index, or any text, at random. The arguments are those of `WordAugmentation`.

    Every argument of the constructor is an attribute of the object.
    """

    kept_words = KeptWords()
    training_options: ClassVar[tuple[str, ...]] = ()  # the options of `train.ddp` that the constructor accepts

    def __init__(self, index: Index, *, tokenizer: Any = None, n_jobs: int | None = None, **settings: Any):
        check_index(index)
        self._settings = {**settings, "tokenizer": tokenizer, "n_jobs": n_jobs}
        self.index = index
        n_cores(n_jobs)  # raises for an invalid n_jobs even without a tokenizer
        is_bound = tokenizer is None or isinstance(tokenizer, TokenIds)
        self.tokens: TokenIds | None = tokenizer if is_bound else TokenIds(index, tokenizer, n_jobs)
        self._documents = SplitSentences(index.terms, index.chunks, index.chunk_ids, index.word_ids, are_documents=True)
        self._split = WordTokenizer(index.word_tokenizer, index.lowercase)
        self._write_ids: WriteIds | None = None  # if None, `token_ids` tokenises the texts

    @abstractmethod
    def _texts(self, source: SplitSentences, rows: np.ndarray, key: SampleKey) -> list[str]:
        """Return the augmented text of each sentence ``rows[i]`` of `source`. rows: int64 (n_rows,)."""

    def _read(self, sentences: Iterable[str]) -> SplitSentences:
        return split_sentences(sentences, self.index, self._split)

    def augment(self, sentences: Iterable[str], epoch: int = 0, *, sample_index: int = 0) -> list[str]:
        """Return the augmented text of each sentence; "" for a blank sentence.

        Args:
            sentences: any text, which may contain words that are not in the index.
            epoch: each epoch, from 0, gives new texts for the same sentences.
            sample_index: each sample index, from 0, gives new texts for the same sentences and epoch.

        Raises:
            InputError: `sentences` is one str, an item is not a str, or `epoch` or `sample_index` is out of range.
        """
        key, source = SampleKey(epoch, sample_index), self._read(sentences)
        return self._texts(source, np.arange(len(source.words)), key)

    def texts(self, rows: RowNumbers, epoch: int = 0, *, sample_index: int = 0) -> list[str]:
        """Return the augmented text of sentences of the index; "" for a blank sentence.

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
            raise InputError(f"texts: needs an index: give {type(self).__name__}(index, ...), or call augment([...])")
        rows = checked_rows(rows, self.index.n_documents)
        return self._texts(self._documents, rows, SampleKey(epoch, sample_index))

    def token_ids(
        self,
        rows: RowNumbers,
        epoch: int = 0,
        max_length: int = 32,
        out: dict[str, torch.Tensor] | None = None,
        *,
        sample_index: int = 0,
    ) -> dict[str, torch.Tensor]:
        """Return the token ids of ``texts(rows, epoch)``. They equal the tokenizer's output for these texts.

        Args:
            rows: row numbers of the index, integers (n_rows,).
            epoch: as in `augment`.
            sample_index: as in `augment`.
            max_length: tokens per text, special tokens included. Truncation can remove every replacement.
            out: tensors to fill and return, as returned by an earlier call. None allocates new tensors.

        Returns:
            "input_ids", "attention_mask" and, if the tokenizer has them, "token_type_ids": torch.int64 (n_rows,
            max_length).

        Raises:
            InputError: the augmentation has no tokenizer, or `rows`, `max_length` or `out` is invalid.
        """
        if (tokens := self.tokens) is None:
            make = f"{type(self).__name__}(index, tokenizer=AutoTokenizer.from_pretrained(NAME))"
            raise InputError(f"token_ids needs a tokenizer: give {make}")
        rows = checked_rows(rows, tokens.n_documents)
        out = tokens.tensors(len(rows), max_length, out)
        key, lines = SampleKey(epoch, sample_index), np.arange(len(rows))
        if write_ids := self._write_ids:
            ids, mask = out["input_ids"].numpy(), out["attention_mask"].numpy()
            needs_text = np.empty(len(rows), dtype=bool)

            def write(part: slice) -> None:
                needs_text[part] = write_ids(rows[part], key, ids[part], mask[part])

            tokens.threads.run(write, len(rows), ROWS_A_THREAD)
            lines = np.flatnonzero(needs_text)
        if len(lines):
            tokens.write_texts(self._texts(self._documents, rows[lines], key), lines, out)
        return out

    def explain(self, sentence: str, epoch: int = 0, *, sample_index: int = 0) -> Explanation:
        """Explain what `augment([sentence], epoch)` returns. The result prints as two lines.

        Args:
            sentence: any text.
            epoch: as in `augment`.
            sample_index: as in `augment`.

        Returns:
            The augmented text as `result`, and the words of `sentence` as `words`.

        Raises:
            InputError: `sentence` is not a str, or `epoch` or `sample_index` is out of range.
        """
        source = self._read([sentence])
        (result,) = self._texts(source, np.zeros(1, dtype=np.int64), SampleKey(epoch, sample_index))
        return Edited(result, source.strings(source.words.values))

    def keeps_all(self, sentences: Iterable[str]) -> np.ndarray:
        """Tell which sentences cannot change, because all their words are in `kept_words`.

        Args:
            sentences: any text.

        Returns:
            bool (n_sentences,).

        Raises:
            InputError: `sentences` is one str, or an item is not a str.
        """
        source = self._read(sentences)
        return np.array([self.kept_words.among(source.strings(ids)).all() for ids in source.words], dtype=bool)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), self.index, **self._settings), ()

    def __getattr__(self, name: str) -> Any:
        settings = self.__dict__.get("_settings", {})  # absent while an object is copied
        if name not in settings:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return settings[name]

    def __repr__(self) -> str:
        defaults = {name: each.default for name, each in inspect.signature(type(self)).parameters.items()}
        changed = [
            f"{name}={_shown(value)}"
            for name, value in self._settings.items()
            if name not in defaults or (value is not defaults[name] and value != defaults[name])
        ]
        settings = f": {', '.join(changed)}" if changed else ""
        return f"<una_fast.{type(self).__name__} of {self.index!r}{settings}>"


class KernelAugmentation(TextAugmentation):
    """An augmentation that draws the new words of each sentence in a compiled kernel, on several threads."""

    def __init__(
        self,
        index: Index,
        make_kernel: Callable[[SplitSentences], RowKernel],
        *,
        surface: str | None,
        tokenizer: Any = None,
        n_jobs: int | None = None,
        **settings: Any,
    ):
        super().__init__(index, surface=surface, tokenizer=tokenizer, n_jobs=n_jobs, **settings)
        self._make_kernel, self._kernel = make_kernel, make_kernel(self._documents)
        self._surface = PaperSurface(index) if surface == "paper" else KeptSurface(index, self._documents)
        if self.tokens is not None and self.tokens.by_word:
            self._write_ids = self.id_writer(self.tokens)

    def id_writer(self, tokens: TokenIds) -> WriteIds:
        """Return a function that draws new words and writes token ids of `tokens`, whose ids are made by word."""
        return self._surface.id_writer(self._kernel, tokens)

    def _draw(self, source: SplitSentences, rows: np.ndarray, key: SampleKey) -> RaggedArray:
        """Draw new int32 word ids for each sentence ``rows[i]`` of `source`."""
        kernel = self._kernel if source.are_documents else self._make_kernel(source)
        return RaggedArray(*kernel.terms(rows, key.epoch, key.sample_index))

    def _texts(self, source: SplitSentences, rows: np.ndarray, key: SampleKey) -> list[str]:
        return self._surface.texts(source, rows, self._draw(source, rows, key))


class WordAugmentation(TextAugmentation):
    """An augmentation that edits the words of one sentence at a time, in Python.

    It takes about 10 us per sentence. An augmentation in Numba (`una_fast.numba_augmentation`) takes about 1 us.

    Args:
        index: the corpus.
        seed: any integer. Two classes with equal seeds draw independently of each other.
        tokenizer: a Hugging Face tokenizer, or its `TokenIds` for this index. Only `token_ids` needs it.
        n_jobs: threads that encode the index with the tokenizer; all cores that this process may use if None.
        settings: all other arguments of the subclass's constructor. Unpickling calls the constructor with them.
    """

    def __init__(
        self, index: Index, *, seed: int = 42, tokenizer: Any = None, n_jobs: int | None = None, **settings: Any
    ):
        super().__init__(index, seed=seed, **settings, tokenizer=tokenizer, n_jobs=n_jobs)
        self._seed = seed_of(type(self).__name__, seed)
        self._quotes = QUOTES if index.word_tokenizer == "treebank" else ()

    @abstractmethod
    def edit(self, words: list[str], draws: CounterRNG) -> list[str]:
        """Return the words of the new sentence.

        Args:
            words: the words of the sentence, at least one, as a list that `edit` may change.
            draws: the random numbers of this sentence. Its methods return arrays with a single row.
        """

    def _texts(self, source: SplitSentences, rows: np.ndarray, key: SampleKey) -> list[str]:
        sentences = (source.strings(source.words[row]) for row in rows.tolist())
        return [
            self._edited(words, CounterRNG(self._seed, key.epoch, stream, key.sample_index))
            for words, stream in zip(sentences, source.streams(rows)[:, np.newaxis], strict=True)
        ]

    def _edited(self, words: list[str], draws: CounterRNG) -> str:
        result = self.edit([*words], draws) if words else []
        if not isinstance(result, list) or not all(isinstance(word, str) for word in result):
            raise InputError(f"{type(self).__name__}.edit({words!r}) returned {result!r}: it must return a list of str")
        return " ".join('"' if word in self._quotes else word for word in result)


def _shown(value: Any) -> str:
    """Return what `repr` shows of a setting: at most SHOWN characters; of an object such as a tokenizer, its class."""
    is_plain = isinstance(value, (str, int, float, bool, Path, tuple, frozenset, dict, list, NoneType))
    text = repr(value) if is_plain else getattr(value, "__qualname__", type(value).__name__)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def check_index(index: Index) -> None:
    """Raise InputError if `index` is not an `Index`."""
    if not isinstance(index, Index):
        raise InputError(f"index={index!r}: must be an Index: una_fast.load_index(folder) opens a saved one")


def check_choices(function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Raise InputError if one of `values`, the arguments of `function`, contradicts its Literal or bool annotation."""
    for name, hint in get_type_hints(function).items():
        if get_origin(hint) in (Union, UnionType) and values.get(name) is not None:
            hint = get_args(hint)[0]
        if get_origin(hint) is Literal and values[name] not in get_args(hint):
            raise InputError(f"{name}={values[name]!r}: must be {' or '.join(map(repr, get_args(hint)))}")
        if hint is bool and name in values:
            check_flag(name, values[name])
