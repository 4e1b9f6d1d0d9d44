"""Linear layers of a model on the CPU through oneDNN instead of the BLAS that PyTorch was built with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def _has_onednn() -> bool:
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def _is_packable(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype == torch.float32


def _packed_forward(layer: nn.Linear) -> Callable[[Tensor], Tensor]:
    """The layer's forward, on weights reordered into oneDNN's own layout."""
    weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach())
    bias = None if layer.bias is None else layer.bias.detach()
    linear = torch.ops.mkldnn._linear_pointwise

    def forward(x: Tensor) -> Tensor:
        if x.dtype != weight.dtype or torch.is_autocast_enabled("cpu"):
            return nn.functional.linear(x, layer.weight, layer.bias)
        return linear(x, weight, bias, "none", [], "")

    return forward


@contextmanager
def packed_linears(model: nn.Module) -> Iterator[None]:
    """Within it, float32 linear layers of `model` on the CPU run in oneDNN; weights must not change.

    MKL keeps its AVX-512 kernels from processors that are not Intel's, oneDNN does not: 97 and 218 GFLOP/s
    on one core of an AMD Zen 5, for the (2048, 384) x (384, 1536) of MiniLM. The results differ by rounding
    alone. Where PyTorch lacks the operation, nothing changes.
    """
    layers = [layer for layer in model.modules() if type(layer) is nn.Linear]
    packed = [layer for layer in layers if _has_onednn() and _is_packable(layer.weight)]
    try:
        for layer in packed:
            vars(layer)["forward"] = _packed_forward(layer)
        yield
    finally:
        for layer in packed:
            vars(layer).pop("forward", None)
