"""Random numbers of a step's sentences: the kernels' generator, by row alone, with the right distributions."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from support import reference
from train.objective.noise import EmbeddingDraws, normals_like

SEEDS = st.integers(0, 2**64 - 1)
ROWS = st.lists(st.integers(0, 2**40), min_size=2, max_size=9, unique=True).map(np.array)


@given(SEEDS, st.integers(0, 1000), ROWS, st.integers(0, 127))
def test_bits_are_those_of_the_kernels(seed, epoch, rows, number):
    bits = EmbeddingDraws(seed, epoch, rows).bits(5, number)
    expected = [
        [reference.draw64(seed, epoch, row, position, number) for position in range(5)] for row in rows.tolist()
    ]
    assert bits.tolist() == expected


@given(SEEDS, ROWS, st.randoms(use_true_random=False))
def test_a_row_has_its_draws_in_any_order_and_its_normals_in_any_batch(seed, rows, random):
    order = random.sample(range(len(rows)), len(rows))
    whole, moved = EmbeddingDraws(seed, 0, rows), EmbeddingDraws(seed, 0, rows[order])
    assert np.array_equal(moved.normals(6), whole.normals(6)[order])
    assert np.array_equal(rows[order][moved.pairs()], rows[whole.pairs()][order])
    assert np.array_equal(EmbeddingDraws(seed, 0, rows[:1]).normals(6), whole.normals(6)[:1])


@given(SEEDS, ROWS)
def test_a_pair_is_two_sentences_of_the_step(seed, rows):
    pairs = EmbeddingDraws(seed, 0, rows).pairs()
    assert pairs.shape == (len(rows), 2) and pairs.min() >= 0 and pairs.max() < len(rows)
    assert (pairs[:, 0] != pairs[:, 1]).all()


def test_normals_are_standard_normal_and_independent():
    normals = EmbeddingDraws(42, 0, np.arange(2000)).normals(100).astype(np.float64)
    assert stats.kstest(normals.ravel(), "norm").pvalue > 0.01
    assert abs(normals.mean()) < 5 / 200_000**0.5 and abs(normals.var() - 1) < 5 * (2 / 200_000) ** 0.5
    assert np.abs(np.corrcoef(normals.T) - np.eye(100)).max() < 5 / 2000**0.5  # between dimensions
    assert np.abs(np.corrcoef(normals[:100]) - np.eye(100)).max() < 5 / 100**0.5  # between rows


def test_all_pairs_are_alike_likely():
    drawn = np.concatenate([EmbeddingDraws(42, epoch, np.arange(6)).pairs() for epoch in range(2000)])
    counts = np.bincount(drawn[:, 0] * 6 + drawn[:, 1], minlength=36).reshape(6, 6)
    assert not counts.diagonal().any()
    assert stats.chisquare(counts[~np.eye(6, dtype=bool)]).pvalue > 0.01


def test_seed_and_epoch_change_the_draws():
    first = EmbeddingDraws(42, 0, np.arange(50)).normals(40).ravel()
    for other in (EmbeddingDraws(43, 0, np.arange(50)), EmbeddingDraws(42, 1, np.arange(50))):
        assert abs(np.corrcoef(first, other.normals(40).ravel())[0, 1]) < 5 / 2000**0.5


def test_normals_have_the_form_of_the_embeddings():
    z = torch.zeros(3, 7, dtype=torch.float64)
    assert normals_like(z, EmbeddingDraws(0, 0, np.arange(3))).dtype == z.dtype
    assert normals_like(z, EmbeddingDraws(0, 0, np.arange(3))).shape == z.shape
