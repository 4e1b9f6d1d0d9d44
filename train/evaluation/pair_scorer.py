"""Spearman of scored pairs under an encoder that changes: the dev evaluation of training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from train.evaluation.embed import Batches, DistinctSentences, Encode
from train.evaluation.tasks.sts import StsTask


class PairScorer:
    """Spearman of tasks under an encoder that changes: tokenised and sorted once, encoded at every call."""

    def __init__(
        self,
        tasks: Iterable[StsTask],
        tokenizer: Any,
        max_length: int | None = None,
        batch_tokens: int | None = None,
        device: str | torch.device = "cpu",
        prepared: Callable[[Sequence[str]], Sequence[str]] = list,
    ) -> None:
        """prepared: what is tokenised of texts, as `Modules.prepared`."""
        self.tasks: Sequence[StsTask] = list(tasks)
        distinct = DistinctSentences()
        self._rows = [(distinct.add(task.first), distinct.add(task.second)) for task in self.tasks]
        self._batches = Batches(prepared(distinct.texts), tokenizer, max_length, batch_tokens, device)

    def __call__(self, encode: Encode, threads: int | None = 1) -> dict[str, float]:
        """Spearman over all pairs, by task name; NaN if the encoder gives every pair the same similarity.

        encode: a padded batch {"input_ids", "attention_mask", ...} of int64 (B, L) -> embeddings (B, D). It
        is called in inference mode; the model's own mode (eval) is the caller's. On the CPU, `threads` batches
        are encoded at once (None: PyTorch's threads): not for an `encode` that talks to other ranks.
        """
        embeddings = self._batches.embed(encode, threads).cpu().numpy()
        return {
            task.name: task.correlations(task.similarity(embeddings, rows)).spearman["all"]
            for task, rows in zip(self.tasks, self._rows, strict=True)
        }
