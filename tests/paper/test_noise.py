"""The noises on embeddings of table A3, compared with plain loops written from their papers."""

import numpy as np
import pytest
import torch

from bench.paper import noise
from una_fast.losses import pairs

N, WIDTH = 6, 4
NORMALS = np.random.default_rng(1).normal(size=(N, max(N, WIDTH)))


def unit(x):
    return x / np.sqrt((x * x).sum())


def plain_pca_jitter(z):
    """Compute PCA jitter with eigenvectors; a_k is the normal draw along eigenvector k."""
    values, vectors = np.linalg.eigh(np.cov([unit(one) for one in z], rowvar=False))
    jitters = [(vectors * values) @ (vectors.T @ normal) for normal in NORMALS[:, :WIDTH]]
    return [np.sqrt(one @ one) * jitter for one, jitter in zip(z, jitters, strict=True)]


def nearest(z, i):
    return max((j for j in range(N) if j != i), key=lambda j: unit(z[i]) @ unit(z[j]))


PLAIN = {
    "interpolation": lambda z: [z[nearest(z, i)] - z[i] for i in range(N)],
    "extrapolation": lambda z: [one - sum(z) / N for one in z],
    "linear": lambda z: [z[j] - z[k] for j, k in np.argsort(-NORMALS[:, :N])[:, :2]],
    "gaussian": lambda z: [np.std(z, axis=0, ddof=1) * normal for normal in NORMALS[:, :WIDTH]],
    "pca_jitter": plain_pca_jitter,
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_noise_changes_the_positives_as_in_its_paper(name, monkeypatch):
    monkeypatch.setattr(noise, "_normals", lambda like, columns: torch.from_numpy(NORMALS[:, :columns]))
    views = torch.from_numpy(np.random.default_rng(0).normal(1, 2, (2, N, WIDTH)))
    moved = views[1] + noise.STRENGTH * torch.from_numpy(np.array(PLAIN[name](views[1].numpy())))
    assert float(getattr(noise, name)(views)) == pytest.approx(float(pairs(torch.stack([views[0], moved]), 0.05)))


@pytest.mark.parametrize("name", PLAIN)
def test_a_noise_depends_on_the_seed_and_does_not_change_a_single_sentence(name):
    views = torch.randn(2, N, WIDTH, generator=torch.Generator().manual_seed(0))
    losses = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        losses.append(getattr(noise, name)(views).item())
    assert losses[0] == losses[1] and (losses[0] != losses[2]) == (name in ("linear", "gaussian", "pca_jitter"))
    assert float(getattr(noise, name)(views[:, :1])) == float(pairs(views[:, :1], 0.05))
