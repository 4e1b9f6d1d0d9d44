"""Rows of the index -> the token ids of anchors, positives and negatives: what both collators share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from una_fast.errors import InputError
from una_fast.integrations.checks import check_saved, negative_names
from una_fast.integrations.epochs import DrawnByEpoch

Ids: TypeAlias = dict[str, torch.Tensor]  # "input_ids", "attention_mask"[, "token_type_ids"]: torch.int64 (B, L)


class View(ABC):
    """One view of a batch: makes token ids, or texts, of rows of the index."""

    @abstractmethod
    def ids(self, rows: np.ndarray, epoch: int, max_length: int) -> Ids:
        """Padded ids (B, max_length) of int64 `rows` (B,)."""

    @abstractmethod
    def texts(self, rows: np.ndarray, epoch: int) -> list[str]:
        """The text of each row."""


@dataclass(frozen=True)
class Original(View):
    """The sentences themselves, or those `offset` rows further on."""

    augmenter: Any
    offset: int = 0

    def ids(self, rows: np.ndarray, epoch: int, max_length: int) -> Ids:
        """As the tokenizer makes them of the sentences."""
        return self.augmenter.tokens.anchor_ids(rows + self.offset, max_length)

    def texts(self, rows: np.ndarray, epoch: int) -> list[str]:
        """As the corpus has them."""
        return [self.augmenter.index.sentence(row) for row in (rows + self.offset).tolist()]


@dataclass(frozen=True)
class Drawn(View):
    """A negative of each sentence, of one set of draws."""

    augmenter: Any
    draw_set: int

    def ids(self, rows: np.ndarray, epoch: int, max_length: int) -> Ids:
        """As the tokenizer makes them of `texts`."""
        return self.augmenter.token_ids(rows, epoch, max_length, draw_set=self.draw_set)

    def texts(self, rows: np.ndarray, epoch: int) -> list[str]:
        """The words of each negative, joined by spaces."""
        return self.augmenter.texts(rows, epoch, draw_set=self.draw_set)


def make_views(augmenter: Any, positive: str | int | None, n: int) -> dict[str, View]:
    """The views by name in their order: anchor, positive (if any), negative or negative_1 to negative_n.

    Args:
        augmenter: with a tokenizer, of an index that was saved.
        positive: "same", None, or an offset in rows: document `row + positive` is the positive of `row`.
        n: negatives a sentence.

    Raises:
        InputError: no tokenizer, an index that is not saved, or a setting out of its range.

    """
    check_saved(augmenter)
    if augmenter.tokens is None:
        kind = type(augmenter).__name__
        raise InputError(f"a collator of rows makes token ids: give {kind}(index, tokenizer=AutoTokenizer...)")
    views: dict[str, View] = {"anchor": Original(augmenter)}
    if positive is not None:
        views["positive"] = Original(augmenter, _offset(positive))
    return views | {name: Drawn(augmenter, number) for number, name in enumerate(negative_names(n))}


def _offset(positive: str | int) -> int:
    if positive == "same":
        return 0
    if not isinstance(positive, int):
        raise InputError(f"positive={positive!r}: give 'same', None, or the offset in rows of the positives")
    return positive


class RowReader(DrawnByEpoch):
    """Reads the ids of all views of a batch of rows: the base of both collators, which arrange them."""

    def __init__(self, augmenter: Any, max_length: int, positive: str | int | None, n: int):
        super().__init__()
        self.augmenter = augmenter
        self.views = make_views(augmenter, positive, n)
        self.max_length = max_length

    def __repr__(self) -> str:
        views = f"views {', '.join(self.views)}, max_length={self.max_length}, epoch={self.epoch.value}"
        return f"<{type(self).__module__}.{type(self).__name__} of {self.augmenter!r}: {views}>"

    def _read(self, rows: Sequence[int | Mapping[str, int]]) -> dict[str, Ids]:
        """The ids of each view, (B, max_length), of rows that are numbers or, from a dataset, ``{"row": number}``."""
        numbers = np.array([row["row"] if isinstance(row, Mapping) else row for row in rows], dtype=np.int64)
        self._note_drawn(numbers)
        return {name: view.ids(numbers, self.epoch.value, self.max_length) for name, view in self.views.items()}


def trimmed(ids: Ids) -> Ids:
    """The ids without the columns that hold nothing but padding, on whichever side the tokenizer pads."""
    used = torch.nonzero(ids["attention_mask"].any(0))[:, 0]
    columns = slice(int(used[0]), int(used[-1]) + 1)  # special tokens stand in every row
    return {name: values[:, columns] for name, values in ids.items()}
