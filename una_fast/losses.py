"""Contrastive losses as functions of embeddings only; no model, no ranks.

All take `views`, float (V, B, D): the embeddings of B sentences in V views, in this order: anchors a, positives p
and, on steps with negatives, n (and n', the same text under another dropout mask). All return a scalar, the mean over
what each counts as an example. Similarity is the cosine divided by the temperature, as one product of unit vectors.

Letters: V views, B sentences, D width, R = V * B rows.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def pairs(views: Tensor, temperature: float) -> Tensor:
    """All rows against all: each row's target is its partner (a with p, n with n'), every other row a candidate.

    The negatives are candidates of the anchors and anchors of their own pair. views: V = 2 or 4.
    """
    similarity = _all_against_all(views, temperature)  # (R, R)
    return functional.cross_entropy(similarity, _partners(views))


def decoupled(views: Tensor, temperature: float) -> Tensor:
    """Equation 1 as printed: the rows of `pairs`, with the positive left out of the denominator. V = 2 or 4.

    A batch of one pair has no candidates; its loss is 0.
    """
    similarity = _all_against_all(views, temperature)  # (R, R)
    if len(similarity) == 2:
        return views.sum() * 0.0
    partners = _partners(views)
    positive = similarity.gather(1, partners[:, None])  # (R, 1)
    candidates = similarity.scatter(1, partners[:, None], -torch.inf)  # (R, R)
    return (candidates.logsumexp(1) - positive[:, 0]).mean()


def triplet(views: Tensor, temperature: float) -> Tensor:
    """Anchors against all positives and, where there are any, all negatives as extra candidates. V = 2 or 3."""
    unit = functional.normalize(views, dim=-1)  # (V, B, D)
    similarity = unit[0] @ unit[1:].flatten(0, 1).T / temperature  # (B, (V - 1) B)
    return functional.cross_entropy(similarity, torch.arange(len(similarity), device=views.device))


def simcse(views: Tensor, temperature: float) -> Tensor:
    """Anchors against all positives of the batch. V = 2."""
    return triplet(views[:2], temperature)


def _all_against_all(views: Tensor, temperature: float) -> Tensor:
    """Similarities of all rows (R, R), row v * B + i being view v of sentence i; -inf between a row and itself."""
    unit = functional.normalize(views.flatten(0, 1), dim=-1)  # (R, D)
    similarity = unit @ unit.T / temperature  # (R, R)
    itself = torch.eye(len(similarity), dtype=torch.bool, device=views.device)
    return similarity.masked_fill(itself, -torch.inf)


def _partners(views: Tensor) -> Tensor:
    """int64 (R,), the row of each row's other view: views 0 and 1 are partners, and so are 2 and 3."""
    n_views, n_sentences = views.shape[:2]
    rows = torch.arange(n_views * n_sentences, device=views.device).view(n_views // 2, 2, n_sentences)
    return rows.flip(1).flatten()
