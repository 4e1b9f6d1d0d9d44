"""Spearman of scored pairs under an encoder whose weights change: the dev evaluation of training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from train.evaluation.embed import Batches, DistinctSentences, Encode
from train.evaluation.tasks.sts import StsTask


class PairScorer:
    """Spearman of tasks: the sentences are tokenised and sorted once, and encoded at every call."""

    def __init__(
        self,
        tasks: Iterable[StsTask],
        tokenizer: Any,
        max_length: int | None = None,
        batch_tokens: int | None = None,
        device: str | torch.device = "cpu",
        prepared: Callable[[Sequence[str]], Sequence[str]] = list,
    ) -> None:
        """prepared: maps texts to the texts that are tokenised, as `Modules.prepared` does."""
        self.tasks: Sequence[StsTask] = list(tasks)
        distinct = DistinctSentences()
        self._rows = [(distinct.add(task.first), distinct.add(task.second)) for task in self.tasks]
        self._batches = Batches(prepared(distinct.texts), tokenizer, max_length, batch_tokens, device)

    def __call__(self, encode: Encode, threads: int | None = 1) -> dict[str, float]:
        """Spearman over all pairs, by task name; NaN if the encoder gives every pair the same similarity.

        encode: a padded batch {"input_ids", "attention_mask", ...} of int64 (B, L) -> embeddings (B, D). It is called
        in inference mode; the caller puts the model into eval mode. On the CPU, `threads` batches are encoded at once
        (None: as many as PyTorch has threads), which must be 1 if `encode` communicates with other ranks.
        """
        embeddings = self._batches.embed(encode, threads).cpu().numpy()
        return {
            task.name: task.correlations(task.similarity(embeddings, rows)).spearman["all"]
            for task, rows in zip(self.tasks, self._rows, strict=True)
        }
