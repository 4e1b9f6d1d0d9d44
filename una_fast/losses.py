"""Losses as functions of embeddings. They need no model and no process group.

Each loss accepts `views`, float (V, B, D): the embeddings of B sentences in V views. The views are the anchors, the
positives and, on steps with negatives, the negatives. `pairs` and `decoupled` also need the same negatives again, under
another dropout mask. Each loss returns a scalar tensor. It raises InputError for a wrong number of views, or for a
temperature that is not above 0.

The two distillations are also losses, but accept `start` instead of a temperature. `start`, float (1 or 2, B, D),
contains the initial encoder's embeddings of the same anchors and, on steps with negatives, of the same negatives. The
caller computes them without dropout and without gradients.

Letters: V views, B sentences, D width, R = V * B rows. A row is the embedding of one sentence in one view.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from una_fast.errors import InputError


def pairs(views: Tensor, temperature: float) -> Tensor:
    """Return the mean over all rows r of -ln(exp(s(r, partner of r)) / sum over all rows k != r of exp(s(r, k))).

    A row is one of the V * B embeddings, and s(r, k) is the cosine of two rows divided by the temperature. An anchor
    and its positive are partners. The two embeddings of a negative are partners too. This is the loss of the UNA
    authors' code.

    views: float (V, B, D), for B sentences: anchors, positives and, if V = 4, the negatives under two dropout masks.
    """
    _check("pairs", views, (2, 4), temperature)
    similarity = _all_against_all(views, temperature)  # (R, R)
    return functional.cross_entropy(similarity, _partners(views))


def decoupled(views: Tensor, temperature: float) -> Tensor:
    """Return the mean over all rows r of -ln(exp(s(r, p)) / sum over all rows k except r and p of exp(s(r, k))).

    p is the partner of r. Rows, partners and s are defined in `pairs`, which keeps p in the sum. This is equation 1 of
    the UNA paper as printed. For one sentence without negatives, no row k remains, and the loss is 0.

    views: float (V, B, D), for B sentences: anchors, positives and, if V = 4, the negatives under two dropout masks.
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
    """Return the mean over the anchors a of -ln(exp(s(a, p)) / sum over k of exp(s(a, k))).

    p is the positive of a, and k is each positive and each negative of the batch. s is the cosine divided by the
    temperature.

    views: float (V, B, D), for B sentences: anchors, positives and, if V = 3, negatives.
    """
    _check("triplet", views, (2, 3), temperature)
    unit = functional.normalize(views, dim=-1)  # (V, B, D)
    similarity = unit[0] @ unit[1:].flatten(0, 1).T / temperature  # (B, (V - 1) B)
    return functional.cross_entropy(similarity, torch.arange(len(similarity), device=views.device))


def simcse(views: Tensor, temperature: float) -> Tensor:
    """Return `triplet` without negatives, which is equation 1 of SimCSE (Gao et al. 2021).

    views: float (2, B, D), for B sentences: anchors and positives.
    """
    _check("simcse", views, (2,), temperature)
    return triplet(views, temperature)


simcse.negative_views = 0  # type: ignore[attr-defined]


def margin(views: Tensor, temperature: float, least: float = 0.1, most: float = 0.3) -> Tensor:
    """Return the mean over the anchors a of max(0, d + least) + max(0, -d - most), where d = cos(a, n) - cos(a, p).

    p and n are the positive and the negative of a. An anchor's term is 0 if cos(a, n) is `least` to `most` below
    cos(a, p). So the loss pushes a near-copy away, but not far. It is the bidirectional margin of SNCSE (Wang et al.
    2022, arXiv:2201.05979) with the bounds of that paper. It ignores the temperature, and is 0 without negatives.

    views: float (V, B, D), for B sentences: anchors, positives and, if V = 3, negatives.
    """
    _check("margin", views, (2, 3), temperature)
    if len(views) == 2:
        return views.sum() * 0.0
    positive, negative = functional.cosine_similarity(views[:1], views[1:3], dim=-1)  # (B,) each
    d = negative - positive
    return (functional.relu(d + least) + functional.relu(-d - most)).mean()


def soft(views: Tensor, temperature: float, weight: float = 1e-3, least: float = 0.1, most: float = 0.3) -> Tensor:
    """Return `simcse` + weight * `margin`. Negatives enter only the margin, not the softmax.

    This is the loss of SNCSE (Wang et al. 2022) with the weight and bounds of that paper.

    views: float (V, B, D), for B sentences: anchors, positives and, if V = 3, negatives.
    """
    return simcse(views[:2], temperature) + weight * margin(views, temperature, least, most)


def similarity_distillation(views: Tensor, start: Tensor) -> Tensor:
    """Return the mean of (cos(a_i, a_j) - cos(b_i, b_j))^2 over all pairs of different sentences i, j of a step.

    a_i is the anchor embedding of sentence i, and b_i is its embedding by the encoder before training. As a loss, the
    function preserves the similarities of texts that are not near-copies. It is 0 for a single sentence.

    views: float (V, B, D); ``views[0]`` contains all a_i. start: float (1 or 2, B, D); ``start[0]`` contains all b_i.
    """
    now, before = (functional.normalize(part[0], dim=-1) for part in (views, start))  # (B, D)
    n = len(now)
    if n == 1:
        return views.sum() * 0.0
    change = now @ now.T - before @ before.T  # (B, B)
    others = change.flatten()[1:].view(n - 1, n + 1)[:, :n].flatten()  # (B (B - 1),), without the diagonal
    return others.square().mean()


def neighbour_distillation(views: Tensor, start: Tensor) -> Tensor:
    """Return the mean of (cos(a_i, a_j) - cos(b_i, b_j))^2 over i < B / 2, where j = i + B / 2.

    a_i is the anchor embedding of sentence i, and b_i is its embedding by the encoder before training. Sentence
    i + B / 2 should be a near neighbour of sentence i.

    views: float (V, B, D); ``views[0]`` contains all a_i. start: float (1 or 2, B, D); ``start[0]`` contains all b_i.
    """
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
    """Return the cosines of all V * B rows with each other, divided by the temperature. The diagonal is -inf.

    views: float (V, B, D). Row v * B + i is view v of sentence i. Returns float (V * B, V * B).
    """
    unit = functional.normalize(views.flatten(0, 1), dim=-1)  # (R, D)
    similarity = unit @ unit.T / temperature  # (R, R)
    itself = torch.eye(len(similarity), dtype=torch.bool, device=views.device)
    return similarity.masked_fill(itself, -torch.inf)


def _partners(views: Tensor) -> Tensor:
    """Return the index of each row's partner, int64 (V * B,). Row v * B + i is view v of sentence i.

    Views 0 and 1 of a sentence are partners, and so are views 2 and 3. views: float (V, B, D).
    """
    n_views, n_sentences = views.shape[:2]
    rows = torch.arange(n_views * n_sentences, device=views.device).view(n_views // 2, 2, n_sentences)
    return rows.flip(1).flatten()
