"""The loop alone, with stand-ins that record their calls: the order of the calls, and how the loop ends."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from train.loop.distributed import FAILED, Ranks, StopConsensus
from train.loop.loop import Loop
from train.loop.trainer import Step, Trainer
from train.record.checkpoint import Progress
from train.record.metrics import Stopwatch
from una_fast.errors import InputError

RANKS = Ranks(0, 1, 0, torch.device("cpu"))


class Part:
    """Records each call as "name.method" and returns the test's answer for it, a value or a function's result."""

    def __init__(self, name, calls, **answers):
        self._name, self._calls, self._answers = name, calls, answers

    def __getattr__(self, method):
        if method.startswith("_"):
            raise AttributeError(method)
        answer = self._answers.get(method)

        def call(*arguments, **named):
            if method != "timed":
                self._calls.append(f"{self._name}.{method}")
            return answer(*arguments, **named) if callable(answer) else answer

        return call


def loop_of(calls, stop, steps=3, wise_ft=(), patience=0, **answers):
    """A loop of `steps` steps, evaluated before the first and after every second one, and saved after each."""
    plan = SimpleNamespace(batches=lambda start: ((i, 0, np.arange(2)) for i in range(start, steps)), n_steps=steps)
    scores = iter((0.5, 0.6, 0.1, 0.7, 0.65, 0.2, 0.3, 0.1))

    @contextmanager
    def blended(weight):
        calls.append(f"blend {weight}")
        yield
        calls.append("end")

    def make(step, epoch, rows):
        return SimpleNamespace(step=step, to=lambda device: step)

    def take(step):
        calls.append(f"step {step}")
        return Step(torch.tensor(1.0), torch.ones(1, 2))

    def score(embed, threads):
        calls.append("score")
        return next(scores)

    saves = {"encoder": lambda name, note: calls.append(f"{name} of {note['step']}"), **answers.get("saves", {})}
    run = SimpleNamespace(eval_every=2, save_every=1, wise_ft=wise_ft, early_stopping_patience=patience)
    trainer = SimpleNamespace(ranks=RANKS, plan=plan, step=take, run=run, watch=Stopwatch(RANKS.device))
    trainer.blended, trainer.encoder = blended, torch.nn.Identity()
    return Loop(
        trainer,
        SimpleNamespace(make=make),
        Progress(),
        score,
        Part("saves", calls, **saves),
        Part("telemetry", calls, timed=iter, **answers.get("telemetry", {})),
        stop,
    )


@pytest.fixture
def stop():
    return StopConsensus(RANKS)


def test_the_order_of_calls(stop):
    calls = []
    outcome = loop_of(calls, stop).run()
    assert outcome.status == "finished"
    assert outcome.progress == Progress(3, 0.5, 0.6, 2, 0.1, 3)
    evaluation = ["telemetry.catch_up", "score", "telemetry.evaluation"]
    save = ["telemetry.catch_up", "saves.last"]

    def best(step):
        return [*evaluation[:2], "saves.encoder", f"best of {step}", evaluation[2]]

    assert calls == [
        *best(0), "saves.last", "step 0", "telemetry.step", *save, "step 1",
        "telemetry.step", *best(2), *save, "step 2", "telemetry.step", *evaluation, *save, "saves.encoder", "last of 3",
        "saves.wait", "telemetry.close", "saves.wait",
    ]  # fmt: skip


def test_a_loss_that_is_no_number_ends_the_run_with_the_save_before_it(stop):
    calls = []

    def refuse(batch, step):
        raise InputError("the loss is nan")

    outcome = loop_of(calls, stop, telemetry={"step": refuse}).run()
    assert (outcome.status, outcome.message) == ("failed", "the loss is nan")
    assert calls.count("saves.last") == 1  # the one before the first step
    assert calls[-2:] == ["telemetry.close", "saves.wait"]


def test_a_rank_whose_last_write_fails_tells_the_others(stop, monkeypatch):
    """All ranks exchange their state at the end; without it, the other ranks would wait for the failed one."""
    asked = []
    now = stop.now
    monkeypatch.setattr(stop, "now", lambda: asked.append(now()) or asked[-1])

    def fail():
        with stop.guard():
            raise OSError("the disk is full")

    outcome = loop_of([], stop, saves={"wait": fail}).run()
    assert (outcome.status, outcome.message) == ("failed", "the disk is full")
    assert asked[-1] == FAILED and len(asked) == 4  # after each of three steps, and at the end


def test_the_first_error_is_the_one_that_is_told(stop):
    for message in ("first", "second"):
        with stop.guard():
            raise OSError(message)
    assert str(stop.error) == "first" and stop.now() == FAILED


@pytest.mark.parametrize(("patience", "taken"), [(1, 4), (2, 10), (3, 12)])
def test_patience_ends_the_run_and_its_blends_are_scored(stop, patience, taken):
    """Scores of steps 0, 2, ... are 0.5, 0.6, 0.1, 0.7, 0.65, 0.2 and 0.3."""
    calls = []
    outcome = loop_of(calls, stop, steps=30, patience=patience, wise_ft=(0.5,)).run()
    assert (outcome.status, outcome.progress.step) == ("finished", taken)
    assert f"step {taken - 1}" in calls and f"step {taken}" not in calls
    assert calls.index("blend 0.5") > calls.index("telemetry.say")
    again = loop_of([], StopConsensus(RANKS), steps=30, patience=patience)
    again.progress = loop_of([], StopConsensus(RANKS), steps=30, patience=patience).run().progress
    assert again.run().progress.step == taken


def test_blends_are_scored_after_the_last_step_and_the_best_of_all_is_kept():
    calls = []
    loop = loop_of(calls, Part("stop", calls, now=0), wise_ft=(0.25, 0.5))
    outcome = loop.run()
    at = calls.index("blend 0.25")
    own = [call for call in calls[at:] if not call.startswith(("telemetry", "stop", "saves"))]
    assert own[:6] == ["blend 0.25", "score", "best of 3", "end", "blend 0.5", "score"]
    assert "step 2" in calls[:at] and "best of 3" not in own[6:]
    assert (outcome.progress.best_score, outcome.progress.last_score) == (0.7, 0.1)


def test_blended_weights_lie_between_start_and_end_and_the_end_comes_back():
    start, end = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    before = end.weight.clone()
    trainer = SimpleNamespace(start=start, encoder=end)
    with Trainer.blended(trainer, 0.25):
        assert torch.allclose(end.weight, 0.75 * start.weight + 0.25 * before)
    assert torch.equal(end.weight, before)
