"""Random numbers of the sentences of a step: functions of (seed, epoch, row, position, number) alone.

The generator is that of una_fast/_kernels/draws/random.pxd, for whole arrays. Letters: B sentences of a step, D width.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor

from una_fast.augment.row_draws import RowDraws


class EmbeddingDraws(RowDraws):
    """Random numbers for the sentences of a step: for embeddings, and for pairs of sentences. rows: int64 (B,)."""

    def normals(self, width: int) -> NDArray[np.float32]:
        """float32 (B, width): independent standard normal draws, by the inverse of the distribution function."""
        uniform = ((self.bits(width) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52  # inside (0, 1)
        return ndtri(uniform).astype(np.float32)

    def pairs(self) -> NDArray[np.int64]:
        """int64 (B, 2): for each row the places of two distinct rows of the step, all pairs equally likely. B >= 2.

        They are drawn among the rows in ascending order, so a row's pair does not depend on the order of the batch.
        """
        n = len(self.rows)
        first = self.below(n, 1, 0)[:, 0]
        second = self.below(n - 1, 1, 1)[:, 0]
        second += second >= first
        return np.argsort(self.rows)[np.stack([first, second], axis=1)]


def normals_like(z: Tensor, draws: EmbeddingDraws) -> Tensor:
    """Standard normal draws for embeddings (B, D), of their dtype and on their device."""
    return on_device(draws.normals(z.shape[1]), z).to(z.dtype)


def on_device(array: NDArray, like: Tensor) -> Tensor:
    """The array as a tensor on the device of `like`; the copy to a GPU is asynchronous."""
    tensor = torch.from_numpy(array)
    return tensor if like.device.type == "cpu" else tensor.pin_memory().to(like.device, non_blocking=True)
