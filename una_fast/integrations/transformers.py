"""Makes batches of token ids from row numbers of the index, for transformers' Trainer and for a DataLoader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

import numpy as np

from una_fast.augment.base import TextAugmentation
from una_fast.errors import InputError, suggests_keywords
from una_fast.imports import naming_extras
from una_fast.integrations.datasets import DrawnByEpoch
from una_fast.tokens.ids import TokenIds

with naming_extras("integrations"):
    import torch

# "input_ids", "attention_mask" and, if the tokenizer has them, "token_type_ids": torch.int64 (n_rows, max_length)
Ids: TypeAlias = dict[str, torch.Tensor]


class RowCollator(DrawnByEpoch):
    """Makes a batch from row numbers of the index: the token ids of anchors, positives and negatives.

    Use it with a dataset of row numbers (`una_fast.integrations.sentence_transformers.row_dataset`, or any sequence of
    integers). The Trainer also needs ``remove_unused_columns=False``. The attribute `views` lists what a batch contains
    for each row number, in order: "anchor", "positive" (if any), "negative" (or "negative_1" to "negative_n").

    Args:
        augmenter: an augmentation that has a tokenizer and a saved index.
        max_length: each sentence is truncated or padded to this many tokens, special tokens included.
        positive: "same" for the sentence itself, None for no positive, or the distance in rows from each anchor to its
            positive, such as half the number of sentences if the second half of the corpus paraphrases the first.
        n: negatives per sentence.

    Raises:
        InputError: the augmentation has no tokenizer, its index is not saved, or `positive` or `n` is invalid.
    """

    @suggests_keywords
    def __init__(
        self, augmenter: TextAugmentation, max_length: int = 32, positive: str | int | None = "same", n: int = 1
    ):
        super().__init__(augmenter, positive is not None, n)
        if augmenter.tokens is None:
            kind = type(augmenter).__name__
            raise InputError(f"RowCollator needs a tokenizer: give {kind}(index, tokenizer=AutoTokenizer...)")
        if positive not in (None, "same") and not isinstance(positive, int):
            raise InputError(f"positive={positive!r}: give 'same', None, or the number of rows from anchor to positive")
        self.max_length = max_length
        self._offset = positive if isinstance(positive, int) else 0

    def __call__(self, rows: Sequence[int | Mapping[str, int]]) -> Ids:
        """Return "input_ids", "attention_mask" and, if the tokenizer has them, "token_type_ids".

        Args:
            rows: row numbers of the index, or rows of `row_dataset`.

        Returns:
            Each is torch.int64 (n_rows, n_views, max_length), with the views in the order of `views`.

        Raises:
            InputError: the index has no such row.
        """
        views = self._ids_of_views(rows)
        return {name: torch.stack([ids[name] for ids in views.values()], dim=1) for name in views["anchor"]}

    def _ids_of_views(self, rows: Sequence[int | Mapping[str, int]]) -> dict[str, Ids]:
        """Return the token ids of each view. A row is a number or, from a dataset, ``{"row": NUMBER}``."""
        numbers = np.array([row["row"] if isinstance(row, Mapping) else row for row in rows], dtype=np.int64)
        self._note_drawn(len(numbers))
        tokens = cast("TokenIds", self.augmenter.tokens)  # the constructor refuses None
        ids = {"anchor": tokens.anchor_ids(numbers, self.max_length)}
        if "positive" in self.views:
            ids["positive"] = tokens.anchor_ids(numbers + self._offset, self.max_length)
        for number, name in enumerate(self.negatives):
            ids[name] = self.augmenter.token_ids(numbers, self.epoch, self.max_length, sample_index=number)
        return ids
