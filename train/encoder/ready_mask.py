"""Checks whether a backbone accepts its attention mask in the form (B, 1, 1, L) that its attention works with."""

from __future__ import annotations

import torch
from torch import nn


def takes_ready_mask(backbone: nn.Module) -> bool:
    """True if the model gives the same output for a boolean mask (B, 1, 1, L) as for an int64 mask (B, L).

    A model that gets (B, L) first checks whether the mask holds a zero, and on a GPU the CPU waits for the answer.
    """
    if getattr(backbone.config, "_attn_implementation", None) != "sdpa":
        return False
    ids = torch.arange(8).view(2, 4)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    training, device = backbone.training, next(backbone.parameters()).device
    try:
        with torch.no_grad():
            backbone.eval()
            plain, ready = (
                backbone(input_ids=ids.to(device), attention_mask=given.to(device)).last_hidden_state
                for given in (mask, mask[:, None, None].bool())
            )
        tokens = mask.bool()
        return torch.allclose(plain[tokens], ready[tokens], rtol=1e-4, atol=1e-5)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return False
    finally:
        backbone.train(training)
