"""Replacements from the same word class, an experiment beyond the paper: an augmentation for `--augment MODULE:CLASS`.

Word classes are distributional: counts of left and right neighbours among the most frequent terms, their square roots,
50 singular vectors, k-means. A replacement is drawn as in step 3 of UNA, by highest tf-idf, from terms of the word's
class with similar rank.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from bench.evidence.controls import Spliced
from una_fast.augment.explain import WordExplanation
from una_fast.index.index import Index

N_CLASSES = 128
N_FREQUENT = 1000  # terms that are counted as neighbours
N_VECTORS = 50
SHARE = 0.1  # share of the class that a word's window covers on each side
FEWEST = 10  # minimum number of terms on each side


class SameClass(Spliced):
    """Replaces words like UNA, but only by words of the same class.

    Words that the index does not contain are not replaced.
    """

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """The number of the class of each term, int64 (n_terms,)."""
        return word_classes(self.index)

    @cached_property
    def _members(self) -> list[NDArray[np.int64]]:
        return [np.flatnonzero(self.classes == number) for number in range(N_CLASSES)]

    def put(self, word: WordExplanation, written: str, unit: float) -> str:
        """Draw a term of the same class, written in the case of the word."""
        term = self.index.term_ids.get(word.word, -1)
        if term < 0:
            return written
        near = window(self._members[self.classes[term]], term)
        if not len(near):
            return written
        weights = np.cumsum(self.index.max_tfidf[near])
        drawn = self.index.terms[near[np.searchsorted(weights, unit * weights[-1], side="right")]]
        return drawn.capitalize() if written[:1].isupper() and not written.isupper() else drawn


def window(members: NDArray[np.int64], term: int) -> NDArray[np.int64]:
    """Return the ids of the terms in a class whose rank is near that of `term`. `term` itself is left out.

    members: the ids of all terms in the class, ascending.
    """
    place, reach = int(np.searchsorted(members, term)), max(FEWEST, round(SHARE * len(members)))
    near = members[max(0, place - reach) : place + reach + 1]
    return near[near != term]


def word_classes(index: Index, n_classes: int = N_CLASSES, seed: int = 0) -> NDArray[np.int64]:
    """Return the number of the class of each term, from 0 to n_classes - 1: int64 (n_terms,)."""
    from sklearn.cluster import KMeans
    from sklearn.preprocessing import normalize

    counts = neighbour_counts(index)
    n_vectors = min(N_VECTORS, min(counts.shape) - 1)
    start = np.random.default_rng(seed).normal(size=min(counts.shape))
    vectors, values, _ = scipy.sparse.linalg.svds(counts.sqrt(), k=n_vectors, v0=start)
    return KMeans(n_classes, n_init=1, random_state=seed).fit_predict(normalize(vectors * values)).astype(np.int64)


def neighbour_counts(index: Index) -> scipy.sparse.csr_array:
    """Count how often each of the N_FREQUENT most frequent terms is the left or the right neighbour of each term.

    Returns counts of shape (n_terms, 2 * N_FREQUENT), left neighbours first. Each row is divided by its sum.
    """
    ids, offsets = np.asarray(index.word_ids.values), np.asarray(index.word_ids.indptr)
    frequent = np.full(index.n_terms, -1)
    top = np.argsort(-index.document_frequency, kind="stable")[:N_FREQUENT]
    frequent[top] = np.arange(len(top))
    inside = np.ones(len(ids), dtype=bool)
    inside[offsets[:-1][np.diff(offsets) > 0]] = False  # the first word of a sentence has no left neighbour
    left, right = ids[:-1][inside[1:]], ids[1:][inside[1:]]
    rows = np.concatenate([right, left])
    columns = np.concatenate([frequent[left], np.where(frequent[right] < 0, -1, frequent[right] + len(top))])
    known = columns >= 0
    shape = (index.n_terms, 2 * len(top))
    counts = scipy.sparse.coo_array((np.ones(known.sum()), (rows[known], columns[known])), shape=shape).tocsr()
    totals = np.maximum(counts.sum(axis=1), 1)
    return scipy.sparse.csr_array(scipy.sparse.diags_array(1 / totals) @ counts)
