"""Noises on the embeddings of a step, before its loss: the functions that --noise names, and how a run applies one.

interpolation, extrapolation, linear and gaussian are the augmentations of MODALS (Cheung and Yeung 2021,
https://openreview.net/forum?id=XjYgR6gbCEc, section 3), which takes partners and statistics from the examples of a
sentence's class. Without labels, that is the whole step. pca_jitter is the PCA jittering of EfficientCL (Ye, Kim and Oh
2021, https://arxiv.org/abs/2109.05941, section 3.2) after Krizhevsky, Sutskever and Hinton 2012.

Each function gives embeddings (B, D) from embeddings z (B, D), B >= 2. pool: the same embeddings without gradients,
from which partners and statistics come, as MODALS takes them from stored features. draws: all random numbers, functions
of (seed, epoch, row, position, number) alone. strength: the number of --noise-strength.

Letters: B sentences of a step, D width.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor
from torch.nn import functional

from train.objective.registry import NOISE_VIEWS
from una_fast.augment.counter_rng import CounterRNG
from una_fast.imports import import_object

StepNoise = Callable[[Tensor, int, NDArray[np.int64]], Tensor]  # (views, epoch, rows) -> views, see `noise_on`


def noise_on(name: str, strength: float, view: str, seed: int) -> StepNoise | None:
    """A noise of NOISES on some views of a step, drawn by (seed, epoch, row, view), never by rank; None for "none".

    The function takes the embeddings of the whole step (V, B, D), the epoch and rows int64 (B,) of the index, and gives
    embeddings (V, B, D). A step of one sentence does not change. A view that the step lacks is skipped, as negatives
    are on most steps.
    """
    if name == "none":
        return None
    change = import_object(f"{__name__}:{name.replace('-', '_')}")

    def on_step(views: Tensor, epoch: int, rows: NDArray[np.int64]) -> Tensor:
        if len(rows) < 2:
            return views
        changed = list(views)  # (B, D) each
        for place in (place for place in NOISE_VIEWS[view] if place < len(views)):
            # not the seed of the negatives: with that, the noise would depend on which words are replaced
            key = xxhash.xxh3_64_intdigest(f"noise {name} {place} {seed}".encode())
            changed[place] = change(views[place], views[place].detach(), EmbeddingDraws(key, epoch, rows), strength)
        return torch.stack(changed)

    return on_step


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


def pca_jitter(z: Tensor, pool: Tensor, draws: EmbeddingDraws, strength: float) -> Tensor:
    """Along the principal components: z + strength |z| times the sum of a_k l_k p_k, a_k standard normal (EfficientCL).

    p_k and l_k are eigenvectors and eigenvalues of the covariance C of the pool's unit vectors. With a_k = <p_k, e> for
    a standard normal e (D), the sum is C e. This needs no eigenvectors. Their signs, and their directions where
    eigenvalues are equal, are arbitrary, and rounding could change them from one number of ranks to another.
    """
    unit = functional.normalize(pool, dim=1)
    centred = unit - unit.mean(0)  # (B, D)
    jitter = normals_like(z, draws) @ centred.T @ centred / (len(pool) - 1)  # (B, D), rows C e
    return z + strength * z.norm(dim=1, keepdim=True) * jitter


class EmbeddingDraws(CounterRNG):
    """Random numbers for the sentences of a step: for embeddings, and for pairs of sentences. rows: int64 (B,)."""

    def normals(self, width: int) -> NDArray[np.float32]:
        """float32 (B, width): independent standard normal draws, by the inverse of the distribution function."""
        uniform = ((self.bits(width) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52  # inside (0, 1)
        return ndtri(uniform).astype(np.float32)

    def pairs(self) -> NDArray[np.int64]:
        """int64 (B, 2): for each row the places of two distinct rows of the step, all pairs equally likely. B >= 2.

        They are drawn among the rows in ascending order, so a row's pair does not depend on the order of the batch.
        """
        n = len(self.rows)
        first = self.below(n, 1, 0)[:, 0]
        second = self.below(n - 1, 1, 1)[:, 0]
        second += second >= first
        return np.argsort(self.rows)[np.stack([first, second], axis=1)]


def normals_like(z: Tensor, draws: EmbeddingDraws) -> Tensor:
    """Standard normal draws for embeddings (B, D), of their dtype and on their device."""
    return on_device(draws.normals(z.shape[1]), z).to(z.dtype)


def on_device(array: NDArray, like: Tensor) -> Tensor:
    """The array as a tensor on the device of `like`; the copy to a GPU is asynchronous."""
    tensor = torch.from_numpy(array)
    return tensor if like.device.type == "cpu" else tensor.pin_memory().to(like.device, non_blocking=True)
