"""A run whose rate, clipping and end depend on all its steps so far: killed and resumed, and on two ranks."""

import os
import signal
from pathlib import Path

import pytest

from support.small_runs import assert_same_run, finish, metrics, options, start_prepared, wait_for_step

pytestmark = pytest.mark.slow
SETTINGS = {
    "warmup_steps": 5, "weight_decay": 0.1, "max_grad_norm": 0.5, "schedule": "cosine", "early_stopping_patience": 10,
    "epochs": 40, "dropout": 0.0,
}  # fmt: skip


def stopped_early(values):
    """The output of a run that ends by itself, long before its 360 steps."""
    code, said = finish(start_prepared(values))
    assert code == 0 and "early stopping: no better dev score" in said, said
    return values["output"]


@pytest.fixture(scope="module")
def values(tmp_path_factory, tiny_model):
    return options(tmp_path_factory.mktemp("schedule"), tiny_model, **SETTINGS)


@pytest.fixture(scope="module")
def whole(values):
    return stopped_early(values)


def test_a_killed_run_ends_with_the_same_bits(values, whole):
    values = {**values, "output": f"{whole}-killed"}
    process = start_prepared(values)
    wait_for_step(process, Path(values["output"]), 6)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert_same_run(stopped_early({**values, "resume": True}), whole)


def test_two_ranks_agree(values, whole):
    ranks = stopped_early({**values, "output": f"{whole}-ranks", "nproc": 2})
    one, two = ([line["loss"] for line in metrics(output) if "loss" in line] for output in (whole, ranks))
    assert two == pytest.approx(one, abs=1e-3)
