"""Every stop is quick and quiet, for any sender, receiver and moment of the signal."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support import rank_processes
from support import small_runs as training
from support.small_runs import finish, options, start, start_prepared, wait_for_step
from train.launch import run as launcher
from train.launch.ranks import RankProcesses, start_fork_server
from train.launch.run import train_on_ranks
from train.loop.loop import Outcome
from train.record.checkpoint import Progress, read_pointer
from train.signals import Stopped, handled, held_back, raise_stopped
from una_fast.errors import InputError

LONGEST = 20  # seconds for a stop on a busy machine; a quiet one takes less than one


def sent(process, number, to_group=False):
    """Send a signal to a run, or to its process group; returns the seconds until it ended, its exit code and output."""
    begun = time.monotonic()
    os.killpg(process.pid, number) if to_group else process.send_signal(number)
    code, said = finish(process)
    return time.monotonic() - begun, code, said


def assert_quiet(said):
    for noise in ("Traceback", "leaked", "forcefully", "resource_tracker", "KeyboardInterrupt"):
        assert noise not in said, said


@pytest.mark.parametrize(
    ("nproc", "name", "to_group"),
    [
        (2, "SIGINT", True), (2, "SIGTERM", False), (1, "SIGUSR1", True),
        pytest.param(1, "SIGINT", False, marks=pytest.mark.slow),
        pytest.param(1, "SIGTERM", True, marks=pytest.mark.slow),
        pytest.param(2, "SIGHUP", True, marks=pytest.mark.slow),
        pytest.param(1, "SIGQUIT", False, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_a_signal_saves_and_ends_within_seconds(tmp_path, tiny_model, nproc, name, to_group):
    values = options(tmp_path, tiny_model, nproc=nproc, epochs=100_000, eval_every=1000, save_every=10)
    process = start_prepared(values)
    wait_for_step(process, Path(values["output"]), 10)
    number = getattr(signal, name)
    seconds, code, said = sent(process, number, to_group)
    assert code == 128 + number
    step = read_pointer(Path(values["output"])).progress.step
    assert f"stopped by {name}: go on from step {step} with --resume" in said
    assert_quiet(said)
    assert seconds < LONGEST


@pytest.mark.slow
def test_timeout_of_the_shell_loses_nothing(tmp_path, tiny_model):
    """`timeout` signals the command, then its process group, as many schedulers do."""
    values = options(tmp_path, tiny_model, epochs=100_000, eval_every=1000, save_every=10)
    output = Path(values["output"])
    process = start(values, "timeout", "--signal=TERM", "3600")
    wait_for_step(process, output, 10)
    _, code, said = sent(process, signal.SIGTERM)
    assert "stopped by SIGTERM: go on from step" in said and code in (124, 128 + signal.SIGTERM)
    assert_quiet(said)


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.3, 4.0])
def test_a_signal_in_the_first_seconds_is_one_sentence(tmp_path, tiny_model, after):
    process = start(options(tmp_path, tiny_model, nproc=2, epochs=100_000))
    while b"SigCgt" not in (status := Path(f"/proc/{process.pid}/status").read_bytes()) or not caught(status):
        time.sleep(0.01)  # Python needs a moment to start
    time.sleep(after)
    _, code, said = sent(process, signal.SIGINT)
    assert code == 128 + signal.SIGINT
    assert said.count("stopped by SIGINT") == 1
    assert_quiet(said)


def caught(status):
    """True if a process handles SIGTERM."""
    mask = int(next(line for line in status.splitlines() if line.startswith(b"SigCgt")).split()[1], 16)
    return mask >> (signal.SIGTERM - 1) & 1


@pytest.mark.slow
def test_nohup_keeps_a_run_alive(monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with handled(raise_stopped):
            os.kill(os.getpid(), signal.SIGHUP)
            with pytest.raises(Stopped, match="SIGTERM"):
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(1)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_blocked_signals_arrive_where_they_are_handled():
    noted = []
    handlers = signal.getsignal(signal.SIGUSR1)
    with held_back():
        signal.raise_signal(signal.SIGUSR1)  # sent to this thread, which blocks it; a thread of a library may not
        assert not noted
        with handled(noted.append):
            time.sleep(0)
        assert noted == [signal.SIGUSR1]
        assert signal.SIGUSR1 in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.getsignal(signal.SIGUSR1) == handlers


class SlowRanks:
    """Stands in for RankProcesses: ranks that stop slowly, while Ctrl-C comes again and again."""

    ready = (0,)

    def __init__(self, function, arguments, environments):
        self.signals, self.running, self.killed, self.results = [], True, False, {}
        SlowRanks.last = self

    def receive(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)

    def dead(self):
        return None

    def signal(self, number):
        self.signals.append(number)

    def kill(self):
        self.killed = True


@pytest.fixture
def slow_ranks(monkeypatch):
    monkeypatch.setattr(launcher, "RankProcesses", SlowRanks)
    monkeypatch.setattr(launcher, "start_fork_server", lambda modules: None)


RUN = {"corpus": "c", "model": "m", "output": "o"}


@pytest.mark.slow
def test_a_second_ctrl_c_ends_at_once(slow_ranks):
    outcome = train_on_ranks(training.make_run(RUN), "")
    assert outcome == (Outcome("stopped", Progress(), signal.SIGINT), signal.SIGINT)
    assert SlowRanks.last.killed and SlowRanks.last.signals == [signal.SIGINT]


def test_signals_before_training_kill_what_has_nothing_to_save(slow_ranks, monkeypatch):
    monkeypatch.setattr(SlowRanks, "ready", ())
    with pytest.raises(Stopped):
        train_on_ranks(training.make_run(RUN), "")
    assert SlowRanks.last.killed and not SlowRanks.last.signals


def test_a_socket_that_cannot_be_made_is_said(monkeypatch):
    def fail():
        raise OSError("AF_UNIX path too long")

    monkeypatch.setattr("train.launch.ranks.forkserver.ensure_running", fail)
    with pytest.raises(InputError, match=r"TMPDIR: .*AF_UNIX path too long.*: name a shorter one"):
        start_fork_server([])


class TestRankProcesses:
    """The processes themselves, with functions in place of a training."""

    @staticmethod
    def end_of(function, arguments):
        """(results by rank, the ranks that were ready, what `dead` says) once all ranks have ended."""
        ranks = RankProcesses(function, arguments, [{"OWN": str(rank)} for rank in range(len(arguments))])
        while ranks.running:
            ranks.receive()
        return ranks.results, {*ranks.ready}, ranks.dead()

    def test_they_tell_that_they_are_ready_return_objects_and_have_their_environment(self):
        said = self.end_of(rank_processes.returns, [("a",), ("b",)])
        assert said == ({0: ("a", "0"), 1: ("b", "1")}, {0, 1}, None)

    def test_the_last_words_of_a_rank_that_dies(self):
        results, _, death = self.end_of(rank_processes.divides, [(1,), (0,)])
        assert results == {0: 1.0} and death == (1, "ZeroDivisionError: division by zero")

    def test_a_killed_rank(self):
        assert self.end_of(rank_processes.killed, [()])[2] == (0, "exit code -9")


@pytest.mark.slow
def test_a_gone_terminal_stops_nothing(monkeypatch):
    read, write = os.pipe()
    os.close(read)
    code = "from train.signals import tell_user; tell_user('a line'); print('went on')"
    done = subprocess.run(
        [training.sys.executable, "-c", code], cwd=training.ROOT, stderr=write, stdout=subprocess.PIPE, text=True
    )
    os.close(write)
    assert done.stdout == "went on\n" and done.returncode in (0, 120)  # 120: Python could not flush stderr itself
