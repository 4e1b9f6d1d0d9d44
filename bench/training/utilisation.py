"""Model FLOPs utilisation: the operations per second of a training step, divided by the device's peak rate."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from train.encoder.cpu import use_cpu_layers
from train.encoder.pretrained import DTYPES

# Dense TFLOP/s from the vendor's data sheets: fp32 without tensor cores, bf16 and fp16 with them and fp32 accumulation
PEAKS = {
    "NVIDIA H200": {"fp32": 67, "bf16": 989, "fp16": 989},
    "NVIDIA H100 80GB HBM3": {"fp32": 67, "bf16": 989, "fp16": 989},
    "NVIDIA H100 PCIe": {"fp32": 51, "bf16": 756, "fp16": 756},
    "NVIDIA A100-SXM4-80GB": {"fp32": 19.5, "bf16": 312, "fp16": 312},
    "NVIDIA A100-SXM4-40GB": {"fp32": 19.5, "bf16": 312, "fp16": 312},
    "NVIDIA L40S": {"fp32": 91.6, "bf16": 362, "fp16": 362},
    "NVIDIA L4": {"fp32": 30.3, "bf16": 121, "fp16": 121},
}
SIZES = (1024, 2048)  # widths of the square products that measure a peak; larger ones are no faster on a CPU
FORMULA = (
    "Utilisation: 3 x (2 n (4 D^2 + 2 D F) + 4 n^2 D) operations per layer for a sentence of n tokens, padding not "
    "counted (D width, F inner width; 3: a backward pass is two forward ones), divided by the peak"
)


def step_flops(config: Any, lengths: NDArray[np.int64]) -> float:
    """Return the number of operations of a training step.

    config: the encoder's config.
    lengths: int64 (n_sentences,), the number of tokens of each sentence, special tokens included.

    A multiplication and its addition count as two. Embeddings, norms, the head and the loss (under 1%) do not count.
    """
    width, inner, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    n = lengths.astype(np.float64)
    return float(3 * layers * (2 * n * (4 * width**2 + 2 * width * inner) + 4 * n**2 * width).sum())


def peak(precision: str, device: torch.device) -> tuple[float, str]:
    """Return the peak rate of the device, in operations per second, and where this figure is from."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    if name in PEAKS:
        return PEAKS[name][precision] * 1e12, "data sheet"
    return max(_product_rate(size, DTYPES[precision], device) for size in SIZES), "best matrix product here"


def _product_rate(size: int, dtype: torch.dtype, device: torch.device) -> float:
    """Return the operations per second of the fastest of five products of `size` x `size` matrices."""
    layer = nn.Linear(size, size, bias=False, device=device, dtype=dtype)
    use_cpu_layers(layer)
    x = torch.randn(size, size, device=device, dtype=dtype)
    fastest = float("inf")
    with torch.inference_mode():
        for _ in range(5):
            begun = time.perf_counter()
            layer(x)
            if device.type == "cuda":
                torch.cuda.synchronize()
            fastest = min(fastest, time.perf_counter() - begun)
    return 2 * size**3 / fastest
