"""AdamW's groups, and learning rates against transformers' schedules."""

import pytest
import torch
from torch import nn
from transformers.optimization import get_scheduler

from train.config.run import make_run
from train.loop.trainer import adamw, learning_rate

VALUES = {"corpus": "c.txt", "model": "m", "output": "o", "learning_rate": 1e-3}
NAMES = {"linear": "linear", "cosine": "cosine", "constant": "constant_with_warmup"}


@pytest.mark.parametrize("schedule", NAMES)
@pytest.mark.parametrize(("warmup_steps", "n_warmup"), [(0, 0), (3, 3), (0.25, 5), (0.01, 1)])
def test_rates_are_those_of_transformers(schedule, warmup_steps, n_warmup):
    run = make_run({**VALUES, "schedule": schedule, "warmup_steps": warmup_steps})
    optimizer = torch.optim.AdamW([nn.Parameter(torch.zeros(1))], lr=1e-3)
    theirs = get_scheduler(NAMES[schedule], optimizer, n_warmup, 20)
    for step in range(20):
        assert learning_rate(run, step, 20) == pytest.approx(theirs.get_last_lr()[0], rel=1e-12)
        optimizer.step()
        theirs.step()


def test_biases_and_layer_norm_do_not_decay():
    model = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), nn.Linear(3, 1))
    model[2].bias.requires_grad_(False)
    groups = adamw(make_run({**VALUES, "weight_decay": 0.1}), model).param_groups
    assert [[tuple(weight.shape) for weight in group["params"]] for group in groups] == [[(3, 2), (1, 3)], [(3,)] * 3]
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0]
