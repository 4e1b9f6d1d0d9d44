"""Noises on embeddings against plain loops written from their papers; their gradients, views and draws."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from train.objective import noise
from train.objective.noise import EmbeddingDraws, noise_on
from train.objective.registry import NOISE_VIEWS, NOISES

LAMBDA = 0.3
NEEDED = {"corpus": "text.txt", "model": "encoder", "output": "run"}


def function_of(name):
    return getattr(noise, name.replace("-", "_"))


def draws_of(n, epoch=0, seed=5):
    return EmbeddingDraws(seed, epoch, np.random.default_rng(n).permutation(100)[:n])


def embeddings(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(1, 2, shape))


def unit(x):
    return x / np.sqrt((x * x).sum())


def plain_interpolation(z, draws, strength):
    out = []
    for i, one in enumerate(z):
        nearest = max((j for j in range(len(z)) if j != i), key=lambda j: unit(one) @ unit(z[j]))
        out.append((1 - strength) * one + strength * z[nearest])
    return out


def plain_extrapolation(z, draws, strength):
    mean = sum(z) / len(z)
    return [one + strength * (one - mean) for one in z]


def plain_linear(z, draws, strength):
    return [one + strength * (z[j] - z[k]) for one, (j, k) in zip(z, draws.pairs(), strict=True)]


def plain_gaussian(z, draws, strength):
    deviation = [np.std([one[d] for one in z], ddof=1) for d in range(len(z[0]))]
    normals = draws.normals(len(z[0]))
    return [one + strength * np.array(deviation) * normal for one, normal in zip(z, normals, strict=True)]


def plain_pca_jitter(z, draws, strength):
    """By eigenvectors, as in Krizhevsky, Sutskever and Hinton; a_k is the normal draw along eigenvector k."""
    values, vectors = np.linalg.eigh(np.cov(np.array([unit(one) for one in z]), rowvar=False))
    out = []
    for one, normal in zip(z, draws.normals(len(z[0])), strict=True):
        a = vectors.T @ normal
        jitter = sum(a[k] * values[k] * vectors[:, k] for k in range(len(values)))
        out.append(one + strength * np.sqrt(one @ one) * jitter)
    return out


PLAIN = {
    "interpolation": plain_interpolation,
    "extrapolation": plain_extrapolation,
    "linear": plain_linear,
    "gaussian": plain_gaussian,
    "pca-jitter": plain_pca_jitter,
}


@pytest.mark.parametrize("name", NOISES)
@given(st.integers(2, 9), st.integers(2, 6), st.integers(0, 99), st.floats(0.01, 1))
def test_equals_the_plain_reference(name, n, width, seed, strength):
    z, draws = embeddings(n, width, seed=seed), draws_of(n)
    expected = np.array(PLAIN[name](list(z.numpy()), draws, strength))
    assert np.allclose(function_of(name)(z, z, draws, strength).numpy(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NOISES)
def test_gradient_equals_differences(name):
    """Partners and statistics come from `pool` and are constants."""
    z = embeddings(5, 4).requires_grad_()
    pool = z.detach().clone()
    assert torch.autograd.gradcheck(lambda z: function_of(name)(z, pool, draws_of(5), LAMBDA), [z])


@pytest.mark.parametrize("name", NOISES)
def test_a_sentence_has_its_noise_wherever_it_stands(name):
    rows = np.array([70, 3, 21, 8, 55, 13])
    views, order = embeddings(4, 6, 5), [4, 0, 3, 5, 1, 2]
    noise = noise_on(name, LAMBDA, "all", 42)
    assert torch.allclose(noise(views[:, order], 1, rows[order]), noise(views, 1, rows)[:, order], atol=1e-12)


@pytest.mark.parametrize("view", NOISE_VIEWS)
@pytest.mark.parametrize("n_views", [2, 3, 4])
def test_only_the_chosen_views_are_changed(view, n_views):
    views = embeddings(n_views, 5, 4)
    changed = noise_on("gaussian", LAMBDA, view, 42)(views, 0, np.arange(5))
    moved = [v for v in range(n_views) if not torch.equal(views[v], changed[v])]
    assert moved == [v for v in NOISE_VIEWS[view] if v < n_views]


def test_views_epochs_and_seeds_have_draws_of_their_own_and_not_those_that_replace_words():
    views = torch.ones(4, 50, 40).cumsum(1)  # all views are equal
    noise = noise_on("gaussian", LAMBDA, "all", 42)
    drawn = [*(noise(views, 0, np.arange(50)) - views), (noise(views, 1, np.arange(50)) - views)[0]]
    drawn.append((noise_on("gaussian", LAMBDA, "all", 43)(views, 0, np.arange(50)) - views)[0])
    drawn.append(torch.from_numpy(EmbeddingDraws(42, 0, np.arange(50)).normals(40)))
    correlations = np.corrcoef([one.flatten().numpy() for one in drawn])
    assert np.abs(correlations - np.eye(len(drawn))).max() < 5 / 2000**0.5


@pytest.mark.parametrize("name", NOISES)
def test_a_step_of_one_sentence_and_of_equal_ones_stays_finite(name):
    noise = noise_on(name, LAMBDA, "all", 42)
    for views in (embeddings(2, 1, 4), torch.ones(2, 3, 4)):
        views.requires_grad_()
        out = noise(views, 0, np.arange(views.shape[1]))
        out.sum().backward()
        assert torch.allclose(out, views, atol=1e-6) and views.grad.isfinite().all()


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
