"""--report-to: TensorBoard's files, a user-defined tracker, one that fails, and clear error messages."""

import json
from pathlib import Path
from typing import ClassVar

import pytest

from support.small_runs import at_step, metrics, options, train_here
from train.record.trackers import TRACKERS, make_trackers, start_trackers
from una_fast.errors import InputError, InputWarning


class Recorded:
    """A tracker that records its calls, and fails in the steps of `fails`."""

    calls: ClassVar[list] = []
    fails: ClassVar[tuple] = ()

    def start(self, settings, step, run_id):
        Recorded.calls.append(("start", settings["seed"], step, run_id))
        return "the id"

    def log(self, values, step):
        if step in self.fails:
            raise ConnectionError("no server")
        Recorded.calls.append((step, values))

    def finish(self):
        Recorded.calls.append("finish")


OWN = f"{__name__}:Recorded"


@pytest.fixture
def calls():
    """Clear the calls that Recorded has recorded, and return their list."""
    Recorded.calls.clear()
    return Recorded.calls


def test_a_resumed_run_continues_in_the_same_trackers(tmp_path, tiny_model, calls, monkeypatch):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # each import takes a second
    from tensorboard.summary.writer import event_file_writer

    # files are read in the order of their names, in which number 10 of one second would come before number 9
    monkeypatch.setattr(event_file_writer, "_global_uid", event_file_writer.AtomicCounter(0))
    values = options(tmp_path, tiny_model, max_steps=6, eval_every=2, report_to=f"tensorboard,{OWN}")
    with at_step(3, lambda trainer: 1 / 0), pytest.raises(ZeroDivisionError):
        train_here(values)
    assert train_here({**values, "resume": True}).status == "finished"
    assert [call for call in calls if call[0] == "start"] == [("start", 42, 0, None), ("start", 42, 2, "the id")]
    assert calls[-1] == "finish" and json.loads((tmp_path / "run" / "trackers.json").read_text()) == {OWN: "the id"}
    lines = metrics(values["output"])
    logged = dict(call for call in calls if isinstance(call[0], int) and "lr" in call[1])
    steps = {line["step"]: line for line in lines if "loss" in line}
    assert {step: one["lr"] for step, one in logged.items()} == {step: line["lr"] for step, line in steps.items()}
    assert {*logged[0]} == {"loss/negatives", "lr", "cosine_positive", "cosine_negative", "sentences_per_second"}
    board = EventAccumulator(str(tmp_path / "run" / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    assert {*board.Tags()["scalars"]} == {*logged[0], *logged[1], "dev/dev"}
    assert [event.step for event in board.Scalars("lr")] == [*range(6)]  # none twice
    scored = {line["step"]: line["dev/dev"] for line in lines if "dev/dev" in line}
    assert {event.step: event.value for event in board.Scalars("dev/dev")} == pytest.approx(scored)
    assert [event.value for event in board.Scalars("loss/plain")] == pytest.approx(
        [line["loss"] for line in steps.values() if not line["negatives"]]
    )


@pytest.mark.parametrize(("fails", "stopped_at"), [(1, None), (2, 3)], ids=["first run", "after a resume"])
def test_a_tracker_that_fails_is_dropped_and_the_run_continues(
    tmp_path, tiny_model, calls, monkeypatch, capsys, fails, stopped_at
):
    """After a resume, the score of step 2 is logged again."""
    values = options(tmp_path, tiny_model, max_steps=4, eval_every=2, report_to=OWN)
    if stopped_at:
        with at_step(stopped_at, lambda trainer: 1 / 0), pytest.raises(ZeroDivisionError):
            train_here(values)
        calls.clear()
    monkeypatch.setattr(Recorded, "fails", (fails,))
    assert train_here({**values, "resume": bool(stopped_at)}).status == "finished"
    assert [call[0] for call in calls] == ["start"] + (
        [] if stopped_at else [0, 0]
    )  # the score of the start, and a step
    assert f"warning: --report-to {OWN}: ConnectionError('no server')" in capsys.readouterr().err
    assert not (Path(values["output"]) / "tensorboard").exists()


@pytest.mark.slow
def test_offline_weights_and_biases_continues_with_the_same_id(tmp_path):
    import wandb

    settings, shown = {"output": str(tmp_path), "seed": 1}, {"lr": 0.5, "loss/plain": 0.25}
    for step in (0, 2):
        trackers = make_trackers("wandb")
        start_trackers(trackers, settings, step)
        tracker = trackers["wandb"]
        tracker.log(shown, step)
        tracker.finish()
    wandb.teardown()  # ends wandb's background process, which then has written everything
    run_id = json.loads((tmp_path / "trackers.json").read_text())["wandb"]
    records = [path.read_bytes() for path in tmp_path.glob(f"wandb/offline-run-*/run-{run_id}.wandb")]
    assert len(records) == 2 and all(b"loss/plain" in record for record in records)


def test_names_are_checked_before_training(monkeypatch):
    assert make_trackers("none") == make_trackers("") == {}
    assert [*make_trackers(f"tensorboard, {OWN},tensorboard")] == ["tensorboard", OWN]
    monkeypatch.setitem(TRACKERS, "no_such_package", Recorded)
    for name, named in (
        ("tensorbord", "tensorboard, wandb"), ("no_such_package", "pip install no_such_package"),
        ("no_such_module:Tracker", "'no_such_module'"), ("codecs:lookup", "codecs:lookup.*TypeError"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=named):
            make_trackers(name)


def test_a_tracker_that_cannot_start_is_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(Recorded, "start", lambda *_: 1 / 0)
    trackers = make_trackers(OWN)
    with pytest.warns(InputWarning, match=f"--report-to {OWN}: .*ZeroDivisionError"):
        start_trackers(trackers, {"output": str(tmp_path)}, 0)
    assert trackers == {}
