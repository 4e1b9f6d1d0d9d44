"""Cosine similarities of embeddings (n, D), their correlation with gold scores, and whitening."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.floating]


def cosine(first: Floats, second: Floats) -> NDArray[np.float64]:
    """Compute the cosine of each row of `first` with the same row of `second`, (n,).

    As in SentEval, NaN counts as 0, infinity as a large number, and the cosine of a zero row is 0.
    """
    first, second = np.nan_to_num(first), np.nan_to_num(second)
    dots = np.einsum("nd,nd->n", first, second, dtype=np.float64)
    norms = math.prod(np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64)) for rows in (first, second))
    return np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)


def pearson(x: Floats, y: Floats) -> float:
    """Compute Pearson's correlation of two (n,) arrays; NaN if either is constant."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    x, y = x - x.mean(), y - y.mean()
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def spearman(x: Floats, y: Floats) -> float:
    """Compute Spearman's correlation of two (n,) arrays; NaN if either is constant. Ties get their mean rank."""
    return pearson(rankdata(x), rankdata(y))


def whiten(embeddings: NDArray, rows: NDArray) -> NDArray[np.float64]:
    """Transform all embeddings so that embeddings[rows] has mean 0 and identity covariance (BERT-whitening).

    A row number may occur several times in `rows`. Directions without variance become 0.
    """
    sample = embeddings[rows].astype(np.float64)
    mean = sample.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(sample, rowvar=False, bias=True))  # (D,), (D, D)
    kept = values > values[-1] * 1e-10
    scale = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1)), 0)
    return (embeddings - mean) @ (vectors * scale)
