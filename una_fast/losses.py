"""Contrastive losses as functions of embeddings; they need no model and no process group.

All take `views`, float (V, B, D): the embeddings of B sentences in V views, in this order: anchors a, positives p
and, on steps with negatives, n (and n', the same text under another dropout mask). All return a scalar tensor: the mean
over all rows (`pairs`, `decoupled`) or over the anchors (`triplet`, `simcse`). s(x, y) is the cosine of two embeddings
divided by the temperature. Another number of views than a loss takes, or a temperature that is not above 0, raises
InputError.

Letters: V views, B sentences, D width, R = V * B rows.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from una_fast.errors import InputError


def pairs(views: Tensor, temperature: float) -> Tensor:
    """Mean over all rows r of -ln(exp(s(r, partner)) / sum of exp(s(r, k)) over all rows k other than r).

    The partners are a and p, n and n'. So a negative is a candidate for the anchors, and also a row with a partner of
    its own. This is the loss of the UNA authors' code. views: V = 2 or 4.
    """
    _check("pairs", views, (2, 4), temperature)
    similarity = _all_against_all(views, temperature)  # (R, R)
    return functional.cross_entropy(similarity, _partners(views))


def decoupled(views: Tensor, temperature: float) -> Tensor:
    """Equation 1 of the UNA paper as printed: `pairs` without the partner in the sum over k. V = 2 or 4.

    A batch of one pair has no other rows; its loss is 0.
    """
    _check("decoupled", views, (2, 4), temperature)
    similarity = _all_against_all(views, temperature)  # (R, R)
    if len(similarity) == 2:
        return views.sum() * 0.0
    partners = _partners(views)
    positive = similarity.gather(1, partners[:, None])  # (R, 1)
    candidates = similarity.scatter(1, partners[:, None], -torch.inf)  # (R, R)
    return (candidates.logsumexp(1) - positive[:, 0]).mean()


def triplet(views: Tensor, temperature: float) -> Tensor:
    """Mean over the anchors of -ln(exp(s(a, p)) / sum of exp(s(a, k)) over all p and n of the batch). V = 2 or 3."""
    _check("triplet", views, (2, 3), temperature)
    unit = functional.normalize(views, dim=-1)  # (V, B, D)
    similarity = unit[0] @ unit[1:].flatten(0, 1).T / temperature  # (B, (V - 1) B)
    return functional.cross_entropy(similarity, torch.arange(len(similarity), device=views.device))


def simcse(views: Tensor, temperature: float) -> Tensor:
    """`triplet` without negatives: equation 1 of SimCSE (Gao et al. 2021). V = 2."""
    _check("simcse", views, (2,), temperature)
    return triplet(views, temperature)


VIEWS = {
    2: "anchors and positives",
    3: "anchors, positives and negatives",
    4: "anchors, positives, negatives and the negatives again under another dropout mask",
}


def _check(loss: str, views: Tensor, allowed: tuple[int, ...], temperature: float) -> None:
    if views.ndim != 3 or len(views) not in allowed:
        taken = ", or ".join(f"{n} ({VIEWS[n]})" for n in allowed)
        raise InputError(
            f"{loss} takes embeddings (views, sentences, width) with {taken} as the number of views, and got shape "
            f"{tuple(views.shape)}"
        )
    if not temperature > 0:
        raise InputError(f"temperature={temperature}: must be above 0; the paper takes 0.05")


def _all_against_all(views: Tensor, temperature: float) -> Tensor:
    """Similarities of all rows (R, R); row v * B + i is view v of sentence i. The diagonal is -inf."""
    unit = functional.normalize(views.flatten(0, 1), dim=-1)  # (R, D)
    similarity = unit @ unit.T / temperature  # (R, R)
    itself = torch.eye(len(similarity), dtype=torch.bool, device=views.device)
    return similarity.masked_fill(itself, -torch.inf)


def _partners(views: Tensor) -> Tensor:
    """int64 (R,), the number of each row's partner: views 0 and 1 are partners, and so are 2 and 3."""
    n_views, n_sentences = views.shape[:2]
    rows = torch.arange(n_views * n_sentences, device=views.device).view(n_views // 2, 2, n_sentences)
    return rows.flip(1).flatten()
