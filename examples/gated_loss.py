"""A custom loss that uses the initial encoder's embeddings: `triplet` with a gate, after GCSE.

    python -m train.ddp ... --loss gated_loss:gated                             # in the folder of this file

It did not help in any of our runs (docs/appendix/evidence.md), but shows what a custom loss receives.
GCSE: Lai et al. 2024, arXiv:2409.12887.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

SIGMA = 0.17  # the value in GCSE's code for BERT


def gated(views: Tensor, temperature: float, start: Tensor) -> Tensor:
    """Return `triplet`, but negatives that are not closer to their anchor than before training count less.

    Let s be the cosine of an anchor and its own negative, divided by the temperature, and b the value of s before
    training. The softmax receives s if s > b, else s (1 - exp(-(s - b)^2 / (2 SIGMA^2))).

    Args:
        views: the embeddings of B anchors, their positives and, on steps with negatives, their negatives: float (2 or
            3, B, width).
        temperature: divides the cosines.
        start: the embeddings of the same anchors and negatives by the initial encoder, without gradients: float (1 or
            2, B, width).
    """
    unit = functional.normalize(views, dim=-1)  # (V, B, width), with V = 2 or 3
    similarity = unit[0] @ unit[1:].flatten(0, 1).T / temperature  # (B, (V - 1) B)
    n = len(similarity)
    if len(views) == 3:
        before = functional.cosine_similarity(start[0], start[1], dim=-1) / temperature  # (B,)
        own = similarity[:, n:].diagonal()  # (B,)
        damped = own * (1 - torch.exp(-((own - before) ** 2) / (2 * SIGMA**2)))
        similarity = similarity + functional.pad(torch.diag((damped - own).where(own <= before, 0.0)), (n, 0))
    return functional.cross_entropy(similarity, torch.arange(n, device=views.device))
