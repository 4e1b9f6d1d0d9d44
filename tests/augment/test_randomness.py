"""The draws: exact values, and their distribution by chi-square tests at fixed seeds."""

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from support import reference
from support.checks import ragged, sampling_config
from una_fast._kernels.draws.negatives import UnaRows
from una_fast.arrays import ID, RaggedArray
from una_fast.augment.counter_rng import CounterRNG
from una_fast.index.scores import TermScores

N_DRAWS = 40_000


def term_scores(max_tfidf) -> TermScores:
    highest = np.array(max_tfidf, dtype=float)
    return TermScores(np.ones(len(highest), dtype=np.int64), highest, highest)


def replacements(rules, term):
    """Return the replacements of `term` in N_DRAWS rows that contain only this term."""
    words = RaggedArray(np.full(N_DRAWS, term, dtype=ID), np.arange(N_DRAWS + 1))
    return UnaRows(words, rules).terms(np.arange(N_DRAWS), 0)[0]


SCORES = {
    "similar": np.linspace(2.0, 1.5, 60),  # as in a real window: nearly every first candidate is accepted
    "steep": 2.0 ** -np.arange(60.0),
    "one outlier": np.array([1000.0, *np.linspace(1.0, 0.5, 59)]),  # nearly all are rejected: `invert_weights`
    "zero tail": np.array([*np.linspace(1.0, 0.5, 20), *np.zeros(40)]),
    "all zero": np.zeros(60),
}


FIXED = {
    "none": frozenset(),
    "some": frozenset(range(0, 60, 2)) - {0, 30},
    "nearly all": frozenset(range(60)) - {0, 7, 30, 41, 59},  # with radius 12, the only pairs are 0 and 7, 30 and 41
}


@pytest.mark.parametrize("fixed", FIXED)
@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("replace", ["tfidf", "random"])
@pytest.mark.parametrize("term", [0, 7, 30, 59])
@pytest.mark.parametrize("shape", SCORES)
def test_replacements_are_drawn_in_proportion_to_the_scores_of_the_window(shape, term, replace, variant, fixed):
    scores, fixed = SCORES[shape], FIXED[fixed]
    rules = sampling_config(term_scores(scores), 10, radius=12, variant=variant, replace=replace, seed=3, fixed=fixed)
    window = (0, 60) if replace == "random" else reference.rank_window(scores.tolist(), term, 0.0, 12)
    excluded = term if variant == "paper" else None
    weights = reference.candidate_weights(scores.tolist(), window, excluded, replace, fixed)
    total = sum(weights.values())
    found = np.bincount(replacements(rules, term), minlength=60)
    assert all(found[j] == 0 for j in range(60) if weights.get(j, 0) == 0)  # not outside, not the term itself
    expected = {j: N_DRAWS * w / total for j, w in weights.items() if w > 0}
    rare = [j for j, e in expected.items() if e < 5]
    observed, counts = [found[j] for j in expected if j not in rare], [e for e in expected.values() if e >= 5]
    n_rare = sum(expected[j] for j in rare)
    if n_rare >= 1:
        observed, counts = [*observed, found[rare].sum()], [*counts, n_rare]
    else:  # too few for a chi-square test
        assert found[rare].sum() < 20
        counts = list(np.array(counts) * sum(observed) / sum(counts))
    assert len(counts) == 1 or chisquare(observed, counts).pvalue > 1e-4


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_random_selection_replaces_each_term_with_its_probability_and_at_least_one(p):
    rules = sampling_config(term_scores(SCORES["similar"]), 10, radius=5, select="random", beta=p)
    words = RaggedArray(np.tile(np.array([30, 10], dtype=ID), N_DRAWS), 2 * np.arange(N_DRAWS + 1))
    replaced = UnaRows(words, rules).terms(np.arange(N_DRAWS), 0)[0].reshape(-1, 2) != [30, 10]
    assert replaced.any(axis=1).all()
    expected = p + (1 - p) ** 2 / 2
    assert abs(replaced.sum(axis=0) - expected * N_DRAWS).max() <= 4 * (expected * (1 - expected) * N_DRAWS) ** 0.5


def test_draws_equal_the_reference_and_are_uniform():
    rows = np.array([0, 1, 999_999, 2**63], dtype=np.uint64)
    for epoch, number in ((0, 0), (7, 1), (7, 65)):
        bits = CounterRNG(42, epoch, rows).bits(32, number)
        expected = [[reference.draw64(42, epoch, row, place, number) for place in range(32)] for row in rows.tolist()]
        assert bits.tolist() == expected
    assert kstest(CounterRNG(42, 0, np.arange(500)).units(20).ravel(), "uniform").pvalue > 1e-3


def test_the_draws_of_a_seed_are_fixed():
    """If these values change, so does every published negative."""
    words = ragged([[0, 9, 18, 27, 36, 45, 54, 58], [5, 5, 30], [59]])
    kernel = UnaRows(words, sampling_config(term_scores(SCORES["similar"]), 10, radius=12, seed=42))
    assert {epoch: kernel.terms(np.arange(3), epoch)[0].tolist() for epoch in (0, 1)} == {
        0: [4, 20, 24, 25, 43, 40, 54, 58, 16, 16, 30, 57],
        1: [1, 1, 18, 20, 36, 53, 54, 58, 4, 4, 30, 51],
    }
