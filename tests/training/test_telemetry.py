"""The messages of a run, and its shares of time, on a GPU by events that are read after they passed."""

import json

import pytest
import torch

from train.record import metrics
from train.record.checkpoint import Progress
from train.record.metrics import Bar, Recorder, Stopwatch


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


def test_a_cpu_is_timed_at_once():
    watch = Stopwatch(torch.device("cpu"))
    with watch.phase("data"):
        pass
    assert 0 < watch.seconds["data"] < 1
    watch.finish()
    assert list(watch.seconds) == ["data"]


def test_the_idle_share_is_what_no_phase_of_the_device_fills():
    watch = Stopwatch(torch.device("cpu"))
    watch.seconds.update(data=1.0, forward=3.0, backward=5.0)
    assert watch.idle_share(10.0) == 0.1
    watch._on_gpu = True
    assert watch.idle_share(10.0) == pytest.approx(0.2)


def test_metrics_are_readable_while_the_run_goes_on(tmp_path, monkeypatch):
    seconds = [0.0]
    monkeypatch.setattr(metrics.time, "monotonic", lambda: seconds[0])
    recorder = Recorder(tmp_path, Progress(), 100, {}, "dev")
    recorder.step(0, 1.0, 1e-3, False, 10.0)
    assert not (tmp_path / "metrics.jsonl").read_text()
    seconds[0] = metrics.FLUSH_SECONDS + 0.1
    recorder.step(1, 1.0, 1e-3, False, 10.0)
    lines = [json.loads(line)["step"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    recorder.close()
    assert lines == [0, 1]


def test_the_time_left_does_not_count_the_first_evaluation(tmp_path, monkeypatch):
    recorder = Recorder(tmp_path, Progress(), 100, {}, "dev")
    begun = recorder._bar.start_t
    monkeypatch.setattr(recorder._bar, "_time", lambda: begun + 1000)  # the evaluation before the first step
    recorder.step(0, 1.0, 1e-3, False, 10.0)
    recorder.step(1, 1.0, 1e-3, False, 10.0)
    recorder.close()
    assert recorder._bar.start_t == begun + 1000


@pytest.mark.slow
def test_a_reader_that_is_gone_stops_no_run(monkeypatch):
    class Gone:
        encoding = "utf-8"

        def write(self, text):
            raise BrokenPipeError

        flush = isatty = lambda self: False

    monkeypatch.setattr(metrics.sys, "stderr", Gone())
    bar = Bar(0, 9, "step")
    bar.write("a line", file=metrics.STDERR)
    bar.update(9)
    bar.close()
