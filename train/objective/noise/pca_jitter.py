"""PCA jittering, as EfficientCL applies it (Ye, Kim and Oh 2021, https://arxiv.org/abs/2109.05941, section 3.2) after
Krizhevsky, Sutskever and Hinton 2012.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from train.objective.draws import EmbeddingDraws, normals_like


def pca_jitter(z: Tensor, pool: Tensor, draws: EmbeddingDraws, strength: float) -> Tensor:
    """Along the principal components: z + strength |z| times the sum of a_k l_k p_k, a_k standard normal.

    z: embeddings (B, D), B >= 2; pool: the same without gradients. p_k and l_k are eigenvectors and eigenvalues of the
    covariance C of the pool's unit vectors. With a_k = <p_k, e>, for a standard normal e (D), the sum is C e. This
    needs no eigenvectors. Their signs, and their directions where eigenvalues are equal, are arbitrary, and rounding
    could change them from one number of ranks to another.
    """
    unit = functional.normalize(pool, dim=1)
    centred = unit - unit.mean(0)  # (B, D)
    jitter = normals_like(z, draws) @ centred.T @ centred / (len(pool) - 1)  # (B, D), rows C e
    return z + strength * z.norm(dim=1, keepdim=True) * jitter
