"""For SentenceTransformerTrainer: token ids without a tokenizer in the loop, and the loss of the paper's code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from una_fast.citation import CITATION
from una_fast.errors import InputError
from una_fast.extras import naming_extras

with naming_extras("integrations"):
    import numpy as np
    import torch
    from datasets import Dataset
    from torch import Tensor, distributed, nn
    from torch.distributed.nn.functional import all_gather
    from transformers import TrainerCallback

    from una_fast.integrations.prompts import with_prompts
    from una_fast.integrations.views import RowReader, trimmed
    from una_fast.losses import pairs


def row_dataset(augmenter: Any, n_rows: int | None = None) -> Dataset:
    """A `datasets.Dataset` with one column, ``row``: the documents of the index that hold a word.

    n_rows: take only the first `n_rows` documents, such as the sentences of a corpus whose second half is their
    paraphrases; all if None.
    """
    lengths = augmenter.index.word_ids.lengths()[:n_rows]
    return Dataset.from_dict({"row": np.flatnonzero(lengths)})


class RowCollator(RowReader):
    """Row numbers of the index -> the features of sentence-transformers' losses, from the kernels::

        collator = RowCollator(una)
        trainer = SentenceTransformerTrainer(
            model, args, row_dataset(una), loss=loss, data_collator=collator, callbacks=[collator.callback()]
        )

    Args:
        augmenter: with the model's tokenizer, of an index that was saved.
        max_length: tokens a sentence, special ones and the prompt's included.
        positive: "same", None, or an offset in rows to the positive (the corpus's length for aligned paraphrases).
        n: negatives a sentence.
        prompts: text to put before the sentences, one for all or by view ("anchor", "positive", "negative").

    Raises:
        InputError: no tokenizer, an index that is not saved, or a setting out of its range.

    """

    valid_label_columns: Sequence[str] = ()  # the trainer reads this attribute of its collator

    def __init__(
        self,
        augmenter: Any,
        max_length: int = 32,
        positive: str | int | None = "same",
        n: int = 1,
        prompts: str | Mapping[str, str] | None = None,
    ):
        super().__init__(augmenter, max_length, positive, n)
        self.views = with_prompts(self.views, prompts, augmenter, max_length)

    def __call__(self, rows: Sequence[int | Mapping[str, int]]) -> dict[str, Tensor]:
        """{"anchor_input_ids", "anchor_attention_mask", ...}: torch.int64 (B, L), each L its view's longest row."""
        return {f"{view}_{name}": part for view, ids in self._read(rows).items() for name, part in trimmed(ids).items()}


class PairsLoss(nn.Module):
    """The loss of the paper's code, `una_fast.losses.pairs` over [anchor, positive, negative, negative'].

    The target of each row, among all other rows of the batch, is its partner: the positive of an anchor, the anchor of
    a positive, and for a negative the same text under another dropout mask. Negatives are used on the optimiser steps
    that `alpha` divides; the other steps, and evaluations, use anchors and positives only. Add ``loss.callback()`` to
    the trainer's callbacks, which sets ``loss.step``, or set it yourself in a loop of your own.

    Args:
        model: a SentenceTransformer.
        temperature: divides the cosine similarities.
        alpha: negatives on every alpha-th optimiser step, counted from 0; 0 for never.
        gather_across_devices: compare with the rows of all ranks instead of the rank's own. Then N ranks give the loss
            of one rank with all their batches, as in `train.ddp`; all ranks need batches of one size.

    Raises:
        InputError: `alpha` below 0 or a `temperature` that is not above 0.

    """

    def __init__(self, model: Any, temperature: float = 0.05, alpha: int = 5, gather_across_devices: bool = False):
        super().__init__()
        if not temperature > 0:
            raise InputError(f"temperature={temperature}: must be above 0; the paper takes 0.05")
        if alpha < 0:
            raise InputError(f"alpha={alpha}: must be at least 0, where 0 is never; the paper takes 5")
        self.model = model
        self.temperature = temperature
        self.alpha = alpha
        self.gather_across_devices = gather_across_devices
        self.step: int | None = None

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """A scalar. sentence_features: of anchor, positive and negative, each {"input_ids": int64 (B, L), ...}."""
        features = list(sentence_features)
        if len(features) != 3:
            raise InputError(f"PairsLoss takes the columns anchor, positive and negative, and got {len(features)}")
        anchor, positive, negative = features
        views = [anchor, positive, negative, negative] if self._uses_negatives() else [anchor, positive]
        # a pass for each view, so that equal texts get two dropout masks; a copy, since models write into their dict
        embeddings = torch.stack([self.model(dict(view))["sentence_embedding"] for view in views])  # (V, B, D)
        if self.gather_across_devices and distributed.is_initialized():
            # its backward sums over the ranks and DDP then averages: the gradient is that of one rank with all rows
            embeddings = torch.cat(all_gather(embeddings), dim=1)
        return pairs(embeddings, self.temperature)

    def _uses_negatives(self) -> bool:
        if not self.model.training or self.alpha == 0:
            return False
        if self.step is None and self.alpha > 1:
            raise InputError(
                f"PairsLoss(alpha={self.alpha}) does not know the optimiser step: add loss.callback() to the trainer's "
                "callbacks, or set loss.step in your loop"
            )
        return (self.step or 0) % self.alpha == 0

    def callback(self) -> StepCallback:
        """A `TrainerCallback` that sets ``step`` to the trainer's optimiser step."""
        return StepCallback(self)

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return ", ".join(f"{name}={value!r}" for name, value in self.get_config_dict().items())

    def get_config_dict(self) -> dict[str, Any]:
        """For the model card."""
        names = ("temperature", "alpha", "gather_across_devices")
        return {name: getattr(self, name) for name in names}

    @property
    def citation(self) -> str:
        """For the model card."""
        return CITATION


class StepCallback(TrainerCallback):
    """Sets ``step`` of a loss to the trainer's optimiser step."""

    def __init__(self, loss: PairsLoss):
        self.loss = loss

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Called once an optimiser step, also where gradients are accumulated over several batches."""
        self.loss.step = state.global_step
