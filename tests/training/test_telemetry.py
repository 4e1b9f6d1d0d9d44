"""Where the time goes: on a GPU by events on its own clock, read when they have passed."""

import pytest
import torch

from train.record.timing import Stopwatch


class Event:
    """A GPU's event: passes when the test lets it, and knows when it was recorded."""

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
    assert not watch.seconds and not Event.waited  # the GPU is not there yet
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


def test_a_phase_that_fails_is_not_counted():
    watch = Stopwatch(torch.device("cpu"))
    with pytest.raises(ZeroDivisionError), watch.phase("data"):
        raise ZeroDivisionError
    assert not watch.seconds
