"""--compile: the encoder's function of a part's token ids and mask, compiled by torch.compile into fewer kernels.

The loss, gathering, DDP and the optimiser stay outside, so any loss, any number of ranks and gradient caching work
unchanged. One compiled function serves every number of rows and columns. Evaluations run the plain kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from train.encoder.encoder import SentenceEncoder


def compile_encoder(
    encoder: SentenceEncoder, part: dict[str, Tensor], autocast: Callable[[], AbstractContextManager[Any]], graphs: bool
) -> str:
    """Set `encoder.compiled`, or return in one line why the encoder cannot be compiled.

    Args:
        encoder: an encoder in training mode, on its device.
        part: token ids and mask (B, L) to compile with. They decide which kernels are made, so that a run that is
            resumed repeats its bits only with the same B and L.
        autocast: the context of the encoder's precision.
        graphs: also replay the kernels as CUDA graphs.
    """
    torch._dynamo.config.optimize_ddp = False  # one graph, and not one for each of DDP's buckets
    mode = "reduce-overhead" if graphs else None
    run: Any = torch.compile(encoder.embed, fullgraph=True, dynamic=True, mode=mode)

    def embed(part: dict[str, Tensor]) -> Tensor:
        return run(part).clone()  # a later replay overwrites what a CUDA graph returns

    try:
        with torch.random.fork_rng(), torch.enable_grad():
            with autocast():
                rows = embed(part)
            rows.float().sum().backward()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # dynamo, inductor and the C++ compiler raise exceptions of many types
        return (str(error).strip() or type(error).__name__).splitlines()[0]
    finally:
        encoder.zero_grad()
    encoder.compiled = embed
    return ""
