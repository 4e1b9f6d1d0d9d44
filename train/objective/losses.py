"""The losses that `--loss` names, how many views of a negative each takes, and what a run tells of its embeddings."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional

from una_fast.losses import decoupled, pairs, simcse, triplet

LOSSES: dict[str, Callable[[Tensor, float], Tensor]] = {
    "pairs": pairs,
    "triplet": triplet,
    "simcse": simcse,
    "decoupled": decoupled,
}
NEGATIVE_VIEWS = {
    "pairs": 2,
    "triplet": 1,
    "simcse": 0,
    "decoupled": 2,
}  # views of a negative that each loss takes


def cosines(views: Tensor) -> Tensor:
    """Float (1 or 2, B): the cosine of each anchor with its positive and, where there is one, with its negative."""
    return functional.cosine_similarity(views[:1], views[1:3], dim=-1)
