"""Computes the idf and the highest tf-idf of each term, and ranks the terms (step 1 of the paper)."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from una_fast._kernels.csr import document_statistics
from una_fast._kernels.logarithm import fill_log
from una_fast.arrays import ID, POINTER, SCORE, RaggedArray
from una_fast.parallel import map_threads


class TermScores(NamedTuple):
    """The scores of the V terms of a corpus of N sentences."""

    document_frequency: np.ndarray  # int64 (V,), N_t, the number of sentences that contain the term
    idf: np.ndarray  # float64 (V,), -ln(N_t / N)
    max_tfidf: np.ndarray  # float64 (V,), s, the highest tf-idf of the term in any sentence

    @classmethod
    def from_counts(cls, document_frequency: np.ndarray, highest_ratio: np.ndarray, n_documents: int) -> TermScores:
        """Compute the scores from the results of `count_documents`."""
        idf = inverse_document_frequency(document_frequency, n_documents)
        return cls(document_frequency, idf, _logarithm(highest_ratio, plus=1) * idf)


def term_frequency(count: np.ndarray | float, length: np.ndarray | float) -> np.ndarray:
    """Return tf = ln(1 + count / length) for a term that occurs `count` times in a sentence of `length` words."""
    return _logarithm(np.divide(count, length, dtype=SCORE), plus=1)


def inverse_document_frequency(document_frequency: np.ndarray | float, n_documents: int) -> np.ndarray:
    """Return idf = -ln(N_t / N) of equation 2. It is not smoothed: a term in every sentence has idf 0."""
    return 0.0 - _logarithm(np.divide(document_frequency, n_documents, dtype=SCORE))  # 0 - x: never -0


def score_terms(words: RaggedArray, n_terms: int, n_jobs: int = 1) -> TermScores:
    """Compute the scores of all terms in up to `n_jobs` threads. words: the term ids of each sentence.

    A term's tf grows with its share of a sentence's words, so only the highest share of each term needs a logarithm.
    Each thread allocates 20 bytes per term. Fewer threads run if `n_jobs` threads would need more memory than `words`.
    """
    n_jobs = max(1, min(n_jobs, len(words.values) // (5 * max(n_terms, 1))))
    document_frequency = np.zeros(n_terms, dtype=POINTER)
    highest_ratio = np.zeros(n_terms, dtype=SCORE)
    cuts = np.linspace(0, len(words), n_jobs + 1).astype(POINTER)
    parts = [RaggedArray(words.values, words.indptr[start : stop + 1]) for start, stop in itertools.pairwise(cuts)]
    for frequency, ratio in map_threads(lambda part: count_documents(part, n_terms), parts, n_jobs):
        document_frequency += frequency
        np.maximum(highest_ratio, ratio, out=highest_ratio)
    return TermScores.from_counts(document_frequency, highest_ratio, len(words))


def count_documents(words: RaggedArray, n_terms: int) -> tuple[np.ndarray, np.ndarray]:
    """Return each term's document frequency, int64, and its maximum of n_t / n over the sentences, float64.

    n_t is the count of the term in a sentence of n words.
    words: the term ids of each sentence.
    """
    document_frequency = np.zeros(n_terms, dtype=POINTER)
    highest_ratio = np.zeros(n_terms, dtype=SCORE)
    document_statistics(words.values, words.indptr, np.zeros(n_terms, dtype=ID), document_frequency, highest_ratio)
    return document_frequency, highest_ratio


def rank(max_tfidf: np.ndarray) -> np.ndarray:
    """Return the positions of the terms in `max_tfidf`, highest score first. Equal scores keep their order."""
    return np.argsort(-max_tfidf, kind="stable").astype(ID)


def inverse(order: np.ndarray) -> np.ndarray:
    """Return the inverse permutation of `order`. The inverse of the result of `rank` is each term's rank."""
    ranks = np.empty(len(order), dtype=ID)
    ranks[order] = np.arange(len(order), dtype=ID)
    return ranks


def _logarithm(ratios: np.ndarray | float, plus: int = 0) -> np.ndarray:
    """Return ln(ratio + plus), correctly rounded and therefore equal on every processor."""
    values = np.asarray(ratios, dtype=SCORE, order="C")
    out = np.empty_like(values)
    fill_log(values.reshape(-1), out.reshape(-1), plus)
    return out
