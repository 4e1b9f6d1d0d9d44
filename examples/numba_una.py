"""UNA in Numba: steps 2 and 3 of the paper as a law of one's own, with the draws of `una_fast.Augmenter`.

    negatives = numba_una.una(index, tokenizer=tokenizer)                       # in Python
    python -m train.ddp ... --augment numba_una:una                             # in the folder of this file

docs/numba.md says what such a function gets, and shows another law.
"""

from __future__ import annotations

import math

import numba
import numpy as np

import una_fast
from una_fast.augment.numba import ROW, draw64, sample, uniform, window

BETA = 0.5  # mean replacement probability
RADIUS = 4000  # ranks on either side of a term, from which its replacement is drawn


@numba.njit
def weigh(ids, n, idf):
    """For each word, the first place of its term, and its tf-idf (equation 2)."""
    first, z = np.empty(n, np.int64), np.empty(n)
    once = math.log1p(1 / n)
    for k in range(n):
        count = 0
        for j in range(n):
            count += ids[j] == ids[k]
        first[k], z[k] = k, once * idf[ids[k]]
        if count > 1:
            z[k], first[k] = math.log1p(count / n) * idf[ids[k]], 0
            while ids[first[k]] != ids[k]:
                first[k] += 1
    return first, z


@numba.njit
def extremes(z):
    """The place of the highest score, the first if there are several, and the lowest score."""
    highest, lowest = 0, z[0]
    for k in range(len(z)):
        lowest = min(lowest, z[k])
        if z[k] > z[highest]:
            highest = k
    return highest, lowest


@una_fast.numba_augmentation
@numba.cfunc(ROW)
def una(ids, n, key, idf, max_tfidf, document_frequency, n_terms, out):
    """Replace each term with a probability that grows with its tf-idf, by a term of like importance."""
    first, z = weigh(ids, n, idf)
    highest, lowest = extremes(z)
    total, n_distinct = 0.0, 0
    for k in range(n):
        if first[k] == k:
            total += z[k] - lowest
            n_distinct += 1
    scale = BETA / (total / n_distinct) if total > 0.0 else 0.0
    for k in range(n):
        out[k] = ids[k]
        p = scale * (z[k] - lowest) if total > 0.0 else BETA  # equation 3
        if first[k] < k:  # a term is replaced at all its places by the same, or at none
            out[k] = out[first[k]]
        elif k == highest or uniform(draw64(key, k, 0)) < p:
            start, stop = window(ids[k], z[k], RADIUS, max_tfidf, n_terms)
            out[k] = sample(key, k, max_tfidf, start, stop, ids[k])
    return n
