"""The cosines of a step's views, as the loss gets them, are in that step's line of metrics.jsonl."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from support.fake_tokens import train
from support.small_runs import options, train_here
from train.loop.data import Batch
from train.record.metrics import AsyncLossReader


def test_cosines_are_of_anchor_with_positive_and_with_negative(tiny_model: Path) -> None:
    _, trainer = train(tiny_model)
    views = torch.randn(4, 5, 32, generator=torch.Generator().manual_seed(0))
    for n_views in (4, 2):
        batch = Batch(0, 0, np.arange(5), n_views, [], torch.arange(5 * n_views))
        unit = views.numpy() / np.linalg.norm(views.numpy(), axis=-1, keepdims=True)
        step = trainer._compare(views[:n_views].flatten(0, 1), batch)
        assert step.cosines.numpy() == pytest.approx((unit[:1] * unit[1:3])[: n_views - 1].sum(-1), abs=1e-6)


def test_they_come_with_the_loss() -> None:
    losses = AsyncLossReader(torch.device("cpu"))
    losses.push(torch.tensor(2.0), {"step": 0}, torch.tensor([[0.5, 1.0]]))
    losses.push(torch.tensor(3.0), {"step": 1}, torch.tensor([[0.5, 1.0], [0.25, -0.25]]))
    plain, negatives = losses.due(all_of_them=True)
    assert plain == {"step": 0, "loss": 2.0, "cosine_positive": 0.75}
    assert negatives == {"step": 1, "loss": 3.0, "cosine_positive": 0.75, "cosine_negative": 0.0}


def test_a_run_writes_them(tmp_path: Path, tiny_model: Path) -> None:
    train_here(options(tmp_path, tiny_model, max_steps=6))
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "loss" in line]
    assert ["cosine_negative" in step for step in steps] == [step["negatives"] for step in steps]
    assert all(-1 <= step["cosine_positive"] <= 1 for step in steps) and any(step["negatives"] for step in steps)
