"""AdamW and its learning rate, with the names and the formulas of transformers' `TrainingArguments`."""

from __future__ import annotations

import math

import torch
from torch import nn

from train.config.run import Run


def adamw(run: Run, model: nn.Module) -> torch.optim.AdamW:
    """AdamW of a model's trained weights; --weight-decay leaves biases and the weights of LayerNorm out."""
    assert run.learning_rate is not None
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    norms = tuple(f"{name}." for name, module in model.named_modules() if isinstance(module, nn.LayerNorm))
    plain = [name for name in trained if name.endswith("bias") or name.startswith(norms)]
    decayed = [name for name in trained if name not in plain]
    groups = [
        {"params": [trained[name] for name in names], "weight_decay": decay}
        for names, decay in ((decayed, run.weight_decay), (plain, 0.0))
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=run.learning_rate, fused=True)


def learning_rate(run: Run, step: int, n_steps: int) -> float:
    """The learning rate of optimiser step `step` of `n_steps`, counted from 0.

    It rises linearly from 0 over --warmup-steps w, then stays, or falls to 0 with f = (step - w) / (n_steps - w): as
    1 - f if linear, as (1 + cos(pi f)) / 2 if cosine. These are transformers' `get_*_schedule_with_warmup`.
    --warmup-steps below 1 is a share of all steps, rounded up.
    """
    assert run.learning_rate is not None
    warmup = math.ceil(run.warmup_steps * n_steps) if run.warmup_steps < 1 else int(run.warmup_steps)
    if step < warmup:
        return run.learning_rate * step / warmup
    passed = (step - warmup) / max(1, n_steps - warmup)
    factor = {"constant": 1.0, "linear": 1 - passed, "cosine": (1 + math.cos(math.pi * passed)) / 2}
    return run.learning_rate * factor[run.schedule or "linear"]
