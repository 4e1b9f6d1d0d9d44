"""Rows of an index -> token ids of their augmented text. A `KernelAugmentation` chooses one writer when it is made."""

from __future__ import annotations

import threading
from typing import Protocol

import numpy as np

from una_fast._kernels.draws.rows import RowKernel
from una_fast._kernels.ids import written
from una_fast._kernels.ids.emit import TermTokens
from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, POINTER, RaggedArray, StringTable, rows_from
from una_fast.augment.counter_rng import SampleKey
from una_fast.augment.rows import Rows
from una_fast.augment.surface import KeptSurface
from una_fast.tokens.ids import TokenIds
from una_fast.tokens.subwords import SubwordEncoder

MOST_BYTES = 2**26  # of the strings whose ids are remembered, and their ids: some 900,000 strings
BYTES_A_STRING = 48  # of its places in the table


class IdWriter(Protocol):
    """Writes the token ids of augmented rows. Threads may share one object."""

    def write(self, rows: np.ndarray, key: SampleKey, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Fill `ids` and `mask`, int64 (B, L), with the augmented documents `rows`, int64 (B,).

        Returns bool (B,): whether the tokenizer has to encode a row, whose ids and mask may be anything.
        """


class WholeTexts:
    """For any augmentation and tokenizer: the tokenizer encodes every text."""

    def write(self, rows: np.ndarray, key: SampleKey, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """See `IdWriter`."""
        return np.ones(len(rows), dtype=bool)


class TermIds:
    """For surface="paper": the ids of the drawn terms, one after the other."""

    def __init__(self, kernel: RowKernel, tokens: TokenIds, n_terms: int):
        self._kernel, self._tokens = kernel, TermTokens(tokens.terms, n_terms, tokens.frame)

    def write(self, rows: np.ndarray, key: SampleKey, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """See `IdWriter`."""
        return self._kernel.token_ids(rows, key.epoch, key.sample_index, self._tokens, ids, mask)


class KeptIds:
    """For surface="kept": the ids of the sentence, except where a word is replaced."""

    def __init__(self, kernel: RowKernel, tokens: TokenIds, surface: KeptSurface, documents: Rows):
        self._kernel, self._frame, self._sentences = kernel, tokens.frame, tokens.sentences
        self._units = UnitIds(tokens.encoder)
        self._subwords = surface.subwords(tokens)
        self._writer = surface.row_writer(documents, self._subwords)
        self._fill = written.fill_rows[f"{tokens.sentences.values.dtype}_t"]

    def write(self, rows: np.ndarray, key: SampleKey, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """See `IdWriter`."""
        drawn, bounds = self._kernel.terms(rows, key.epoch, key.sample_index)
        negatives = self._writer.write(rows, drawn, bounds, ids.shape[1] - self._frame.n_special)
        units = self._units.number(*negatives.units())
        kept = self._sentences.values, self._sentences.indptr
        return self._fill(negatives, self._subwords, *units, *kept, rows, self._frame, ids, mask)


class UnitIds:
    """The sub-words of strings. Each string is encoded once and remembered until they take more than MOST_BYTES.

    Then all are forgotten. A string whose ids depend on the whole text has none. Threads may share one object.
    """

    def __init__(self, encoder: SubwordEncoder):
        self._encoder, self._lock = encoder, threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._strings, self.n_bytes, self._n_encoded = StringSet(), 0, 0
        self._values, self._bounds = np.empty(2**10, dtype=ID), np.zeros(2**10, dtype=POINTER)

    def number(self, text: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, ...]:
        """Number each string ``text[starts[i]:stops[i]]``.

        Where ids depend on what precedes a string, it begins with a space, or with a newline at the start of a text.

        Returns:
            numbers: int32 (n,), of each string; values: int32, and bounds: int64: string k has the ids
            ``values[bounds[k]:bounds[k + 1]]``.
        """
        with self._lock:
            if self.n_bytes > MOST_BYTES or len(self._strings) > self._n_encoded:  # a call was interrupted
                self._forget()
            n_known = len(self._strings)
            numbers = self._strings.add(text, starts, stops)
            if len(self._strings) > n_known:
                new = np.flatnonzero(numbers >= n_known)
                new = new[np.unique(numbers[new], return_index=True)[1]]
                begins = starts[new] + (not self._encoder.pipeline.context_free)
                strings = rows_from(text, begins, stops[new] - begins)
                is_first = text[starts[new]] == ord("\n")
                self._add(n_known, self._encoder.encode(StringTable(strings.values, strings.indptr), is_first)[0])
                self.n_bytes += len(strings.values) + BYTES_A_STRING * len(new)
            self._n_encoded = len(self._strings)
            return numbers, self._values, self._bounds

    def _add(self, n_known: int, ids: RaggedArray) -> None:
        """Append the ids of new strings. Arrays that other threads read are never written below their ends."""
        n, used = n_known + len(ids), int(self._bounds[n_known])
        self._bounds, self._values = _grown(self._bounds, n + 1), _grown(self._values, used + len(ids.values))
        self._values[used : used + len(ids.values)] = ids.values
        self._bounds[n_known + 1 : n + 1] = used + ids.indptr[1:]
        self.n_bytes += 4 * len(ids.values)


def _grown(array: np.ndarray, n: int) -> np.ndarray:
    """The array with room for n items: itself, or a copy of at least twice its length."""
    return array if n <= len(array) else np.concatenate([array, np.empty(n, dtype=array.dtype)])
