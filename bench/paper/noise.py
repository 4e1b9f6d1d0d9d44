"""The augmentations of embeddings in the paper's table A3, as losses: `--loss bench.paper.noise:NAME`.

Each loss changes the positives of a step and compares them with the anchors by `una_fast.losses.pairs`. interpolation,
extrapolation, linear and gaussian are from MODALS (Cheung and Yeung 2021, https://openreview.net/forum?id=XjYgR6gbCEc,
section 3). MODALS draws partners and statistics from the examples of a sentence's class; here, without labels, the
class is the whole step. pca_jitter is from EfficientCL (Ye, Kim and Oh 2021, https://arxiv.org/abs/2109.05941,
section 3.2). The paper states no strength. MODALS searches it in [0, 1]; EfficientCL raises it from 0.01 to 0.1.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional

from una_fast.losses import pairs

STRENGTH = 0.1


def _as_loss(change: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """Make a loss from a function that returns how to change the positives.

    The loss adds STRENGTH * change(z, pool) to the positives z, (n_sentences, width). pool is z without gradients.
    """

    def loss(views: Tensor, temperature: float = 0.05) -> Tensor:
        z = views[1]
        moved = z + STRENGTH * change(z, z.detach()) if len(z) > 1 else z
        return pairs(torch.stack([views[0], moved]), temperature)

    loss.__doc__ = change.__doc__
    return loss


def _normals(like: Tensor, columns: int) -> Tensor:
    """Draw standard normal numbers, (len(like), columns), the same on all ranks. Each step seeds the generator."""
    draws = like.new_empty(len(like), columns).normal_()
    if dist.is_initialized():
        dist.broadcast(draws, 0)
    return draws


@_as_loss
def interpolation(z: Tensor, pool: Tensor) -> Tensor:
    """Move towards the other sentence of the step with the highest cosine, which is the hardest example."""
    unit = functional.normalize(pool)
    return pool[(unit @ unit.T).fill_diagonal_(-torch.inf).argmax(1)] - z


@_as_loss
def extrapolation(z: Tensor, pool: Tensor) -> Tensor:
    """Move away from the mean of the step."""
    return z - pool.mean(0)


@_as_loss
def linear(z: Tensor, pool: Tensor) -> Tensor:
    """Move along the difference of two random sentences of the step."""
    first, second = pool[_normals(z, len(z)).topk(2).indices].unbind(1)  # both (n_sentences, width)
    return first - second


@_as_loss
def gaussian(z: Tensor, pool: Tensor) -> Tensor:
    """Add normal noise with the standard deviation of each dimension over the step."""
    return pool.std(0) * _normals(z, z.shape[1])


@_as_loss
def pca_jitter(z: Tensor, pool: Tensor) -> Tensor:
    """Move along the principal components: by |z| times the sum of a_k l_k p_k, with a_k standard normal.

    p_k and l_k are eigenvectors and eigenvalues of the covariance C of the pool's unit vectors. With a_k = <p_k, e> for
    a standard normal e, the sum is C e.
    """
    centred = functional.normalize(pool) - functional.normalize(pool).mean(0)  # (n_sentences, width)
    jitter = _normals(z, z.shape[1]) @ centred.T @ centred / (len(z) - 1)  # (n_sentences, width)
    return z.norm(dim=1, keepdim=True) * jitter
