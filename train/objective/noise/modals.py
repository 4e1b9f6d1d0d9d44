"""The four augmentations of MODALS (Cheung and Yeung 2021, https://openreview.net/forum?id=XjYgR6gbCEc, section 3).

MODALS takes partners and statistics from the examples of a sentence's class. Without labels, that is the whole step.
Each function gives embeddings (B, D) from embeddings z (B, D). pool: the same embeddings without gradients, from which
partners and statistics come, as MODALS takes them from stored features. B >= 2.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from train.objective.draws import EmbeddingDraws, normals_like, on_device


def interpolation(z: Tensor, pool: Tensor, draws: EmbeddingDraws, strength: float) -> Tensor:
    """Towards the hard example q, the other sentence of the step with the highest cosine: z + strength (q - z).

    In a contrastive loss every other sentence is a negative, and the nearest one is the hardest.
    """
    unit = functional.normalize(pool, dim=1)  # (B, D)
    nearest = (unit @ unit.T).fill_diagonal_(-torch.inf).argmax(1)  # (B,)
    return z + strength * (pool[nearest] - z)


def extrapolation(z: Tensor, pool: Tensor, draws: EmbeddingDraws, strength: float) -> Tensor:
    """Away from the mean m of the step: z + strength (z - m)."""
    return z + strength * (z - pool.mean(0))


def linear(z: Tensor, pool: Tensor, draws: EmbeddingDraws, strength: float) -> Tensor:
    """Along the difference of two random sentences x and y of the step: z + strength (x - y)."""
    x, y = pool[on_device(draws.pairs(), pool)].unbind(1)  # (B, D) each
    return z + strength * (x - y)


def gaussian(z: Tensor, pool: Tensor, draws: EmbeddingDraws, strength: float) -> Tensor:
    """Gaussian noise: z + strength s e, e standard normal, s the standard deviation of each dimension over the step."""
    return z + strength * pool.std(0) * normals_like(z, draws)
