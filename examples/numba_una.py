"""UNA as a Numba function: steps 2 and 3 of the paper, with the same draws as `una_fast.Augmenter`.

    negatives = numba_una.una(index, tokenizer=tokenizer)                       # in Python
    python -m train.ddp ... --augment numba_una:una                             # in the folder of this file

docs/numba.md explains the arguments of such a function, and shows another augmentation.
"""

from __future__ import annotations

import math

import numba
import numpy as np

import una_fast
from una_fast.augment.numba import ROW, draw64, sample, uniform, window

BETA = 0.5  # mean replacement probability
RADIUS = 4000  # ranks on either side of a term, from which its replacement is drawn
ONE, LOW_6 = np.uint64(1), np.uint64(63)


@numba.njit(error_model="numpy")
def weigh(ids, n, idf, out):
    """Return the tf-idf (equation 2) of each of the n words of a row.

    Also fill `out`: with the term's count at its first position in the row, and with -1 minus the first position at its
    later positions.
    """
    seen = np.uint64(0)  # a bit for each value of the lowest 6 bits of an id: five of six words then need no search
    for k in range(n):
        out[k], bit = 1, ONE << (np.uint64(ids[k]) & LOW_6)
        if seen & bit:
            for j in range(k):
                if ids[j] == ids[k]:
                    out[j] += 1
                    out[k] = -1 - j
                    break
        seen |= bit
    z, once = np.empty(n), math.log1p(1 / n)
    for k in range(n):
        tf = once if out[k] <= 1 else math.log1p(out[k] / n)
        z[k] = tf * idf[ids[k]]
    return z


@una_fast.numba_augmentation
@numba.cfunc(ROW, error_model="numpy")
def una(ids, n, key, idf, max_tfidf, document_frequency, n_terms, out):
    """Replace each term, with a probability that grows with its tf-idf, by a term of similar importance."""
    z = weigh(ids, n, idf, out)
    highest, lowest = 0, z[0]
    for k in range(n):
        if out[k] > 0:
            lowest = min(lowest, z[k])
            if z[k] > z[highest]:
                highest = k
    total, n_distinct = 0.0, 0
    for k in range(n):
        if out[k] > 0:
            total += z[k] - lowest
            n_distinct += 1
    scale = BETA / (total / n_distinct) if total > 0.0 else 0.0
    for k in range(n):
        if out[k] < 0:  # all occurrences of a term get the same replacement, or none
            out[k] = out[-1 - out[k]]
            continue
        out[k] = ids[k]
        p = scale * (z[k] - lowest) if total > 0.0 else BETA  # equation 3
        if k == highest or uniform(draw64(key, k, 0)) < p:
            start, stop = window(ids[k], z[k], RADIUS, max_tfidf, n_terms)
            out[k] = sample(key, k, max_tfidf, start, stop, ids[k])
    return n
