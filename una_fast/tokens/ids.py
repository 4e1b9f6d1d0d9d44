"""Makes padded batches of token ids, from the sentences of an index or from any text."""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from una_fast._kernels.ids.emit import Frame, pad_rows
from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, POINTER, TOKEN, StringTable, extended, row_bounds, rows_from
from una_fast.errors import InputError, integer, warn_user
from una_fast.imports import import_extra
from una_fast.parallel import RowThreads, n_cores
from una_fast.tokens.pipelines import NotByWordError
from una_fast.tokens.subwords import SubwordEncoder, bind, check_settings, compare_with_tokenizer, tokenizer_errors

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

    from una_fast.index.index import Index

RowNumbers: TypeAlias = "Sequence[int] | np.ndarray | torch.Tensor"
ROWS_A_THREAD = 4096  # they take 0.2 ms; starting another thread takes 50 us
MOST_BYTES = 2**26  # of a `SubwordCache`, about 900,000 strings
BYTES_A_STRING = 48  # overhead per string


class TokenIds:
    """The token ids of an index's sentences and terms under one Hugging Face tokenizer.

    The ids are stored in the index's folder, in `tokens-*`. They stay in memory if the folder does not exist or is not
    writable.

    Attributes:
        by_word: whether this tokenizer's ids can be made word by word (docs/tokenizers.md). If False, the tokenizer
            encodes whole texts, a warning states the reason, and the attributes below are not valid.
        sentences: `RaggedArray`, the ids of each sentence, without truncation and special tokens: uint16 if every id of
            the tokenizer fits, else int32.
        terms: `RaggedArray` int32. Row t contains the ids of term t after a space. If terms can have other ids at the
            start of a text, row n_terms + t contains those. A row is empty if the ids of the term depend on the whole
            text, as for an added token ("[MASK]"), or if the normaliser removes the term.

    Args:
        tokenizer: a tokenizer of `AutoTokenizer` with a padding token. It is not changed.
        n_jobs: threads; None means all cores that this process may use.

    Raises:
        InputError: `tokenizer` is not a Hugging Face tokenizer, or has an unusable setting, which the message names.
    """

    def __init__(self, index: Index, tokenizer: PreTrainedTokenizerBase, n_jobs: int | None = None):
        check_settings(tokenizer)
        self._arguments = index, tokenizer, n_jobs
        self.threads = RowThreads(n_cores(n_jobs))
        self._index, self.n_documents, self._torch = index, index.n_documents, import_extra("torch")
        names = ("input_ids", "attention_mask", "token_type_ids")
        self._names = names if names[-1] in tokenizer.model_input_names else names[:-1]
        self._tokenizer, self._lock = _copied(tokenizer), threading.Lock()
        self.by_word = False
        try:
            self.encoder = SubwordEncoder(tokenizer)
            self.cache = SubwordCache(self.encoder)
            self.sentences, self.terms, self.chunk_sizes = bind(index, self.encoder, n_cores(n_jobs))
            compare_with_tokenizer(self.sentences, self.terms, index, self.encoder, self._tokenizer)
            self.frame, self.by_word = self.encoder.frame, True
        except NotByWordError as error:
            warn_user(
                f"tokenizer: {error.reason}, so it must encode whole texts, which takes 100 us or more per sentence; "
                "word by word takes about 1 us"
            )
            special = np.array(self._tokenizer("")["input_ids"], dtype=TOKEN)
            self.frame = Frame(special, special[:0], tokenizer.pad_token_id)  # only their number matters

    def __repr__(self) -> str:
        how = "made word by word" if self.by_word else "of whole texts"
        return f"<una_fast.TokenIds of {self._index!r}: ids {how}, padded with {self.frame.pad_id}>"

    def __reduce__(self) -> Any:
        return TokenIds, self._arguments

    def anchor_ids(
        self, rows: RowNumbers, max_length: int = 32, out: dict[str, torch.Tensor] | None = None
    ) -> dict[str, torch.Tensor]:
        """Return a padded batch of the token ids of original sentences.

        It equals ``tokenizer(sentences, truncation=True, padding="max_length", max_length=max_length)``.

        Args:
            rows: row numbers of the index, integers (n_rows,), in any order, with or without repeats.
            max_length: tokens per sentence, special tokens included. At least one token must not be special.
            out: the tensors of an earlier call, which are filled and returned. None allocates new tensors.

        Returns:
            "input_ids", "attention_mask" and, if the tokenizer has them, "token_type_ids": each torch.int64 (n_rows,
            max_length), on the CPU.

        Raises:
            InputError: a row out of range, a `max_length` without room for a sub-word, or an `out` that does not fit.
        """
        checked = checked_rows(rows, self.n_documents)
        batch = self.tensors(len(checked), max_length, out)
        if not self.by_word:
            self.write_texts([self._index.sentence(row) for row in checked.tolist()], np.arange(len(checked)), batch)
            return batch
        values, bounds = self.sentences.values, self.sentences.indptr
        ids, mask = batch["input_ids"].numpy(), batch["attention_mask"].numpy()

        def fill(part: slice) -> None:
            pad_rows[f"{values.dtype}_t"](values, bounds, checked[part], self.frame, ids[part], mask[part])

        self.threads.run(fill, len(checked), ROWS_A_THREAD)
        return batch

    def tensors(self, n_rows: int, max_length: int, out: dict[str, torch.Tensor] | None = None) -> dict[str, Any]:
        """Check and return `out`, or return new tensors if it is None. Only "token_type_ids" are initialised, to 0.

        Args:
            n_rows: number of rows of the batch.
            max_length: tokens per row, special tokens included.
            out: tensors of an earlier call, or None.

        Returns:
            "input_ids", "attention_mask" and, if the tokenizer has them, "token_type_ids": each torch.int64 (n_rows,
            max_length), on the CPU.

        Raises:
            InputError: `max_length` has no room for a sub-word, or `out` does not fit.
        """
        least, int64 = self.frame.n_special + 1, self._torch.int64
        if type(max_length) is not int:
            max_length = integer("max_length", max_length)
        if max_length < least:
            raise InputError(
                f"max_length={max_length}: must be at least {least}, for {least - 1} special tokens and a sub-word"
            )
        if out is None:
            out = {name: self._torch.empty((n_rows, max_length), dtype=int64) for name in self._names}
        elif {*out} != {*self._names}:
            raise InputError(f"out: has {sorted(out)}, must have {sorted(self._names)}, as this tokenizer's batches do")
        for name, tensor in out.items():
            is_right = tensor.dtype == int64 and tensor.shape == (n_rows, max_length)
            if not is_right or tensor.device.type != "cpu" or not tensor.is_contiguous():
                raise InputError(
                    f"out[{name!r}]: is {tensor.dtype} of shape {tuple(tensor.shape)} on {tensor.device}, must be "
                    f"torch.int64 of {(n_rows, max_length)}, contiguous, on the CPU (pinned or not), or None"
                )
        if "token_type_ids" in out:
            out["token_type_ids"].numpy().fill(0)  # torch's zero_ would wake threads that compete with the kernel's
        return out

    def write_texts(self, texts: Sequence[str], rows: np.ndarray, batch: dict[str, torch.Tensor]) -> None:
        """Write the token ids of ``texts[i]``, which need not be in the index, to row ``rows[i]`` of a `batch`.

        If `by_word`, texts are encoded chunk by chunk. The exception is a text in which the ids of some chunk depend on
        the whole text. Encoding a whole text takes 100 us or more.

        Args:
            texts: n texts.
            rows: integers (n,), rows of the batch.
            batch: the result of `tensors`, which is changed.

        Raises:
            InputError: the tokenizer cannot encode a text.
        """
        known = self._write_chunks(texts, rows, batch) if self.by_word else np.zeros(len(texts), dtype=bool)
        if not known.all():
            whole = np.flatnonzero(~known)
            self._write_whole([texts[i] for i in whole.tolist()], rows[whole], batch)

    def _write_chunks(self, texts: Sequence[str], rows: np.ndarray, batch: dict[str, torch.Tensor]) -> np.ndarray:
        """Encode texts chunk by chunk. Return bool (n_texts,): False for a text that must be encoded as a whole."""
        encoded = [f"\n{text}".encode() for text in texts]
        bounds = row_bounds([*map(len, encoded)])
        text = np.frombuffer(b"".join([*encoded, b"\n"]), dtype=np.uint8)
        is_start = text == ord(" ")
        is_start[bounds] = True
        starts = np.flatnonzero(is_start)
        starts, stops, bounds = starts[:-1], starts[1:], np.searchsorted(starts, bounds)
        places, values, ends, known = self.cache.look_up(text, starts + self.encoder.pipeline.context_free, stops)
        chunks = rows_from(values, ends[places], ends[places + 1] - ends[places])
        ids, mask = np.empty((2, len(texts), batch["input_ids"].shape[1]), dtype=TOKEN)
        pad_rows["int32_t"](chunks.values, chunks.indptr[bounds], np.arange(len(texts)), self.frame, ids, mask)
        known = np.logical_and.reduceat(known[places], bounds[:-1])
        batch["input_ids"].numpy()[rows[known]] = ids[known]
        batch["attention_mask"].numpy()[rows[known]] = mask[known]
        return known

    def _write_whole(self, texts: list[str], rows: np.ndarray, batch: dict[str, torch.Tensor]) -> None:
        length = batch["input_ids"].shape[1]
        with self._lock, tokenizer_errors():  # a call sets the tokenizer's padding length, which threads share
            encoded = self._tokenizer(texts, truncation=True, padding="max_length", max_length=length, verbose=False)
        for text, ids in zip(texts, encoded["input_ids"], strict=True):
            if len(ids) != length:
                raise InputError(
                    f"tokenizer: with truncation and padding to {length} ids it returns {len(ids)} for {text[:80]!r}: "
                    "correct its post-processor, or use another tokenizer"
                )
        for name, tensor in batch.items():
            tensor.numpy()[rows] = encoded[name]


def _copied(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Copy a tokenizer, because encoding changes its settings. Return the tokenizer itself if it cannot be copied."""
    try:
        return copy.deepcopy(tokenizer)
    except Exception:  # a component written in Python can raise anything
        return tokenizer


def checked_rows(rows: RowNumbers, n_documents: int) -> np.ndarray:
    """Copy `rows` to an array, int64 (n_rows,), or raise InputError if one is not a row of the index."""
    try:
        given = np.asarray(rows)
        if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
            raise ValueError(f"got {given.dtype} of shape {given.shape}")
    except ValueError as error:  # numpy raises it too, for lists of different lengths
        raise InputError(f"rows: {error}: must be a list or array of integers; for text call augment([...])") from None
    array = np.array(given, dtype=np.int64, order="C")  # a copy, because another thread may write to `rows`
    outside = array.view(np.uint64) >= n_documents  # as uint64, a negative row exceeds any valid one
    if outside.any():
        at = int(outside.argmax())
        raise InputError(
            f"rows: {given[at]} (at position {at}) is not a row of the index: give 0 to {n_documents - 1:,}"
        )
    return array


class SubwordCache:
    """Caches the sub-words of strings, up to about MOST_BYTES. Threads may share one object."""

    def __init__(self, encoder: SubwordEncoder):
        self._encoder, self._lock = encoder, threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._strings, self.n_bytes, self._n_encoded = StringSet(), 0, 0
        self._values, self._bounds, self._known = np.zeros(1, ID), np.zeros(1, POINTER), np.zeros(1, bool)

    def look_up(
        self, text: np.ndarray, starts: np.ndarray, stops: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the sub-words of the UTF-8 strings ``text[starts[i]:stops[i]]``, and encode those not in the cache.

        Each string is a chunk. Unless the pipeline is `context_free`, the string begins with one more character, which
        is not encoded: a newline for the first chunk of a text, a space for the others.

        Returns `places`, `values`, `bounds` and `known`. String i is at k = places[i] in the cache. Its ids are
        ``values[bounds[k]:bounds[k + 1]]``, or depend on the whole text if ``known[k]`` is False.
        """
        with self._lock:
            if self.n_bytes > MOST_BYTES or len(self._strings) > self._n_encoded:  # full, or a call was interrupted
                self._forget()
            n_cached = len(self._strings)
            places = self._strings.add(text, starts, stops)
            if len(self._strings) > n_cached:
                new = np.flatnonzero(places >= n_cached)
                new = new[np.unique(places[new], return_index=True)[1]]
                begins = starts[new] + (not self._encoder.pipeline.context_free)
                strings = rows_from(text, begins, stops[new] - begins)
                is_first = text[starts[new]] == ord("\n")
                ids, known = self._encoder.encode(StringTable(strings.values, strings.indptr), is_first)
                used = int(self._bounds[n_cached])
                self._values = extended(self._values, used, ids.values)
                self._bounds = extended(self._bounds, n_cached + 1, used + ids.indptr[1:])
                self._known = extended(self._known, n_cached, known)
                self.n_bytes += len(strings.values) + 4 * len(ids.values) + BYTES_A_STRING * len(new)
            self._n_encoded = len(self._strings)
            return places, self._values, self._bounds, self._known
