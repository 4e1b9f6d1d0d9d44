"""The losses and their gradients, compared with plain loops written from the paper."""

import math
import runpy
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from support.small_runs import ROOT
from train.losses import LOSSES
from una_fast.errors import InputError
from una_fast.losses import margin, negative_distillation, similarity_distillation, soft

TAU = 0.05


def cosine(x, y):
    return float(x @ y / (x.norm() * y.norm()))


def rows_of(views):
    """Return the rows [a, p] or [a, p, n, n'] of each sentence in turn, as the released code orders them."""
    return [view[i] for i in range(views.shape[1]) for view in views]


def cross_entropy(target, candidates):
    """Return -log(e^target / sum of e^candidates)."""
    return math.log(sum(math.exp(c) for c in candidates)) - target


def plain_pairs(views, tau, left_out=0):
    """Compute equation 1. The released code leaves out only k = i; the paper as printed also leaves out k = j."""
    rows = rows_of(views)
    losses = []
    for i, row in enumerate(rows):
        j = i + 1 if i % 2 == 0 else i - 1
        candidates = [cosine(row, other) / tau for k, other in enumerate(rows) if k not in ((i,), (i, j))[left_out]]
        losses.append(cross_entropy(cosine(row, rows[j]) / tau, candidates))
    return sum(losses) / len(losses)


def plain_triplet(views, tau):
    anchors, candidates = views[0], [row for view in views[1:] for row in view]
    losses = []
    for i, anchor in enumerate(anchors):
        similarities = [cosine(anchor, candidate) / tau for candidate in candidates]
        losses.append(cross_entropy(similarities[i], similarities))
    return sum(losses) / len(losses)


def plain_simcse(views, tau):
    return plain_triplet(views[:2], tau)


def plain_margin(views, least=0.1, most=0.3):
    if len(views) == 2:
        return 0.0
    terms = []
    for a, p, n in zip(*views, strict=True):
        d = cosine(a, n) - cosine(a, p)
        terms.append(max(0.0, d + least) + max(0.0, -d - most))
    return sum(terms) / len(terms)


def plain_gated(views, tau, start):
    candidates = [row for view in views[1:] for row in view]
    n, losses = views.shape[1], []
    for i, anchor in enumerate(views[0]):
        logits = [cosine(anchor, candidate) / tau for candidate in candidates]
        if len(views) == 3:
            s, b = logits[n + i], cosine(start[0][i], start[1][i]) / tau
            logits[n + i] = s if s > b else s * (1 - math.exp(-((s - b) ** 2) / (2 * 0.17**2)))
        losses.append(cross_entropy(logits[i], logits))
    return sum(losses) / len(losses)


def plain_distillation(views, start):
    n = views.shape[1]
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    changes = [cosine(views[0][i], views[0][j]) - cosine(start[0][i], start[0][j]) for i, j in pairs]
    return sum(change**2 for change in changes) / len(changes) if changes else 0.0


PLAIN = {
    "pairs": plain_pairs,
    "decoupled": lambda views, tau: plain_pairs(views, tau, left_out=1),
    "triplet": plain_triplet,
    "simcse": plain_simcse,
    "soft": lambda views, tau: plain_simcse(views, tau) + 1e-3 * plain_margin(views),
    "margin": lambda views, tau: plain_margin(views),
}
GATED = runpy.run_path(str(ROOT / "examples" / "gated_loss.py"))["gated"]
START = torch.randn(2, 9, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)  # views, sentences, width
VIEWS = {name: row.negative_views for name, row in LOSSES.items()}
CASES = [(name, 2) for name in LOSSES] + [(name, 2 + n) for name, n in VIEWS.items() if n]


def embeddings(n_views, n_sentences, width=9, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n_views, n_sentences, width, generator=generator, dtype=torch.float64)


def near(views, amount):
    """Replace the negatives by near-copies of the anchors."""
    return torch.cat([views[:2], views[:1] + amount * views[2:]])


def loss(name, views, tau, **options):
    temperature = {"temperature": tau} if "temperature" in LOSSES[name].options else {}
    return LOSSES[name].load()(views, **temperature, **options)


@pytest.mark.parametrize(("name", "n_views"), CASES)
@pytest.mark.parametrize("n_sentences", [2, 7])
def test_losses_equal_plain_references(name, n_views, n_sentences):
    views = embeddings(n_views, n_sentences)
    assert float(loss(name, views, TAU)) == pytest.approx(PLAIN[name](views, TAU), rel=1e-12)


@pytest.mark.parametrize(("name", "n_views"), CASES)
def test_gradients_equal_finite_differences(name, n_views):
    """Negatives are near their anchors, where the margin's bounds have an effect."""
    views = near(embeddings(n_views, 4), 0.4).requires_grad_()
    assert torch.autograd.gradcheck(lambda v: loss(name, v, 0.3), [views])
    assert torch.autograd.gradcheck(lambda v: similarity_distillation(v, START[:, :4]), [views])


@pytest.mark.parametrize(("name", "n_views"), CASES)
def test_the_loss_of_one_sentence_is_finite(name, n_views):
    views = embeddings(n_views, 1).requires_grad_()
    value = loss(name, views, TAU)
    value.backward()
    assert math.isfinite(value.item()) and views.grad.isfinite().all()


@pytest.mark.parametrize(("name", "n_views", "temperature", "named"), [
    ("pairs", 3, 0.05, r"pairs accepts 2 or 4 .* \(3, 2, "),
    ("decoupled", 1, 0.05, r"decoupled accepts .* \(1, 2, 9\)"),
    ("triplet", 4, 0.05, "triplet accepts 2 or 3 "), ("simcse", 3, 0.05, "simcse accepts 2 "),
    *[(name, 2, tau, "^temperature=") for name in LOSSES if name != "margin" for tau in (0, -1.0)],
])  # fmt: skip
def test_errors_of_a_loss_name_the_valid_arguments(name, n_views, temperature, named):
    with pytest.raises(InputError, match=named):
        loss(name, embeddings(n_views, 2), temperature)


SHAPES = st.tuples(st.sampled_from([2, 3]), st.integers(1, 5), st.integers(0, 50))  # views, sentences, seed


@given(SHAPES, st.floats(0, 2), st.floats(0, 0.5), st.floats(0, 0.5), st.floats(0, 1))
def test_soft_equals_the_plain_reference(shape, amount, least, width, weight):
    n_views, n_sentences, seed = shape
    views = near(embeddings(n_views, n_sentences, seed=seed), amount)
    bound = plain_margin(views, least, least + width)
    assert float(margin(views, least, least + width)) == pytest.approx(bound, abs=1e-12)
    expected = plain_simcse(views, TAU) + weight * bound
    assert float(soft(views, TAU, weight, least, least + width)) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(SHAPES, st.floats(0, 2), st.floats(0.05, 5))
def test_the_example_of_a_custom_loss_equals_the_plain_reference(shape, amount, tau):
    n_views, n_sentences, seed = shape
    views = near(embeddings(n_views, n_sentences, seed=seed), amount)
    start = near(embeddings(3, n_sentences, seed=seed + 99), 0.5)[::2]
    assert float(GATED(views, tau, start)) == pytest.approx(plain_gated(views, tau, start), rel=1e-9, abs=1e-12)


def plain_negative_distillation(views, start, below):
    changes = []
    for i, j in product(range(views.shape[1]), repeat=2):
        if cosine(start[0, i], start[0, j]) < below:
            changes += [
                cosine(views[2, i], views[view, j]) - cosine(start[1, i], start[part, j])
                for view, part in ((0, 0), (2, 1))
            ]
    return sum(change**2 for change in changes) / max(1, len(changes))


@given(st.integers(1, 6), st.integers(0, 50), st.floats(-0.5, 0.99))
def test_negative_distillation_equals_the_plain_reference_and_is_0_at_the_start(n_sentences, seed, below):
    views, start = embeddings(3, n_sentences, seed=seed), embeddings(2, n_sentences, seed=seed + 99)
    expected = plain_negative_distillation(views, start, below)
    assert float(negative_distillation(views, start, below)) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert float(negative_distillation(views, views[[0, 2]], below)) == pytest.approx(0, abs=1e-12)
    assert float(negative_distillation(views[:2], start)) == 0


@given(st.integers(1, 6), st.integers(0, 50))
def test_similarity_distillation_equals_the_plain_reference_and_is_0_at_the_start(n_sentences, seed):
    views, start = embeddings(3, n_sentences, seed=seed), embeddings(2, n_sentences, seed=seed + 99)
    expected = plain_distillation(views, start)
    assert float(similarity_distillation(views, start)) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert float(similarity_distillation(views, 3 * views)) == pytest.approx(0, abs=1e-12)
