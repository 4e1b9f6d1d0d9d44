"""Rows of the index -> the token ids of anchors, positives and negatives: what both collators share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch

from una_fast.errors import InputError
from una_fast.integrations.epochs import DrawnByEpoch, check_saved, negative_names
from una_fast.tokens.ids import token_tensors

Ids: TypeAlias = dict[str, torch.Tensor]  # "input_ids", "attention_mask"[, "token_type_ids"]: torch.int64 (B, L)


@dataclass(frozen=True)
class View:
    """One view of a batch: makes token ids of rows of the index.

    offset: to the row of the sentence that is taken, if it is not the row itself; draw_set: the number of the draws of
    its negative, None for the sentence itself; prompt: a text put before each.
    """

    augmenter: Any
    offset: int = 0
    draw_set: int | None = None
    prompt: str = ""

    def ids(self, rows: np.ndarray, epoch: int, max_length: int) -> Ids:
        """Padded ids (B, max_length) of int64 `rows` (B,), as the tokenizer makes them of the texts."""
        una, rows = self.augmenter, rows + self.offset
        if self.draw_set is None and self.prompt:
            return self.prompted([una.index.sentence(row) for row in rows.tolist()], max_length)
        if self.draw_set is None:
            return una.tokens.anchor_ids(rows, max_length)
        if self.prompt:
            return self.prompted(una.texts(rows, epoch, draw_set=self.draw_set), max_length)
        return una.token_ids(rows, epoch, max_length, draw_set=self.draw_set)

    def prompted(self, texts: list[str], max_length: int) -> Ids:
        """Padded ids of texts, each with the prompt before it."""
        batch = token_tensors(len(texts), max_length, self.augmenter.tokens)
        self.augmenter.tokens.write_texts([self.prompt + text for text in texts], np.arange(len(texts)), batch)
        return batch


def make_views(
    augmenter: Any, max_length: int, positive: str | int | None, n: int, prompts: str | Mapping[str, str] | None
) -> dict[str, View]:
    """The views by name in their order: anchor, positive (if any), negative or negative_1 to negative_n.

    It takes and refuses what `sentence_transformers.RowCollator` does.
    """
    check_saved(augmenter)
    if augmenter.tokens is None:
        kind = type(augmenter).__name__
        raise InputError(f"a collator of rows makes token ids: give {kind}(index, tokenizer=AutoTokenizer...)")
    if positive not in (None, "same") and not isinstance(positive, int):
        raise InputError(f"positive={positive!r}: give 'same', None, or the offset in rows of the positives")
    views = {"anchor": View(augmenter)}
    if positive is not None:
        views["positive"] = View(augmenter, 0 if isinstance(positive, str) else positive)
    views |= {name: View(augmenter, draw_set=number) for number, name in enumerate(negative_names(n))}
    by_view = dict.fromkeys(views, prompts) if isinstance(prompts, str) else dict(prompts or {})
    for name, prompt in by_view.items():
        if name not in views:
            raise InputError(f"prompts: there is no view {name!r}: the views are {', '.join(views)}")
        views[name] = replace(views[name], prompt=prompt or "")
        if prompt and views[name].prompted([""], max_length)["attention_mask"].all():
            raise InputError(f"prompts: {prompt!r} leaves no room for a sentence among max_length={max_length} tokens")
    return views


class RowReader(DrawnByEpoch):
    """Reads the ids of all views of a batch of rows: the base of both collators, which arrange them."""

    def __init__(
        self,
        augmenter: Any,
        max_length: int = 32,
        positive: str | int | None = "same",
        n: int = 1,
        prompts: str | Mapping[str, str] | None = None,
    ):
        super().__init__()
        self.augmenter = augmenter
        self.views = make_views(augmenter, max_length, positive, n, prompts)
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
