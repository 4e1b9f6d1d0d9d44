"""Random numbers of the sentences of a step: functions of (seed, epoch, row, position, number) and of nothing else.

The generator is that of una_fast/_kernels/draws/random.pxd, for whole arrays. Letters: B sentences of a step, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor

Bits = NDArray[np.uint64]
GAMMA = 0x9E3779B97F4A7C15
NUMBERS = 128  # that one position owns


@dataclass(frozen=True)
class RowDraws:
    """The draws of the sentences `rows` (int64, B distinct rows of the index) in an epoch.

    A sentence has the same draws at any place of any batch, and so on any rank.
    """

    seed: int
    epoch: int
    rows: NDArray[np.int64]

    def bits(self, n_positions: int, number: int = 0) -> Bits:
        """uint64 (B, n_positions): draw `number` at positions 0, 1, ... of each row."""
        epoch_key = _mix(_mix(_array(self.seed)) + _times_gamma(_array(self.epoch + 1)))
        row_keys = _mix(epoch_key + _times_gamma(self.rows.astype(np.uint64) + np.uint64(1)))  # (B,)
        counters = np.arange(n_positions, dtype=np.uint64) * np.uint64(NUMBERS) + np.uint64(number + 1)
        return _mix(row_keys[:, None] + _times_gamma(counters))

    def normals(self, width: int) -> NDArray[np.float32]:
        """float32 (B, width): independent draws of the standard normal distribution, by its inverse."""
        uniform = ((self.bits(width) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52  # inside (0, 1)
        return ndtri(uniform).astype(np.float32)

    def pairs(self) -> NDArray[np.int64]:
        """int64 (B, 2): for each row the places of two distinct rows of the step, all pairs alike likely. B >= 2.

        They are drawn from the rows in ascending order, so that a row's partners do not change with the batch's order.
        """
        n = len(self.rows)
        first = _below(self.bits(1, 0)[:, 0], n)
        second = _below(self.bits(1, 1)[:, 0], n - 1)
        second += second >= first
        return np.argsort(self.rows)[np.stack([first, second], axis=1)]


def normals_like(z: Tensor, draws: RowDraws) -> Tensor:
    """Standard normal draws for embeddings (B, D), of their dtype and on their device."""
    return on_device(draws.normals(z.shape[1]), z).to(z.dtype)


def on_device(array: NDArray, like: Tensor) -> Tensor:
    """The array as a tensor on the device of `like`; a GPU goes on with its work while it is copied."""
    tensor = torch.from_numpy(array)
    return tensor if like.device.type == "cpu" else tensor.pin_memory().to(like.device, non_blocking=True)


def _array(number: int) -> Bits:
    return np.array([number % 2**64], dtype=np.uint64)  # an array overflows silently, as the law wants; a scalar warns


def _times_gamma(counters: Bits) -> Bits:
    return counters * np.uint64(GAMMA)


def _mix(x: Bits) -> Bits:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _below(bits: Bits, n: int) -> NDArray[np.int64]:
    """floor(bits * n / 2**64), for n < 2**32."""
    low, high = bits & np.uint64(2**32 - 1), bits >> np.uint64(32)
    return ((high * np.uint64(n) + (low * np.uint64(n) >> np.uint64(32))) >> np.uint64(32)).astype(np.int64)
