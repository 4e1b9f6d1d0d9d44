"""Windows of candidates by distance in score, an alternative to windows of `radius` ranks."""

from __future__ import annotations

import numpy as np

from una_fast._kernels import csr
from una_fast.arrays import ID


def score_windows(scores: np.ndarray, distance: float) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the terms whose score differs from a term's by at most `distance`, and at least of its next ranks.

    Without the next ranks, the one above and the one below, a term far from all others would have no candidate.

    Args:
        scores: float64 (V,), never increasing.
        distance: in the unit of tf-idf.

    Returns:
        start, stop: int32 (V,); the candidates of term i are the ids ``start[i] .. stop[i] - 1``, i among them.

    """
    start, stop = np.empty((2, len(scores)), dtype=ID)
    csr.score_windows(scores, distance, start, stop)
    ids = np.arange(len(scores), dtype=ID)
    return np.minimum(start, np.maximum(ids - 1, 0)), np.maximum(stop, np.minimum(ids + 2, len(scores)))
