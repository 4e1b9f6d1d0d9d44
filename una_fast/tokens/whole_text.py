"""The slower path that is right for every tokenizer: each text goes through the tokenizer itself."""

from __future__ import annotations

import copy
import threading
import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from una_fast.errors import InputError, InputWarning

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class WholeText:
    """Padded batches of texts, made by ``tokenizer(texts, truncation=True, padding="max_length")``.

    It works on a copy where the tokenizer can be copied, so the user's keeps its settings. A call holds a lock: a fast
    tokenizer keeps the length of its padding in itself.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        try:
            self._tokenizer = copy.deepcopy(tokenizer)
        except Exception:  # a part written in Python may be anything
            self._tokenizer = tokenizer
        self._lock = threading.Lock()

    def ids(self, text: str) -> list[int]:
        """The ids of a text, special tokens included."""
        with self._lock:
            return list(self._tokenizer(text)["input_ids"])

    def write(self, texts: Sequence[str], rows: np.ndarray, batch: dict[str, np.ndarray]) -> None:
        """Write `texts` to the `rows` of a batch of int64 (B, L): "input_ids", "attention_mask"[, "token_type_ids"].

        Raises:
            InputError: the tokenizer does not cut a text to L.
        """
        length = batch["input_ids"].shape[1]
        with self._lock:
            found = self._tokenizer(
                list(texts), truncation=True, padding="max_length", max_length=length, verbose=False
            )
        for text, ids in zip(texts, found["input_ids"], strict=True):
            if len(ids) != length:
                raise InputError(
                    f"tokenizer: it makes {len(ids)} ids of the text {text[:80]!r}, cut and padded to {length}; correct"
                    " its post-processor, or use another tokenizer"
                )
        for name in batch:
            batch[name][rows] = found[name]

    def warn(self, reason: str, sample: Sequence[str]) -> None:
        """Warn once that this path is taken: the reason, and what it costs, measured on `sample` (not empty)."""
        start = time.perf_counter()
        with self._lock:
            self._tokenizer(list(sample), verbose=False)
        cost = (time.perf_counter() - start) / len(sample) * 1e6
        warnings.warn(
            f"tokenizer: {reason}, so its ids are not made word by word: each text goes through the tokenizer itself,"
            f" which takes {cost:.0f} us a sentence here; word by word takes about 1 us",
            InputWarning,
            stacklevel=4,
        )
