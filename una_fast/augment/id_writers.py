"""Rows of an index -> token ids of their augmented text. A `KernelAugmentation` chooses one writer when it is made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from una_fast._kernels.draws.rows import RowKernel
from una_fast._kernels.ids import written
from una_fast._kernels.ids.emit import TermTokens, pad_rows
from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, POINTER, RaggedArray, StringTable, row_bounds, rows_from
from una_fast.augment.counter_rng import SampleKey
from una_fast.augment.rows import Rows
from una_fast.augment.surface import KeptSurface
from una_fast.tokens.ids import TokenIds
from una_fast.tokens.subwords import SubwordEncoder

MOST_BYTES = 2**26  # of the strings whose ids are remembered, and their ids: some 900,000 strings
BYTES_A_STRING = 48  # of its places in the table
MakeTexts = Callable[[Rows, np.ndarray, SampleKey], list[str]]


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


class EditedIds:
    """For texts that are written like their sentences: the ids of a sentence, except between its first and last change.

    make_texts: makes the augmented texts of rows of `documents`, as `TextAugmentation._texts`.
    """

    def __init__(self, tokens: TokenIds, documents: Rows, make_texts: MakeTexts):
        self._tokens, self._documents, self._make_texts = tokens, documents, make_texts
        self._units, self._is_free = UnitIds(tokens.encoder), tokens.encoder.pipeline.context_free

    def write(self, rows: np.ndarray, key: SampleKey, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """See `IdWriter`."""
        new = self._make_texts(self._documents, rows, key)
        return self.write_texts(rows, self._documents.texts(rows), new, ids, mask)

    def write_texts(
        self, rows: np.ndarray, old: Sequence[str], new: Sequence[str], ids: np.ndarray, mask: np.ndarray
    ) -> np.ndarray:
        """See `IdWriter`. old, new: the sentences of `rows`, and the texts that they became."""
        n, sentences, frame = len(rows), self._tokens.sentences, self._tokens.frame
        n_first, n_last, between = zip(*map(changed_chunks, old, new), strict=True)
        numbers, values, bounds = self._number(between)
        starts, lengths, known = self._kept_ids(rows, np.array(n_first), np.array(n_last))
        has_unit = numbers >= 0
        n_ids = np.where(has_unit, bounds[numbers + 1] - bounds[numbers], 0)
        known &= ~has_unit | (n_ids > 0)
        kept = rows_from(sentences.values, starts.ravel(), (lengths * known).ravel())
        order = np.stack([np.arange(n), 2 * n + np.arange(n), n + np.arange(n)], axis=1).ravel()
        parts = kept.followed_by(rows_from(values, bounds[numbers], n_ids)).take(order)
        pad_rows["int32_t"](parts.values.astype(ID), parts.indptr[::3].copy(), np.arange(n), frame, ids, mask)
        return ~known

    def _number(self, between: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The number of each string, -1 for an empty one, and the ids of all as `UnitIds.number` returns them."""
        encoded = [text.encode() for text in between]
        bounds, with_text = row_bounds([*map(len, encoded)]), np.array([len(text) > 1 for text in encoded])
        starts = bounds[:-1] + self._is_free
        text = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        numbers = np.full(len(between), -1, dtype=ID)
        numbers[with_text], values, ends = self._units.number(text, starts[with_text], bounds[1:][with_text])
        return numbers, values, ends

    def _kept_ids(self, rows: np.ndarray, n_first: np.ndarray, n_last: np.ndarray) -> tuple[np.ndarray, ...]:
        """Where the ids of the first and of the last chunks of each row start, and their number: both int64 (2, B).

        Besides, whether they are known: bool (B,).
        """
        tokens, documents = self._tokens, self._documents.sentences
        at = documents.indptr[rows]
        chunks = rows_from(documents.values, at, documents.indptr[rows + 1] - at)
        first = np.zeros(len(chunks.values) + 1, dtype=np.int64)
        first[chunks.indptr[:-1]] = 0 if self._is_free else len(tokens.chunk_sizes) // 2
        sizes = tokens.chunk_sizes[chunks.values + first[:-1]].astype(np.int64)
        ends = np.concatenate([[0], np.cumsum(sizes)])
        n_unknown = np.concatenate([[0], np.cumsum(sizes == written.UNKNOWN)])
        begin, stop = chunks.indptr[:-1], chunks.indptr[1:]
        at = tokens.sentences.indptr[rows]
        n_ids, total = ends[np.minimum(begin + n_first, stop)] - ends[begin], ends[stop] - ends[begin]
        n_last_ids = ends[stop] - ends[stop - n_last]
        known = (n_unknown[stop] == n_unknown[begin]) & (total == tokens.sentences.indptr[rows + 1] - at)
        return np.stack([at, at + total - n_last_ids]), np.stack([n_ids, n_last_ids]), known


def changed_chunks(old: str, new: str) -> tuple[int, int, str]:
    """How many first and how many last chunks of two texts are equal, and what `new` has between them.

    That is "" or begins with a space or, at the start of the text, a newline. Neither text's first chunk counts as a
    last one, because the ids of a chunk may differ at the start of a text.
    """
    a, b = old.split(" "), new.split(" ")
    most = min(len(a), len(b))
    n_first = next((i for i in range(most) if a[i] != b[i]), most)
    most -= max(n_first, 1)
    n_last = next((i for i in range(most) if a[-1 - i] != b[-1 - i]), most)
    between = " ".join(b[n_first : len(b) - n_last])
    return n_first, n_last, f"{' ' if n_first else chr(10)}{between}" if n_first + n_last < len(b) else ""


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
