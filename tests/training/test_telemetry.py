"""The messages of a run, and its shares of time, on a GPU by events that are read after they passed."""

import json
from types import SimpleNamespace

import pytest
import torch

from train.loop.distributed import Ranks, StopConsensus
from train.loop.telemetry import Telemetry
from train.record.checkpoint import Progress
from train.record.metrics import AsyncLossReader, Stopwatch
from una_fast.errors import InputError

RANKS = Ranks(0, 1, 0, torch.device("cpu"))


class Event:
    """A GPU's event, which has passed when the test says so."""

    clock = 0.0
    passed = False
    waited = 0

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.time = Event.clock

    def query(self):
        return Event.passed

    def synchronize(self):
        Event.waited += 1

    def elapsed_time(self, other):
        return 1000 * (other.time - self.time)


def test_a_gpu_is_timed_by_events_and_never_waited_for(monkeypatch):
    monkeypatch.setattr(torch.cuda, "Event", Event)
    watch = Stopwatch(torch.device("cuda", 0))
    for seconds in (2.0, 3.0):
        with watch.phase("forward"):
            Event.clock += seconds
    assert not watch.seconds and not Event.waited  # the GPU has not passed the events yet
    monkeypatch.setattr(Event, "passed", True)
    with watch.phase("backward"):
        Event.clock += 4.0
    assert watch.seconds == {"forward": 5.0, "backward": 4.0}
    monkeypatch.setattr(Event, "passed", False)
    with watch.phase("forward"):
        Event.clock += 1.0
    assert not Event.waited
    watch.finish()
    assert watch.seconds["forward"] == 6.0 and Event.waited == 1
    watch = Stopwatch(torch.device("cpu"))  # which is timed at once
    with watch.phase("data"):
        pass
    assert 0 < watch.seconds["data"] < 1


@pytest.fixture
def telemetry(tmp_path):
    """Telemetry of a run of 100 steps."""
    run = SimpleNamespace(output=str(tmp_path), dev="dev.tsv", report_to="none", precision="fp32")
    parts = {"ranks": RANKS, "plan": SimpleNamespace(n_steps=100), "watch": Stopwatch(RANKS.device)}
    return Telemetry(SimpleNamespace(run=run, **parts), Progress(), StopConsensus(RANKS))


def test_cosines_come_with_the_loss_and_one_that_is_no_number_is_an_error():
    losses = AsyncLossReader(torch.device("cpu"))
    losses.push(torch.tensor(2.0), {"step": 0}, torch.tensor([[0.5, 1.0]]))
    losses.push(torch.tensor(3.0), {"step": 1}, torch.tensor([[0.5, 1.0], [0.25, -0.25]]))
    plain, negatives = losses.due(all_of_them=True)
    assert plain == {"step": 0, "loss": 2.0, "cosine_positive": 0.75}
    assert negatives == {"step": 1, "loss": 3.0, "cosine_positive": 0.75, "cosine_negative": 0.0}
    losses.push(torch.tensor(torch.nan), {"step": 5}, torch.ones(1, 2))
    with pytest.raises(InputError, match="step 5: the loss is nan: try a lower --learning-rate"):
        next(losses.due())


def record(telemetry, step):
    telemetry._record(step=step, loss=1.0, negatives=False, lr=1e-3, sentences_per_second=10.0)


def test_metrics_are_readable_while_the_run_goes_on(tmp_path, telemetry):
    for step in range(2):
        record(telemetry, step)
        lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
        assert [json.loads(line)["step"] for line in lines] == [*range(step + 1)]
    telemetry.close()


def test_the_time_left_does_not_count_the_first_evaluation(telemetry, monkeypatch):
    begun = telemetry._bar.start_t
    monkeypatch.setattr(telemetry._bar, "_time", lambda: begun + 1000)  # the evaluation before the first step
    record(telemetry, 0)
    record(telemetry, 1)
    telemetry.close()
    assert telemetry._bar.start_t == begun + 1000
