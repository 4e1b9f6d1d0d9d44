"""The training loop with stand-ins for all other parts: how it ends, and its messages."""

import contextlib
import json
import math
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from train.distributed import Ranks, StopConsensus
from train.loop.loop import Loop
from train.loop.telemetry import StepReader, Telemetry
from train.loop.trainer import Step
from train.losses import loss_spec
from train.record.checkpoint import Progress
from una_fast.errors import InputError

RANKS = Ranks(0, 1, 0, torch.device("cpu"))
SCORES = (0.5, 0.6, 0.1, 0.7, 0.65, 0.2, 0.3, 0.1)


def loop_of(parts, stop, steps=3, patience=0, scores=SCORES):
    """Return a loop that is evaluated at first and after every second step. `parts`, a Mock, records its calls."""
    plan = SimpleNamespace(batches=lambda start: ((i, 0, np.arange(2)) for i in range(start, steps)), n_steps=steps)
    parts.score.side_effect = scores
    parts.step.return_value = Step(torch.tensor(1.0), torch.ones(1, 2))
    parts.telemetry.timed = iter
    run = SimpleNamespace(eval_every=2, save_every=1, early_stopping_patience=patience)
    trainer = SimpleNamespace(
        ranks=RANKS,
        plan=plan,
        step=parts.step,
        run=run,
        evaluating=contextlib.nullcontext,
        blended=contextlib.nullcontext,
    )
    maker = SimpleNamespace(make=lambda step, *_: SimpleNamespace(step=step, to=lambda device: step))
    return Loop(trainer, maker, Progress(), parts.score, parts.saves, parts.telemetry, stop)


@pytest.fixture
def stop():
    return StopConsensus(RANKS)


def test_a_nan_loss_ends_the_run_without_another_save(stop):
    parts = Mock()
    parts.telemetry.step.side_effect = InputError("the loss is nan")
    with pytest.raises(InputError, match="the loss is nan"):
        loop_of(parts, stop).run()
    assert parts.saves.last.call_count == 1  # the one before the first step
    assert [name for name, *_ in parts.mock_calls[-2:]] == ["telemetry.close", "saves.wait"]


def test_without_a_finite_score_best_is_the_last_encoder(stop):
    parts = Mock()
    assert loop_of(parts, stop, scores=[math.nan] * 8).run()
    assert ("best", 3) in [(name, note["step"]) for (name, note), _ in parts.saves.encoder.call_args_list]


def test_a_rank_whose_last_write_fails_ends_with_an_error(stop, monkeypatch):
    asked = []
    check = stop.check
    monkeypatch.setattr(stop, "check", lambda: asked.append(stop.error) or check())

    def fail():
        with stop.guard():
            raise OSError("the disk is full")

    with pytest.raises(InputError, match="the disk is full"):
        loop_of(Mock(**{"saves.wait": fail}), stop).run()
    assert asked[:3] == [None] * 3 and len(asked) == 4  # after each of three steps, and at the end


def test_the_first_of_several_errors_is_raised(stop):
    for message in ("first", "second"):
        with stop.guard():
            raise OSError(message)
    with pytest.raises(InputError, match="first"):
        stop.check()


@pytest.mark.parametrize(("patience", "taken"), [(1, 4), (2, 10), (3, 12)])
def test_patience_ends_the_run(stop, patience, taken):
    """Scores of steps 0, 2, ... are 0.5, 0.6, 0.1, 0.7, 0.65, 0.2 and 0.3."""
    parts = Mock()
    loop = loop_of(parts, stop, steps=30, patience=patience)
    assert loop.run() is True and loop.progress.step == taken
    assert [step for (step,), _ in parts.step.call_args_list] == [*range(taken)]
    again, first = (loop_of(Mock(), StopConsensus(RANKS), steps=30, patience=patience) for _ in range(2))
    assert first.run() is True
    again.progress = first.progress
    assert again.run() is True and again.progress.step == taken


@pytest.fixture
def telemetry(tmp_path):
    """Telemetry of a run of 100 steps."""
    run = SimpleNamespace(output=str(tmp_path), dev="dev.tsv", report_to="none", precision="fp32", margin_most=0.5)
    parts = {"ranks": RANKS, "plan": SimpleNamespace(n_steps=100), "loss_spec": loss_spec("margin")}
    return Telemetry(SimpleNamespace(run=run, **parts), Progress(), StopConsensus(RANKS), {})


def test_records_contain_loss_and_cosines_and_a_nan_loss_is_an_error():
    reader = StepReader(torch.device("cpu"))
    reader.push(torch.tensor(2.0), {"step": 0}, torch.tensor([[0.5, 1.0]]), reader.now())
    reader.push(torch.tensor(3.0), {"step": 1}, torch.tensor([[0.5, 1.0], [0.25, -0.25]]), reader.now())
    plain, negatives = reader.due(all_of_them=True)
    assert plain.pop("sentences_per_second") > 0 and negatives.pop("sentences_per_second") > 0
    assert plain == {"step": 0, "loss": 2.0, "cosine_positive": 0.75}
    assert negatives == {"step": 1, "loss": 3.0, "cosine_positive": 0.75, "cosine_negative": 0.0}
    reader.push(torch.tensor(torch.nan), {"step": 5}, torch.ones(1, 2), reader.now())
    with pytest.raises(InputError, match="step 5: the loss is nan: try a lower --learning-rate"):
        next(reader.due())


def test_negatives_beyond_the_margin_in_the_first_step_get_a_warning(telemetry, capsys):
    telemetry._warn_of_far_negatives(torch.ones(4), torch.tensor([0.6, 0.4, -1.0, 0.5]))
    said = capsys.readouterr().err
    assert "--margin-most 0.5: 2 of 4 negatives of the first step are already farther" in said
    telemetry._warn_of_far_negatives(torch.ones(4), torch.full((4,), 0.5))
    assert "--margin-most" not in capsys.readouterr().err
    telemetry.close()


def record(telemetry, step):
    telemetry._record(step=step, loss=1.0, negatives=False, lr=1e-3, sentences_per_second=10.0)


def test_metrics_are_readable_while_the_run_goes_on(tmp_path, telemetry):
    for step in range(2):
        record(telemetry, step)
        lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
        assert [json.loads(line)["step"] for line in lines] == [*range(step + 1)]
    telemetry.close()


def test_the_remaining_time_ignores_the_first_evaluation(telemetry, monkeypatch):
    begun = telemetry._bar.start_t
    monkeypatch.setattr(telemetry._bar, "_time", lambda: begun + 1000)  # the evaluation before the first step
    record(telemetry, 0)
    record(telemetry, 1)
    telemetry.close()
    assert telemetry._bar.start_t == begun + 1000
