"""The noises on embeddings by name, and how one of them becomes part of a run.

A new noise is a function in a file of its own, a row of NOISES and its name in `train.config.groups.NoiseName`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from torch import Tensor

from train.config.run import Run
from train.objective.draws import Draws
from train.objective.noise.modals import extrapolation, gaussian, interpolation, linear
from train.objective.noise.pca_jitter import pca_jitter

NOISES: dict[str, Callable[[Tensor, Tensor, Draws, float], Tensor]] = {
    "gaussian": gaussian,
    "interpolation": interpolation,
    "extrapolation": extrapolation,
    "linear": linear,
    "pca-jitter": pca_jitter,
}
VIEWS = {"anchor": (0,), "positive": (1,), "negative": (2, 3), "all": (0, 1, 2, 3)}  # places among the views of a loss


@dataclass(frozen=True)
class EmbeddingNoise:
    """A noise on some views of a step, drawn by (seed, epoch, row, view); for `train.steps.trainer.Trainer`."""

    name: str
    strength: float
    view: str
    seed: int

    def __call__(self, views: Tensor, epoch: int, rows: NDArray[np.int64]) -> Tensor:
        """Embeddings (V, B, D) from those of the whole step. rows: int64 (B,); a step of one sentence stays as it is.

        A view that the step does not have is passed over, as negatives are on most steps.
        """
        if len(rows) < 2:
            return views
        chosen = VIEWS[self.view]
        return torch.stack([self._change(z, v, epoch, rows) if v in chosen else z for v, z in enumerate(views)])

    def _change(self, z: Tensor, view: int, epoch: int, rows: NDArray[np.int64]) -> Tensor:
        # a seed of its own: with that of the negatives, the words replaced would decide the noise
        seed = xxhash.xxh3_64_intdigest(f"noise {self.name} {view} {self.seed}".encode())
        return NOISES[self.name](z, z.detach(), Draws(seed, epoch, rows), self.strength)


def noise_of(run: Run) -> EmbeddingNoise | None:
    """The noise that a run asks for."""
    return None if run.noise == "none" else EmbeddingNoise(run.noise, run.noise_strength, run.noise_view, run.seed)
