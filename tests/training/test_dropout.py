"""Dropout on the CPU: its probability, its independence, its scale, its gradient."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from train.encoder.cpu import CpuDropout, keep_mask, use_cpu_layers

ROWS = 250_000


def layer(p, training=True):
    dropout = nn.Dropout(p).train(training)
    use_cpu_layers(dropout)
    assert type(dropout) is CpuDropout
    return dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_drops_with_its_probability_in_every_position_of_a_draw(p):
    """The columns are the four elements that get their bits from one 64-bit draw."""
    torch.manual_seed(0)
    kept = (keep_mask(torch.ones(ROWS, 4), p) > 0).double()
    deviation = math.sqrt(p * (1 - p) / ROWS)
    assert (kept.mean(0) - (1 - p)).abs().max() < 5 * deviation
    assert np.abs(np.corrcoef(kept.numpy().T) - np.eye(4)).max() < 5 / math.sqrt(ROWS)
    flat = kept.flatten().numpy()
    assert abs(np.corrcoef(flat[:-4], flat[4:])[0, 1]) < 5 / math.sqrt(len(flat))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (2, 3, 7)])
def test_values_and_gradients(dtype, shape):
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=dtype).requires_grad_()
    torch.manual_seed(1)
    mask = keep_mask(x, 0.25)
    assert mask.shape == x.shape and mask.dtype == dtype
    assert set(mask.flatten().tolist()) <= {0.0, torch.tensor(4 / 3, dtype=dtype).item()}
    torch.manual_seed(1)
    result = layer(0.25)(x)
    result.sum().backward()
    assert torch.equal(result, x * mask) and torch.equal(x.grad, mask)


def test_rounds_to_16_bits_without_a_bias():
    """0.1 becomes 6554 / 65536; the mean stays 1, and a probability just below 1 keeps some elements."""
    torch.manual_seed(0)
    assert keep_mask(torch.ones(1000), 0.1).max().item() == pytest.approx(65536 / (65536 - 6554))
    mask = keep_mask(torch.ones(4 * ROWS), 0.1)
    assert mask.mean().item() == pytest.approx(1, abs=5 * math.sqrt(0.1 / 0.9 / mask.numel()))
    assert torch.isfinite(keep_mask(torch.ones(4 * ROWS), 0.9999999)).all()


def test_evaluation_and_no_dropout_return_the_input():
    x = torch.randn(4, 4)
    assert torch.equal(layer(0.5, training=False)(x), x) and torch.equal(layer(0.0)(x), x)
