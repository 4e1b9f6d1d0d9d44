"""Layers for a CPU: linear layers equal PyTorch's, and dropout masks have the right distribution."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from train.encoder import cpu
from train.encoder.cpu import CpuDropout, OneDnnLinear, keep_mask, use_cpu_layers

needs_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this PyTorch has no oneDNN product")


def fast_linear(monkeypatch, vendor, *shape, **how):
    """Make a linear layer as `use_cpu_layers` does on a processor of this vendor."""
    info = SimpleNamespace(is_file=lambda: True, read_text=lambda: f"vendor_id\t: {vendor}\n")
    monkeypatch.setattr(cpu, "Path", lambda name: info)
    layer = nn.Linear(*shape, **how)
    use_cpu_layers(layer)
    return layer


@needs_onednn
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(5, 24), (3, 4, 24), (0, 24), (1, 1, 24)])
def test_onednn_layer_equals_the_plain_layer(monkeypatch, bias, shape):
    torch.manual_seed(0)
    plain, fast = nn.Linear(24, 40, bias=bias), fast_linear(monkeypatch, "AuthenticAMD", 24, 40, bias=bias)
    fast.load_state_dict(plain.state_dict())
    assert type(fast) is OneDnnLinear and fast.state_dict().keys() == plain.state_dict().keys()
    inputs = [torch.randn(shape).requires_grad_() for _ in range(2)]
    inputs[1].data.copy_(inputs[0].data)
    weight = torch.randn(*shape[:-1], 40)
    results = [layer(x) for layer, x in zip((plain, fast), inputs, strict=True)]
    for result in results:
        (result * weight).sum().backward()
    torch.testing.assert_close(results[0], results[1])
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad)
    for a, b in zip(plain.parameters(), fast.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-5, atol=1e-5)


@needs_onednn
def test_autocast_and_intel_processors_do_not_use_onednn(monkeypatch):
    assert type(fast_linear(monkeypatch, "GenuineIntel", 8, 8)) is nn.Linear
    layer = fast_linear(monkeypatch, "AuthenticAMD", 8, 8)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(torch.randn(2, 8)).dtype == torch.bfloat16


ROWS = 250_000


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_all_four_elements_of_a_draw_are_dropped_independently_with_the_same_probability(p):
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
def test_dropout_multiplies_values_and_gradients_by_its_mask(dtype, shape):
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=dtype).requires_grad_()
    torch.manual_seed(1)
    mask = keep_mask(x, 0.25)
    assert mask.shape == x.shape and mask.dtype == dtype
    assert set(mask.flatten().tolist()) <= {0.0, torch.tensor(4 / 3, dtype=dtype).item()}
    torch.manual_seed(1)
    dropout = nn.Dropout(0.25)
    use_cpu_layers(dropout)
    result = dropout(x)
    result.sum().backward()
    assert torch.equal(result, x * mask) and torch.equal(x.grad, mask)
    assert torch.equal(dropout.eval()(x), x) and torch.equal(CpuDropout(0.0)(x), x)


def test_probabilities_are_rounded_to_16_bits_and_dropout_stays_unbiased():
    """0.1 becomes 6554 / 65536; the mean stays 1, and a probability just below 1 keeps some elements."""
    torch.manual_seed(0)
    mask = keep_mask(torch.ones(4 * ROWS), 0.1)
    assert mask.max().item() == pytest.approx(65536 / (65536 - 6554))
    assert mask.mean().item() == pytest.approx(1, abs=5 * math.sqrt(0.1 / 0.9 / mask.numel()))
    assert torch.isfinite(keep_mask(torch.ones(4 * ROWS), 0.9999999)).all()
