"""The cosines of a step's views, which a run writes into metrics.jsonl."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def cosines(views: Tensor) -> Tensor:
    """Float (1 or 2, B): the cosine of each anchor with its positive and, where there is one, with its negative."""
    return functional.cosine_similarity(views[:1], views[1:3], dim=-1)
