"""A noise of `train.objective.registry` on the embeddings of a whole step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from torch import Tensor

from train.objective.draws import EmbeddingDraws
from train.objective.registry import NOISE_VIEWS, NOISES


@dataclass(frozen=True)
class EmbeddingNoise:
    """A noise on some views of a step, drawn by (seed, epoch, row, view); for `train.steps.trainer.Trainer`."""

    name: str
    strength: float
    view: str
    seed: int

    def __call__(self, views: Tensor, epoch: int, rows: NDArray[np.int64]) -> Tensor:
        """Embeddings (V, B, D) with noise from those of the whole step. rows: int64 (B,), of the index.

        A step of one sentence does not change. A view that the step lacks is skipped, as negatives are on most steps.
        """
        if len(rows) < 2:
            return views
        chosen = NOISE_VIEWS[self.view]
        return torch.stack([self._change(z, v, epoch, rows) if v in chosen else z for v, z in enumerate(views)])

    def _change(self, z: Tensor, view: int, epoch: int, rows: NDArray[np.int64]) -> Tensor:
        # not the seed of the negatives: with that, the noise would depend on which words are replaced
        seed = xxhash.xxh3_64_intdigest(f"noise {self.name} {view} {self.seed}".encode())
        return NOISES[self.name].load()(z, z.detach(), EmbeddingDraws(seed, epoch, rows), self.strength)
