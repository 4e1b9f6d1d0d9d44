"""A tokenizer bound to an index: the sub-word ids of its sentences and terms, made once and kept with the index."""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from una_fast._kernels.ids.emit import pad_rows
from una_fast.arrays import TOKEN
from una_fast.errors import InputError, integer, warn_user
from una_fast.imports import import_extra
from una_fast.parallel import RowThreads, n_cores
from una_fast.tokens.binding import bind, compare_with_tokenizer
from una_fast.tokens.pipelines import NotByWordError
from una_fast.tokens.subwords import SubwordEncoder, as_input_errors, check_settings, frame_of

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

    from una_fast.index.index import Index

ROWS_A_THREAD = 4096  # 0.2 ms; handing rows to another thread costs 50 us


class TokenIds:
    """Sub-word ids of an index's sentences and terms under one Hugging Face tokenizer.

    by_word: bool, False if the ids of this tokenizer cannot be made word by word (docs/tokenizers.md). A warning gives
    the reason and the cost, and the tokenizer encodes each text as a whole. frame: the special tokens before and after
    a text, and the padding; has_token_type_ids: bool. What follows is there only if `by_word`:

    sentences: `RaggedArray` (N rows, uint16 if every id of the tokenizer fits, else int32), each original sentence,
    untruncated, without special tokens. terms: `RaggedArray` (int32), in row t the ids of term t after a space and,
    where the tokenizer makes a difference, in row V + t as the first word of a text; ids of any words joined by spaces
    are ``terms[first + w0] + terms[w1] + ...`` with ``first = len(terms) - V``. The row of a term for which that does
    not hold is empty: it holds an added token ("[MASK]"), or leaves nothing once normalised. A text with one is encoded
    whole. chunk_sizes: uint16, how many sub-words each chunk has (see `bind`); encoder: the tokenizer as a function of
    strings.

    The ids are kept in the index's folder, in `tokens-*`, and memory-mapped from there at the next bind; if the
    index is not saved, or its folder cannot be written, they are kept in memory.

    Args:
        index: the corpus.
        tokenizer: as `AutoTokenizer` gives it, with a padding token. Not changed.
        n_jobs: threads; all cores this process may use if None.

    Raises:
        InputError: no tokenizer, a setting of it that cannot be used (the message says what to set), or damaged files
            of ids.
    """

    def __init__(self, index: Index, tokenizer: PreTrainedTokenizerBase, n_jobs: int | None = None):
        check_settings(tokenizer)
        self._arguments = index, tokenizer, n_jobs
        self.threads = RowThreads(n_cores(n_jobs))
        self.has_token_type_ids = "token_type_ids" in tokenizer.model_input_names
        self._index, self._n_documents = index, index.n_documents
        self._names = ["input_ids", "attention_mask"] + ["token_type_ids"] * self.has_token_type_ids
        torch = import_extra("torch")
        self._new, self._int64 = torch.empty, torch.int64
        self._tokenizer, self._lock = _copied(tokenizer), threading.Lock()
        self.by_word = False
        try:
            self.encoder = SubwordEncoder(tokenizer)
            self.sentences, self.terms, self.chunk_sizes = bind(index, self.encoder, n_cores(n_jobs))
            compare_with_tokenizer(self.sentences, self.terms, index, self.encoder, self._tokenizer)
            self.frame, self.by_word = self.encoder.frame, True
        except NotByWordError as error:
            warn_user(
                f"tokenizer: {error.reason}, so its ids are not made word by word: each text goes through the tokenizer"
                " itself, which takes 100 us a sentence or more; word by word takes about 1 us"
            )
            special = np.array(self._tokenizer("")["input_ids"], dtype=TOKEN)  # they stand side by side
            self.frame = frame_of(tokenizer, special, special[:0])

    def __repr__(self) -> str:
        how = "word by word" if self.by_word else "each text by the tokenizer"
        sides = f"{self.frame.n_special} special tokens around a text, padded with {self.frame.pad_id}"
        return f"<una_fast.TokenIds of {self._index!r}: ids {how}, {sides}>"

    def __reduce__(self) -> Any:
        return TokenIds, self._arguments

    def anchor_ids(
        self,
        rows: Sequence[int] | np.ndarray | torch.Tensor,
        max_length: int = 32,
        out: dict[str, torch.Tensor] | None = None,
    ) -> dict[str, torch.Tensor]:
        """The original sentences `rows` as a padded batch. If `by_word`, no tokenizer runs and no string is made.

        Equals ``tokenizer(texts, truncation=True, padding="max_length", max_length=max_length)``.

        Args:
            rows: (B,) integers from 0 to N - 1, in any order, repeats allowed.
            max_length: L, at least one more than the special tokens around a text (3 for BERT).
            out: tensors to fill and return, as a former call returned them: int64 (B, L), contiguous, on the CPU
                (pinned memory is).

        Returns:
            "input_ids", "attention_mask" and, where the tokenizer has them, "token_type_ids": int64 (B, L).
        """
        checked, batch = self.checked_batch(rows, max_length, out)
        if not self.by_word:
            texts = [self._index.sentence(row) for row in checked.tolist()]
            self.write_texts(texts, np.arange(len(texts)), batch)
            return batch
        values, bounds = self.sentences.values, self.sentences.indptr
        ids, mask = batch["input_ids"].numpy(), batch["attention_mask"].numpy()

        def fill(part: slice) -> None:
            pad_rows[f"{values.dtype}_t"](values, bounds, checked[part], self.frame, ids[part], mask[part])

        self.threads.run(fill, len(checked), ROWS_A_THREAD)
        return batch

    def checked_batch(
        self,
        rows: Sequence[int] | np.ndarray | torch.Tensor,
        max_length: int,
        out: dict[str, torch.Tensor] | None = None,
    ) -> tuple[np.ndarray, dict[str, torch.Tensor]]:
        """Check the arguments of a batch of rows of the index.

        Returns:
            rows: int64 (B,), a copy; out: its tensors, int64 (B, L) on the CPU, as `tensors` makes them.

        Raises:
            InputError: a row out of range, a `max_length` without room for one sub-word, or an `out` that does not fit.
        """
        checked = checked_rows(rows, self._n_documents)
        return checked, self.tensors(len(checked), max_length, out)

    def tensors(self, n_rows: int, max_length: int, out: dict[str, torch.Tensor] | None = None) -> dict[str, Any]:
        """The tensors of a batch, `out` after a check or new ones: torch.int64 (n_rows, max_length) on the CPU.

        "input_ids" and "attention_mask" are to be filled; "token_type_ids", where the tokenizer has them, are zeros.

        Raises:
            InputError: a `max_length` without room for one sub-word, or an `out` that does not fit.
        """
        least = self.frame.n_special + 1
        if type(max_length) is not int:
            max_length = integer("max_length", max_length)
        if max_length < least:
            raise InputError(
                f"max_length={max_length}: {least - 1} special tokens and a sub-word need at least {least}"
            )
        if out is None:
            out = {name: self._new((n_rows, max_length), dtype=self._int64) for name in self._names}
        elif {*out} != {*self._names}:
            raise InputError(f"out: has {sorted(out)}, and this tokenizer's batches have {sorted(self._names)}")
        for name, tensor in out.items():
            is_right = tensor.dtype == self._int64 and tensor.shape == (n_rows, max_length)
            if not is_right or tensor.device.type != "cpu" or not tensor.is_contiguous():
                raise InputError(
                    f"out[{name!r}]: is {tensor.dtype} of shape {tuple(tensor.shape)} on {tensor.device}, must be "
                    f"torch.int64 of {(n_rows, max_length)}, contiguous, on the CPU (pinned or not): or give no `out`"
                )
        if self.has_token_type_ids:
            out["token_type_ids"].numpy().fill(0)  # torch's zero_ wakes threads that then spin beside the kernel's
        return out

    def write_texts(self, texts: Sequence[str], rows: np.ndarray, batch: dict[str, torch.Tensor]) -> None:
        """Write `texts`, each encoded whole (100 us a text), to the `rows` of a batch of int64 (B, L).

        Raises:
            InputError: the tokenizer does not cut a text to L.
        """
        if not len(texts):
            return
        length = batch["input_ids"].shape[1]
        with self._lock, as_input_errors():  # a fast tokenizer keeps the length of its padding in itself
            encoded = self._tokenizer(
                list(texts), truncation=True, padding="max_length", max_length=length, verbose=False
            )
        for text, ids in zip(texts, encoded["input_ids"], strict=True):
            if len(ids) != length:
                raise InputError(
                    f"tokenizer: it makes {len(ids)} ids of the text {text[:80]!r}, cut and padded to {length}; correct"
                    " its post-processor, or use another tokenizer"
                )
        for name, tensor in batch.items():
            tensor.numpy()[rows] = encoded[name]


def _copied(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """A copy, so that the user's keeps its settings; the tokenizer itself if a part of it cannot be copied."""
    try:
        return copy.deepcopy(tokenizer)
    except Exception:  # a part written in Python may be anything
        return tokenizer


def checked_rows(rows: Sequence[int] | np.ndarray | torch.Tensor, n_documents: int) -> np.ndarray:
    """`rows` as int64 (B,), contiguous. Raises `InputError` for anything but integers from 0 to `n_documents` - 1."""
    try:
        given = np.asarray(rows)
        if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
            raise ValueError(f"got {given.dtype} of shape {given.shape}")
    except ValueError as error:  # of numpy too, for lists of different lengths
        raise InputError(f"rows: {error}: give a list or array of integers; for text call augment([...])") from None
    array = np.array(given, dtype=np.int64, order="C")  # a copy: the caller may fill `rows` again meanwhile
    if array.size and array.view(np.uint64).max() >= n_documents:  # as uint64 a negative row is above any valid one
        at = int(np.argmax(array.view(np.uint64) >= n_documents))
        raise InputError(
            f"rows: {given[at]} (at position {at}) is not a row of the index; use 0 to {n_documents - 1:,}"
        )
    return array
