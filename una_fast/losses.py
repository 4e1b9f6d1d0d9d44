"""Losses as functions of embeddings. They need no model and no process group. Each returns a scalar tensor.

`views` is float (V, B, D): V views of B sentences, as embeddings of width D. ``views[0]`` contains the anchors,
``views[1]`` the positives and, on steps with negatives, ``views[2]`` the negatives. `pairs` and `decoupled` then need
``views[3]``: the same negatives under another dropout mask. The defaults are those of `train.ddp`.

Instead of a temperature, the distillations accept `start`, float (2, B, D): anchors and negatives as the initial
encoder embeds them, which the caller computes without dropout and gradients. Only `negative_distillation` uses
``start[1]``.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from una_fast.errors import InputError


def pairs(views: Tensor, temperature: float = 0.05) -> Tensor:
    """Return the contrastive loss of the UNA authors' code, which pulls each row towards its partner.

    A row is the embedding of one sentence in one view. An anchor and its positive are partners, and so are the two rows
    of a negative. s(r, k) is the cosine of rows r and k divided by the temperature. With the partner p of row r, the
    loss is the mean over all r of -ln(exp(s(r, p)) / sum of exp(s(r, k)) over all k except r).

    Args:
        views: float (V, B, D): anchors, positives and, if V = 4, the negatives under two dropout masks.
        temperature: divides the cosines; above 0.

    Returns:
        The loss, a scalar of the dtype of `views`.

    Raises:
        InputError: a wrong number of views, or a temperature that is not above 0.
    """
    _check("pairs", views, (2, 4), temperature)
    return functional.cross_entropy(_all_against_all(views, temperature), _partners(views))


def decoupled(views: Tensor, temperature: float = 0.05) -> Tensor:
    """Return the contrastive loss of the UNA paper, equation 1. It is `pairs` without the partner in the denominator.

    An anchor and its positive are partners, and so are the two embeddings of a negative. With the partner p of r, and
    s(r, k) = cos(r, k) / temperature, the loss is the mean over all embeddings r of
    -ln(exp(s(r, p)) / sum of exp(s(r, k)) over all k except r and p). The loss of a single sentence without
    negatives is 0.

    Args:
        views: float (V, B, D): anchors, positives and, if V = 4, the negatives under two dropout masks.
        temperature: divides the cosines; above 0.

    Returns:
        The loss, a scalar of the dtype of `views`.

    Raises:
        InputError: a wrong number of views, or a temperature that is not above 0.
    """
    _check("decoupled", views, (2, 4), temperature)
    similarity = _all_against_all(views, temperature)  # (R, R)
    if len(similarity) == 2:  # the sum is empty
        return views.sum() * 0.0
    partners = _partners(views)
    positive = similarity.gather(1, partners[:, None])  # (R, 1)
    candidates = similarity.scatter(1, partners[:, None], -torch.inf)  # (R, R)
    return (candidates.logsumexp(1) - positive[:, 0]).mean()


# how often a step encodes each negative for this loss; once for a loss without this attribute
pairs.negative_views = decoupled.negative_views = 2  # type: ignore[attr-defined]


def triplet(views: Tensor, temperature: float = 0.05) -> Tensor:
    """Return the contrastive loss of each anchor against all positives and negatives of the batch.

    With the positive p of anchor a, and s(a, k) = cos(a, k) / temperature, the loss is the mean over all a of
    -ln(exp(s(a, p)) / sum over all positives and negatives k of exp(s(a, k))).

    Args:
        views: float (V, B, D): anchors, positives and, if V = 3, negatives.
        temperature: divides the cosines; above 0.

    Returns:
        The loss, a scalar of the dtype of `views`.

    Raises:
        InputError: a wrong number of views, or a temperature that is not above 0.
    """
    _check("triplet", views, (2, 3), temperature)
    unit = functional.normalize(views, dim=-1)  # (V, B, D)
    similarity = unit[0] @ unit[1:].flatten(0, 1).T / temperature  # (B, (V - 1) B)
    return functional.cross_entropy(similarity, torch.arange(len(similarity), device=views.device))


def simcse(views: Tensor, temperature: float = 0.05) -> Tensor:
    """Return SimCSE's loss (Gao et al. 2021, eq. 1), which is `triplet` without negatives.

    Args:
        views: float (2, B, D): anchors and positives.
        temperature: divides the cosines; above 0.

    Returns:
        The loss, a scalar of the dtype of `views`.

    Raises:
        InputError: a wrong number of views, or a temperature that is not above 0.
    """
    _check("simcse", views, (2,), temperature)
    return triplet(views, temperature)


simcse.negative_views = 0  # type: ignore[attr-defined]


def margin(views: Tensor, least: float = 0.1, most: float = 0.3) -> Tensor:
    """Return the bidirectional margin loss of SNCSE. It pushes a negative away from its anchor, but not far.

    With d = cos(anchor, negative) - cos(anchor, positive), the loss is the mean over all anchors of
    max(0, d + least) + max(0, -d - most). So an anchor contributes 0 if cos(anchor, negative) is lower than
    cos(anchor, positive) by `least` to `most`. The default bounds are those of the SNCSE paper (Wang et al. 2022,
    arXiv:2201.05979). The loss is 0 without negatives.

    Args:
        views: float (V, B, D): anchors, positives and, if V = 3, negatives.
        least: the smallest difference of the two cosines that costs nothing.
        most: the largest difference that costs nothing.

    Returns:
        The loss, a scalar of the dtype of `views`.

    Raises:
        InputError: a wrong number of views.
    """
    _check("margin", views, (2, 3))
    if len(views) == 2:
        return views.sum() * 0.0
    positive, negative = functional.cosine_similarity(views[:1], views[1:3], dim=-1)  # (B,) each
    d = negative - positive
    return (functional.relu(d + least) + functional.relu(-d - most)).mean()


def soft(
    views: Tensor, temperature: float = 0.05, weight: float = 1e-3, least: float = 0.1, most: float = 0.3
) -> Tensor:
    """Return the loss of SNCSE (Wang et al. 2022): `simcse` + weight * `margin`. Negatives enter only the margin.

    Args:
        views: float (V, B, D): anchors, positives and, if V = 3, negatives.
        temperature: of `simcse`; above 0.
        weight: of the margin.
        least: as in `margin`.
        most: as in `margin`.

    Returns:
        The loss, a scalar of the dtype of `views`.

    Raises:
        InputError: a wrong number of views, or a temperature that is not above 0.
    """
    return simcse(views[:2], temperature) + weight * margin(views, least, most)


def similarity_distillation(views: Tensor, start: Tensor) -> Tensor:
    """Return how much training has changed the cosines between the sentences of a batch, as a mean square.

    With the embeddings a = ``views[0]``, and the initial encoder's b = ``start[0]``, the loss is the mean of
    (cos(a_i, a_j) - cos(b_i, b_j))^2 over all pairs of different sentences i, j, or 0 for a single sentence.

    Args:
        views: float (V, B, D). Only the anchors are used.
        start: float (1 or 2, B, D), without gradients. Only the anchors are used.

    Returns:
        The loss, a scalar of the dtype of `views`.
    """
    now, before = (functional.normalize(part[0], dim=-1) for part in (views, start))  # (B, D)
    n = len(now)
    if n == 1:
        return views.sum() * 0.0
    change = now @ now.T - before @ before.T  # (B, B)
    others = change.flatten()[1:].view(n - 1, n + 1)[:, :n].flatten()  # (B (B - 1),), without the diagonal
    return others.square().mean()


def neighbour_distillation(views: Tensor, start: Tensor) -> Tensor:
    """Return how much training has changed the cosines of sentences with their neighbours, as a mean square.

    Sentence i of the first half of the batch and sentence j = i + B / 2 must be neighbours. With the embeddings
    a = ``views[0]``, and the initial encoder's b = ``start[0]``, the loss is the mean of
    (cos(a_i, a_j) - cos(b_i, b_j))^2 over all i < B / 2.

    Args:
        views: float (V, B, D), where B is even. Only the anchors are used.
        start: float (1 or 2, B, D), without gradients. Only the anchors are used.

    Returns:
        The loss, a scalar of the dtype of `views`.
    """
    now, before = (functional.cosine_similarity(*part[0].unflatten(0, (2, -1))) for part in (views, start))  # (B / 2,)
    return (now - before).square().mean()


def negative_distillation(views: Tensor, start: Tensor, below: float = 0.5) -> Tensor:
    """Return how much training has changed the cosines of negatives with unrelated sentences, as a mean square.

    With the anchors a and negatives n of `views`, and the initial encoder's b and m of `start`, the sentences i and j
    are unrelated if cos(b_i, b_j) < below. The loss is the mean over all such pairs of
    (cos(n_i, a_j) - cos(m_i, b_j))^2 and (cos(n_i, n_j) - cos(m_i, m_j))^2, and 0 without negatives. Otherwise edited
    sentences drift into one direction, and a search with a negated query finds all negated passages.

    Args:
        views: float (V, B, D): anchors, positives and, if V > 2, negatives.
        start: float (2, B, D): anchors and negatives, without gradients.
        below: the cosine below which two sentences are unrelated.

    Returns:
        The loss, a scalar of the dtype of `views`.
    """
    if len(views) == 2:
        return views.sum() * 0.0
    (a, n), (b, m) = (functional.normalize(part, dim=-1) for part in (views[0::2][:2], start))  # (B, D) each
    unrelated = b @ b.T < below  # (B, B); False on the diagonal
    change = (n @ a.T - m @ b.T).square() + (n @ n.T - m @ m.T).square()
    # indexing by `unrelated` would wait for a GPU
    loss: Tensor = (change * unrelated).sum() / (2 * unrelated.sum()).clamp(min=1)
    return loss


def _check(loss: str, views: Tensor, allowed: tuple[int, ...], temperature: float = 1.0) -> None:
    if views.ndim != 3 or len(views) not in allowed:
        counts, shape = " or ".join(map(str, allowed)), tuple(views.shape)
        raise InputError(f"{loss} accepts {counts} views, as (views, sentences, width), but got shape {shape}")
    if not temperature > 0:
        raise InputError(f"temperature={temperature}: must be above 0; the paper uses 0.05")


def _all_against_all(views: Tensor, temperature: float) -> Tensor:
    """Return the cosines of all pairs of rows, divided by the temperature: (R, R), -inf on the diagonal. R = V * B."""
    unit = functional.normalize(views.flatten(0, 1), dim=-1)  # (R, D); row v * B + i is sentence i in view v
    similarity = unit @ unit.T / temperature  # (R, R)
    itself = torch.eye(len(similarity), dtype=torch.bool, device=views.device)
    return similarity.masked_fill(itself, -torch.inf)


def _partners(views: Tensor) -> Tensor:
    """Return each row's partner, int64 (R,). A sentence's views 0 and 1 are partners, and so are its views 2 and 3."""
    n_views, n_sentences = views.shape[:2]
    rows = torch.arange(n_views * n_sentences, device=views.device).view(n_views // 2, 2, n_sentences)
    return rows.flip(1).flatten()
