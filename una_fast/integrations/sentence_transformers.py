"""Token ids and losses for SentenceTransformerTrainer. With these token ids, no tokenizer runs during training."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from una_fast.augment.base import TextAugmentation
from una_fast.errors import InputError, check_keywords, suggests_keywords
from una_fast.imports import naming_extras
from una_fast.version import CITATION

with naming_extras("integrations"):
    import numpy as np
    import torch
    from datasets import Dataset
    from torch import Tensor, distributed, nn
    from torch.distributed.nn.functional import all_gather
    from transformers import TrainerCallback

    from una_fast.integrations import transformers
    from una_fast.losses import pairs, similarity_distillation


def row_dataset(augmenter: TextAugmentation, n_rows: int | None = None) -> Dataset:
    """Return a `datasets.Dataset` with the column ``row``: the numbers of the sentences that have a word to replace.

    Args:
        augmenter: the augmentation of the `RowCollator`.
        n_rows: half the number of sentences, if the second half of the corpus is paraphrases of the first. The dataset
            then contains only the sentences of the first half that have, like their paraphrase, a word to replace.
    """
    index = augmenter.index
    rows, left_out = np.arange(index.n_documents)[:n_rows], augmenter.kept_words.unchangeable_rows(index)
    if n_rows is not None:
        left_out = np.concatenate([left_out, left_out - n_rows])
    return Dataset.from_dict({"row": np.setdiff1d(rows, left_out)})


class RowCollator(transformers.RowCollator):
    """Makes the features of sentence-transformers' losses from row numbers of the index::

        collator = RowCollator(una)
        trainer = SentenceTransformerTrainer(
            model, args, row_dataset(una), loss=loss, data_collator=collator, callbacks=[collator.callback()]
        )

    The arguments are those of `una_fast.integrations.transformers.RowCollator`. The augmenter's tokenizer must be the
    tokenizer of the model.
    """

    valid_label_columns: Sequence[str] = ()  # the trainer reads this attribute of the collator

    def __call__(self, rows: Sequence[int | Mapping[str, int]]) -> dict[str, Tensor]:
        """Return the token ids of each view: "anchor_input_ids", "anchor_attention_mask" and so on.

        Args:
            rows: row numbers of the index, or rows of `row_dataset`.

        Returns:
            Each is torch.int64 (n_rows, n_tokens), where n_tokens is the length of the view's longest text.

        Raises:
            InputError: the index has no such row.
        """
        features: dict[str, Tensor] = {}
        for view, ids in self._ids_of_views(rows).items():
            used = ids["attention_mask"].any(0).nonzero()[:, 0].tolist() or [0]  # blank texts may have no tokens
            features |= {f"{view}_{name}": part[:, used[0] : used[-1] + 1] for name, part in ids.items()}
        return features


class ViewsLoss(nn.Module):
    """Computes a loss of `una_fast.losses`, or a custom loss, on the columns anchor, positive and negative.

    `ViewsLoss(model, losses.soft, weight=1e-3)` equals `--loss soft` of `train.ddp`. In evaluations the loss uses only
    anchors and positives.

    Args:
        model: a SentenceTransformer.
        loss: a function of embeddings, float (n_views, n_sentences, width), that returns a scalar. If it has a
            parameter `temperature`, it also gets the temperature. Its attribute `negative_views` (by default 1) is how
            often each negative is encoded, each time under another dropout mask. If it has a parameter `start`, it also
            gets the initial model's embeddings of the anchors and the negatives. The initial model is a frozen copy in
            eval mode, made when `ViewsLoss` is constructed.
        temperature: divides the cosine similarities.
        alpha: use negatives on the optimiser steps 0, alpha, 2 * alpha and so on, or on no step if alpha is 0. If alpha
            is above 1, the loss must know the step: add ``loss.callback()`` to the trainer's callbacks, or set
            ``loss.step`` in your loop.
        similarity_distillation: the weight of `una_fast.losses.similarity_distillation`, which is added to the loss.
        gather_across_devices: whether to compare each embedding with the embeddings of all ranks, as if their batches
            were one large batch. `train.ddp` always does this. All batches must have the same size.
        options: other arguments of `loss`, such as ``weight=1e-3``.

    Raises:
        InputError: `alpha` or `similarity_distillation` is below 0, or `loss` does not accept an option.
    """

    def __init__(
        self,
        model: Any,
        loss: Callable[..., Tensor],
        temperature: float = 0.05,
        alpha: int = 1,
        similarity_distillation: float = 0.0,
        gather_across_devices: bool = False,
        **options: Any,
    ):
        super().__init__()
        parameters = inspect.signature(loss).parameters
        takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
        if not takes_any:
            check_keywords(type(self).__name__, options, [*inspect.signature(ViewsLoss).parameters, *parameters])
        if alpha < 0:
            raise InputError(f"alpha={alpha}: must be at least 0, where 0 is never; the paper uses 5")
        if not similarity_distillation >= 0:
            raise InputError(f"similarity_distillation={similarity_distillation}: must be at least 0, where 0 is none")
        self.model, self.loss, self.options = model, loss, options
        self.temperature, self.alpha = temperature, alpha
        if takes_any or "temperature" in parameters:
            self.options = {"temperature": temperature, **options}
        self.negative_views = getattr(loss, "negative_views", 1)
        self.similarity_distillation = similarity_distillation
        self.gather_across_devices = gather_across_devices
        self.step: int | None = None
        self._loss_takes_start = "start" in parameters
        # in a list, so that torch does not register it as a submodule, which would be trained and saved
        starts = [copy.deepcopy(model)] if self._loss_takes_start or similarity_distillation else []
        self._start = [start.eval().requires_grad_(False) for start in starts]

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """Return the loss of a batch, a scalar.

        Args:
            sentence_features: the model's inputs for anchors, positives and negatives, such as "input_ids", int64
                (n_sentences, n_tokens).
            labels: not used; sentence-transformers passes them.

        Raises:
            InputError: the number of columns is not 3, or alpha is above 1 and the step is unknown.
        """
        features = list(sentence_features)
        if len(features) != 3:
            raise InputError(
                f"{type(self).__name__} accepts the columns anchor, positive and negative, but got {len(features)}: "
                "give Negatives n=1 and no `keep`, or use MultipleNegativesRankingLoss"
            )
        anchor, positive, negative = features
        with_negatives = self._uses_negatives()
        views = self._encode(self.model, [anchor, positive, *([negative] * self.negative_views * with_negatives)])
        if not self._start:
            return self.loss(views, **self.options)
        (frozen,) = self._start
        with torch.no_grad():
            start = self._encode(frozen.to(views.device), [anchor, negative] if with_negatives else [anchor])
        options = {**self.options, "start": start} if self._loss_takes_start else self.options
        loss = self.loss(views, **options)
        return loss + self.similarity_distillation * similarity_distillation(views, start)

    def _encode(self, model: Any, views: Sequence[dict[str, Tensor]]) -> Tensor:
        """Encode each view in a separate pass, so that equal texts get different dropout masks. Return (V, B, D)."""
        embeddings = torch.stack([model(dict(view))["sentence_embedding"] for view in views])  # models change the dict
        if self.gather_across_devices and distributed.is_initialized():
            # The backward of all_gather sums over the ranks, and DDP averages over them. So the gradient equals that of
            # one rank with all batches.
            embeddings = torch.cat(all_gather(embeddings), dim=1)
        return embeddings

    def _uses_negatives(self) -> bool:
        if not self.model.training or self.alpha == 0:
            return False
        if self.step is None and self.alpha > 1:
            raise InputError(
                f"{type(self).__name__}(alpha={self.alpha}) does not know the optimiser step: add loss.callback() to "
                "the trainer's callbacks, or set loss.step in your loop"
            )
        return (self.step or 0) % self.alpha == 0

    def callback(self) -> TrainerCallback:
        """Return a `TrainerCallback` that sets ``step`` to the trainer's current optimiser step."""
        loss = self

        class StepCallback(TrainerCallback):
            def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                loss.step = state.global_step  # also while gradients of several batches are accumulated

        return StepCallback()

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings for the model card."""
        names = ("temperature", "alpha", "similarity_distillation", "gather_across_devices")
        loss = getattr(self.loss, "__name__", None) or repr(self.loss)  # a functools.partial or a module has none
        return {"loss": loss, **{name: getattr(self, name) for name in names}, **self.options}

    @property
    def citation(self) -> str:
        """The citation of the UNA paper in BibTeX. sentence-transformers writes it to the model card."""
        return CITATION


class PairsLoss(ViewsLoss):
    """Computes the loss of the paper's code: `ViewsLoss` with `una_fast.losses.pairs`, and the paper's alpha.

    Args:
        model: a SentenceTransformer.
        temperature: as in `ViewsLoss`.
        alpha: as in `ViewsLoss`.
        gather_across_devices: as in `ViewsLoss`.

    Raises:
        InputError: `alpha` is below 0.
    """

    @suggests_keywords
    def __init__(self, model: Any, temperature: float = 0.05, alpha: int = 5, gather_across_devices: bool = False):
        super().__init__(model, pairs, temperature, alpha, gather_across_devices=gather_across_devices)
