"""Linear layers by oneDNN have the values, gradients, names and weights of the plain layers."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from train.encoder import cpu
from train.encoder.cpu import OneDnnLinear, use_cpu_layers

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this PyTorch has no oneDNN product")


def processor_of(monkeypatch, vendor):
    info = SimpleNamespace(is_file=lambda: True, read_text=lambda: f"vendor_id\t: {vendor}\n")
    monkeypatch.setattr(cpu, "Path", lambda name: info)


@pytest.fixture(autouse=True)
def no_intel(monkeypatch):
    """Act as on a processor that is not Intel's, where oneDNN is faster."""
    processor_of(monkeypatch, "AuthenticAMD")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(5, 24), (3, 4, 24), (0, 24), (1, 1, 24)])
def test_equals_the_plain_layer(bias, shape):
    torch.manual_seed(0)
    plain, fast = nn.Linear(24, 40, bias=bias), nn.Linear(24, 40, bias=bias)
    fast.load_state_dict(plain.state_dict())
    use_cpu_layers(fast)
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


def test_autocast_keeps_its_own_product():
    layer = nn.Linear(8, 8)
    use_cpu_layers(layer)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(torch.randn(2, 8)).dtype == torch.bfloat16


def test_processors_of_intel_keep_the_plain_layers(monkeypatch):
    processor_of(monkeypatch, "GenuineIntel")
    layer = nn.Linear(8, 8)
    use_cpu_layers(layer)
    assert type(layer) is nn.Linear
