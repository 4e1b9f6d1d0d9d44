"""The space of embeddings: whitening, alignment and uniformity. Shapes: n sentences, D width."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

ALIGNMENT_SCORE = 4.0  # pairs scored at least this are positives, as in SimCSE's figure of STS-B


def whiten(embeddings: NDArray, rows: NDArray) -> NDArray[np.float64]:
    """Embeddings (n, D), transformed: the embeddings of `rows` have mean 0 and identity covariance (BERT-whitening).

    rows: int64 (m,), one entry per occurrence of a sentence. Directions without variance become 0.
    """
    sample = embeddings[rows].astype(np.float64)
    mean = sample.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(sample, rowvar=False, bias=True))  # (D,), (D, D)
    kept = values > values[-1] * 1e-10
    scale = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1)), 0)
    return (embeddings - mean) @ (vectors * scale)


def unit_rows(embeddings: NDArray) -> NDArray:
    """Each row divided by its Euclidean norm; a row of zeros stays."""
    norms = np.linalg.norm(embeddings, axis=1, keepdims=True)
    return embeddings / np.where(norms > 0, norms, 1)


def alignment(first: NDArray, second: NDArray) -> float:
    """Mean squared distance of positive pairs on the unit sphere, smaller is better; NaN without pairs.

    first, second: (n, D) of unit rows.
    """
    return float(np.square(first - second).sum(axis=1).mean()) if len(first) else float("nan")


def uniformity(embeddings: NDArray, block: int = 2048) -> float:
    """The logarithm of the mean of exp(-2 d^2) over all pairs of rows; smaller is better.

    embeddings: (n, D) of unit rows. O(n^2 D) time, O(block n) memory.
    """
    rows = torch.from_numpy(np.ascontiguousarray(embeddings, np.float32))
    n = len(rows)
    if n < 2:
        return float("nan")
    total = 0.0
    for start in range(0, n, block):
        # d^2 = 2 - 2 cos, so exp(-2 d^2) = exp(4 cos - 4); a row with itself gives 1, which is subtracted below
        total += float(torch.exp(4 * (rows[start : start + block] @ rows.T) - 4).sum(dtype=torch.float64))
    return float(np.log((total - n) / (n * (n - 1))))
