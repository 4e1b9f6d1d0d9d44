"""Whether a backbone takes a mask in the form that its attention works with."""

from __future__ import annotations

import torch
from torch import nn


def takes_ready_mask(backbone: nn.Module) -> bool:
    """True if the model takes a mask that is ready for its attention, (B, 1, 1, L) of booleans, as it takes (B, L).

    Models that get (B, L) look whether it holds a zero at all, and a GPU's answer makes the processor wait for it.
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
