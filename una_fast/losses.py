"""Losses as functions of embeddings. They need no model and no process group.

Each loss accepts `views`, float (V, B, D): the embeddings of B sentences in V views. The views are the anchors a, the
positives p and, on steps with negatives, the negatives n. `pairs` and `decoupled` also need n', the same negatives
under another dropout mask. s(x, y) is the cosine of two embeddings divided by the temperature. Each loss returns a
scalar tensor: the mean over all rows (`pairs`, `decoupled`) or over the anchors (all others). It raises InputError for
a wrong number of views, or for a temperature that is not above 0.

The two distillations accept `start`, float (1 or 2, B, D), instead of a temperature. `start` contains the embeddings of
the same anchors and, on steps with negatives, of the same negatives, by the encoder before training. They are computed
without dropout and without gradients.

Letters: V views, B sentences, D width, R = V * B rows. A row is the embedding of one sentence in one view.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from una_fast.errors import InputError


def pairs(views: Tensor, temperature: float) -> Tensor:
    """Return the mean over all rows r of -ln(exp(s(r, partner)) / sum of exp(s(r, k)) over all rows k other than r).

    The partner of a is p, and the partner of n is n'. So negatives are candidates for the anchors, and each negative is
    also a row with a partner. This is the loss of the UNA authors' code. V = 2 or 4.
    """
    _check("pairs", views, (2, 4), temperature)
    similarity = _all_against_all(views, temperature)  # (R, R)
    return functional.cross_entropy(similarity, _partners(views))


def decoupled(views: Tensor, temperature: float) -> Tensor:
    """Return equation 1 of the UNA paper as printed: `pairs` without the partner in the sum over k. V = 2 or 4.

    A batch of one pair has no other rows, so its loss is 0.
    """
    _check("decoupled", views, (2, 4), temperature)
    similarity = _all_against_all(views, temperature)  # (R, R)
    if len(similarity) == 2:
        return views.sum() * 0.0
    partners = _partners(views)
    positive = similarity.gather(1, partners[:, None])  # (R, 1)
    candidates = similarity.scatter(1, partners[:, None], -torch.inf)  # (R, R)
    return (candidates.logsumexp(1) - positive[:, 0]).mean()


# how often a step encodes each negative for this loss; once for a loss without this attribute
pairs.negative_views = decoupled.negative_views = 2  # type: ignore[attr-defined]


def triplet(views: Tensor, temperature: float) -> Tensor:
    """Return the mean over the anchors a of -ln(exp(s(a, p)) / sum of exp(s(a, k)) over all p and n of the batch).

    V = 2 or 3.
    """
    _check("triplet", views, (2, 3), temperature)
    unit = functional.normalize(views, dim=-1)  # (V, B, D)
    similarity = unit[0] @ unit[1:].flatten(0, 1).T / temperature  # (B, (V - 1) B)
    return functional.cross_entropy(similarity, torch.arange(len(similarity), device=views.device))


def simcse(views: Tensor, temperature: float) -> Tensor:
    """Return `triplet` without negatives, which is equation 1 of SimCSE (Gao et al. 2021). V = 2."""
    _check("simcse", views, (2,), temperature)
    return triplet(views, temperature)


simcse.negative_views = 0  # type: ignore[attr-defined]


def margin(views: Tensor, temperature: float, least: float = 0.1, most: float = 0.3) -> Tensor:
    """Return the mean over the anchors a of max(0, d + least) + max(0, -d - most), where d = cos(a, n) - cos(a, p).

    It is 0 while cos(a, n) is `least` to `most` below cos(a, p). So it pushes a near-copy away, but not far. It is the
    bidirectional margin of SNCSE (Wang et al. 2022, arXiv:2201.05979) with the bounds of that paper. It ignores the
    temperature, and is 0 without negatives. V = 2 or 3.
    """
    _check("margin", views, (2, 3), temperature)
    if len(views) == 2:
        return views.sum() * 0.0
    positive, negative = functional.cosine_similarity(views[:1], views[1:3], dim=-1)  # (B,) each
    d = negative - positive
    return (functional.relu(d + least) + functional.relu(-d - most)).mean()


def soft(views: Tensor, temperature: float, weight: float = 1e-3, least: float = 0.1, most: float = 0.3) -> Tensor:
    """Return `simcse` + weight * `margin`. Negatives enter only the margin, not the softmax. V = 2 or 3.

    This is the loss of SNCSE (Wang et al. 2022) with the weight and bounds of that paper.
    """
    return simcse(views[:2], temperature) + weight * margin(views, temperature, least, most)


def similarity_distillation(views: Tensor, start: Tensor) -> Tensor:
    """Return the mean squared change, relative to `start`, of the cosines between all anchors of a step.

    As a loss it preserves the similarities of texts that are not near-copies. It is 0 for a single anchor.
    """
    now, before = (functional.normalize(part[0], dim=-1) for part in (views, start))  # (B, D)
    n = len(now)
    if n == 1:
        return views.sum() * 0.0
    change = now @ now.T - before @ before.T  # (B, B)
    others = change.flatten()[1:].view(n - 1, n + 1)[:, :n].flatten()  # (B (B - 1),), without the diagonal
    return others.square().mean()


def neighbour_distillation(views: Tensor, start: Tensor) -> Tensor:
    """Return the mean squared change, relative to `start`, of the cosines between anchors i and i + B / 2."""
    now, before = (functional.cosine_similarity(*part[0].unflatten(0, (2, -1))) for part in (views, start))  # (B / 2,)
    return (now - before).square().mean()


def _check(loss: str, views: Tensor, allowed: tuple[int, ...], temperature: float) -> None:
    if views.ndim != 3 or len(views) not in allowed:
        allowed_counts = " or ".join(map(str, allowed))
        raise InputError(
            f"{loss} accepts {allowed_counts} views, as (views, sentences, width), but got shape {tuple(views.shape)}"
        )
    if not temperature > 0:
        raise InputError(f"temperature={temperature}: must be above 0; the paper uses 0.05")


def _all_against_all(views: Tensor, temperature: float) -> Tensor:
    """Return the similarities of all rows, (R, R). Row v * B + i is view v of sentence i. The diagonal is -inf."""
    unit = functional.normalize(views.flatten(0, 1), dim=-1)  # (R, D)
    similarity = unit @ unit.T / temperature  # (R, R)
    itself = torch.eye(len(similarity), dtype=torch.bool, device=views.device)
    return similarity.masked_fill(itself, -torch.inf)


def _partners(views: Tensor) -> Tensor:
    """Return the number of each row's partner, int64 (R,): views 0 and 1 are partners, and so are 2 and 3."""
    n_views, n_sentences = views.shape[:2]
    rows = torch.arange(n_views * n_sentences, device=views.device).view(n_views // 2, 2, n_sentences)
    return rows.flip(1).flatten()
