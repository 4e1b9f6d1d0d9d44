"""The base class of text augmentations: rows of an index, or any text -> augmented text or token ids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from una_fast.augment.counter_rng import SampleKey, takes_draw_set
from una_fast.augment.kept_words import KeptWords, rows_of_kept
from una_fast.augment.text_rows import TextReader
from una_fast.errors import InputError
from una_fast.index.index import Index
from una_fast.tokens.ids import TokenIds, checked_rows, token_tensors

if TYPE_CHECKING:
    import torch

Rows: TypeAlias = "Sequence[int] | np.ndarray | torch.Tensor"


class TextAugmentation(ABC):
    """Draws another text for each sentence of an index, or for any text.

    Every draw is a function of (seed, epoch, sample index, row, position, number) alone: the result for a row is the
    same in any batch and order, and for any number of threads, processes or ranks. For text that is not in the index
    the hash of its words takes the place of the row, so equal sentences have equal results within an epoch.

    A subclass derives from `word_augmentation.WordAugmentation` if it edits one sentence at a time in Python, and from
    `kernel_augmentation.KernelAugmentation` if a compiled kernel draws its rows.

    kept_words: the words that stay. A sentence of such words alone has no negative.
    """

    kept_words = KeptWords()

    def __init__(self, index: Index, tokenizer: Any, n_jobs: int | None, settings: dict[str, Any]):
        self._settings = {**settings, "tokenizer": tokenizer, "n_jobs": n_jobs}
        self.index = index
        self.tokens = None if tokenizer is None else TokenIds(index, tokenizer, n_jobs)
        self._reader = TextReader(index)

    @abstractmethod
    def _augment_texts(self, sentences: Iterable[str], draws: SampleKey) -> list[str]:
        """The augmented sentences, as text."""

    @abstractmethod
    def _augment_rows(self, rows: np.ndarray, draws: SampleKey) -> list[str]:
        """The augmented documents of `rows`, int64 (B,), as text."""

    def keeps_all(self, sentences: Iterable[str]) -> np.ndarray:
        """Whether each sentence has no word but those of `kept_words`, so that it has no negative: bool (n,)."""
        text = self._reader.read(sentences)
        distinct, places = np.unique(text.terms.values, return_inverse=True)
        kept = self.kept_words.among(text.words(distinct, self.index.terms))
        return rows_of_kept(kept[places], text.terms.indptr)

    @abstractmethod
    def explain(self, sentence: str, epoch: int = 0, *, sample_index: int = 0) -> Any:
        """What `augment([sentence], epoch)` does with each word; prints as a table."""

    @takes_draw_set
    def augment(self, sentences: Iterable[str], epoch: int = 0, *, sample_index: int = 0) -> list[str]:
        """The augmented text of each sentence; blank text gives "".

        Args:
            sentences: any text; it may hold words that the index does not.
            epoch: draws differ from epoch to epoch.
            sample_index: draws differ from index to index: 0, 1, 2, ... give several texts per sentence and epoch.

        Raises:
            InputError: `sentences` is one str, an item is not a str, or `epoch` or `sample_index` is out of its range.

        """
        return self._augment_texts(sentences, SampleKey(epoch, sample_index))

    @takes_draw_set
    def texts(self, rows: Rows, epoch: int = 0, *, sample_index: int = 0) -> list[str]:
        """The augmented text of each document in `rows`, integers (B,); a blank document gives ""."""
        return self._augment_rows(checked_rows(rows, self.index.n_documents), SampleKey(epoch, sample_index))

    @takes_draw_set
    def token_ids(
        self,
        rows: Rows,
        epoch: int = 0,
        max_length: int = 32,
        out: dict[str, torch.Tensor] | None = None,
        *,
        sample_index: int = 0,
    ) -> dict[str, torch.Tensor]:
        """The token ids of `texts(rows, epoch)`, equal to the tokenizer's on that text, cut and padded.

        Args:
            rows: integers (B,), documents of the index.
            epoch: draws differ from epoch to epoch.
            max_length: tokens a row, L, special tokens included; at least 3.
            out: tensors to fill, as an earlier call returned them; new ones if None.
            sample_index: draws differ from index to index.

        Returns:
            {"input_ids", "attention_mask"[, "token_type_ids"]}: torch.int64 (B, L).

        Raises:
            InputError: no tokenizer was given, a row is out of range, or `out` does not fit.

        """
        if self.tokens is None:
            raise InputError(f"token_ids needs a tokenizer: {type(self).__name__}(index, tokenizer=AutoTokenizer...)")
        rows = checked_rows(rows, self.index.n_documents)
        out = token_tensors(len(rows), max_length, self.tokens, out)
        self._fill(rows, SampleKey(epoch, sample_index), out)
        return out

    def _fill(self, rows: np.ndarray, draws: SampleKey, out: dict[str, torch.Tensor]) -> None:
        """Write the token ids of the augmented rows into `out`."""
        self._write_texts(rows, np.arange(len(rows)), draws, out)

    def _write_texts(self, rows: np.ndarray, lines: np.ndarray, draws: SampleKey, out: dict[str, torch.Tensor]) -> None:
        """Write the token ids of the augmented rows[lines] to these lines of `out`, by the tokenizer."""
        assert self.tokens is not None
        self.tokens.write_texts(self._augment_rows(rows[lines], draws), lines, out)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), self.index, **self._settings), ()

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._shown_settings().items())
        return f"<una_fast.{type(self).__name__} of {self.index!r}: {settings}>"

    def _shown_settings(self) -> dict[str, Any]:
        tokenizer = self._settings["tokenizer"]
        return {**self._settings, "tokenizer": tokenizer and type(tokenizer).__name__}
