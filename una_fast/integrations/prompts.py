"""Prompts before the texts of a view, whose ids are inserted into the ids of the kernel: no text is encoded again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from una_fast.errors import InputError
from una_fast.integrations.views import Ids, View
from una_fast.tokens.ids import TokenIds, token_tensors

FILLING = {"attention_mask": 1, "token_type_ids": 0}  # the values of these features for the tokens of a prompt


class Prompted(View):
    """A view with a prompt before each of its texts: the tokenizer's ids of prompt + text, cut and padded as one.

    If the ids of a text do not depend on what precedes it, padding is on the right and the prompt ends in a space, the
    prompt's ids are inserted between the leading special tokens and the kernel's ids. Otherwise each text goes through
    the tokenizer (100 us a text).

    Raises:
        InputError: a prompt that leaves no room for a sentence.

    """

    def __init__(self, view: View, prompt: str, augmenter: Any, max_length: int):
        self._view, self._prompt, self._augmenter = view, prompt, augmenter
        tokens = augmenter.tokens
        self._prompt_ids = _ids_of(prompt.removesuffix(" "), tokens)
        n_special = len(tokens.prefix) + len(tokens.suffix)
        if len(self._prompt_ids) + n_special >= max_length:
            raise InputError(
                f"prompts: {prompt!r} is {len(self._prompt_ids)} tokens, which leave no room for a sentence among "
                f"max_length={max_length} with {n_special} special tokens"
            )
        self._by_kernel = tokens.context_free and not tokens.frame.pads_left and prompt.endswith(" ")

    def texts(self, rows: np.ndarray, epoch: int) -> list[str]:
        """The prompt and the text of each row."""
        return [self._prompt + text for text in self._view.texts(rows, epoch)]

    def ids(self, rows: np.ndarray, epoch: int, max_length: int) -> Ids:
        """Padded ids (B, max_length) of prompt + text."""
        if self._by_kernel:
            inner = self._view.ids(rows, epoch, max_length - len(self._prompt_ids))
            return {name: self._with_prompt(name, values) for name, values in inner.items()}
        batch = token_tensors(len(rows), max_length, self._augmenter.tokens)
        self._augmenter.tokens.write_texts(self.texts(rows, epoch), np.arange(len(rows)), batch)
        return batch

    def _with_prompt(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """`values` (B, L) of a feature, with the values of the prompt behind the leading special tokens."""
        between = self._prompt_ids if name == "input_ids" else torch.full_like(self._prompt_ids, FILLING[name])
        at = len(self._augmenter.tokens.prefix)
        return torch.cat([values[:, :at], between.expand(len(values), -1), values[:, at:]], dim=1)


def with_prompts(
    views: Mapping[str, View], prompts: str | Mapping[str, str] | None, augmenter: Any, max_length: int
) -> dict[str, View]:
    """The views, with the prompt of each before its texts; one str is the prompt of all.

    Raises:
        InputError: a prompt of a view that is not there.
    """
    by_view = dict.fromkeys(views, prompts) if isinstance(prompts, str) else dict(prompts or {})
    if unknown := [name for name in by_view if name not in views]:
        raise InputError(f"prompts: there is no view {unknown[0]!r}: the views are {', '.join(views)}")
    return {
        name: Prompted(view, by_view[name], augmenter, max_length) if by_view.get(name) else view
        for name, view in views.items()
    }


def _ids_of(text: str, tokens: TokenIds) -> torch.Tensor:
    """int64 ids of a text without special tokens."""
    n_prefix, n_suffix = len(tokens.prefix), len(tokens.suffix)
    longest = n_prefix + len(text.encode()) + n_suffix + 2  # a token has a byte or more, but for one put in front
    batch = token_tensors(1, longest, tokens)
    tokens.write_texts([text], np.zeros(1, dtype=np.int64), batch)
    ids = batch["input_ids"][0][batch["attention_mask"][0].bool()]
    return ids[n_prefix : len(ids) - n_suffix]
