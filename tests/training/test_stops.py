"""Every stop is quick and quiet, for any sender, receiver and moment of the signal."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support import small_runs as training
from support.small_runs import finish, options, start, wait_for_step
from train import ddp
from train.config.run import Run
from train.launch import ranks
from train.record.checkpoint import read_pointer
from train.signals import Stopped, handled, held_back, raise_stopped

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
        (2, "SIGINT", True),
        *[
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((2, "SIGTERM", False), (1, "SIGUSR1", True), (2, "SIGHUP", True), (1, "SIGQUIT", False))
        ],
    ],
)
def test_a_signal_saves_and_ends_within_seconds(tmp_path, tiny_model, nproc, name, to_group):
    values = options(tmp_path, tiny_model, nproc=nproc, epochs=100_000, eval_every=1000, save_every=10)
    process = start(values)
    wait_for_step(process, Path(values["output"]), 10)
    number = getattr(signal, name)
    seconds, code, said = sent(process, number, to_group)
    assert code == 128 + number
    step = read_pointer(Path(values["output"])).progress.step
    assert f"stopped by {name}: go on from step {step} with --resume" in said
    assert_quiet(said)
    assert seconds < LONGEST


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


class TestProcesses:
    """The processes themselves, with other work than a training."""

    @pytest.mark.parametrize(
        ("work", "code", "said"),
        [
            ("number", 5, ""),  # the highest of all ranks
            ("divides", 1, "error: rank 1 died: exit code 1: no checkpoint was saved yet"),
            ("is_killed", 1, "error: rank 1 died: exit code -9: no checkpoint"),
            ("sleeps", 143, "stopped by SIGTERM: no checkpoint"),  # before training, with nothing to save
            ("saves_for_long", 130, "SIGINT: the run stops after this step; Ctrl-C ends it at once"),  # at the second
        ],
    )
    def test_the_end_of_a_rank_is_the_end_of_all(self, work, code, said, tmp_path, monkeypatch, capfd):
        monkeypatch.setattr(ranks, "WORK", f"support.rank_processes:{work}")
        assert ranks.launch(Run(nproc=2, output=str(tmp_path))) == code
        assert said in capfd.readouterr().err


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


def test_a_system_that_cannot_block_signals_is_refused(monkeypatch, capsys):
    monkeypatch.delattr(signal, "pthread_sigmask")
    with pytest.raises(SystemExit) as left:
        ddp.main([])
    said = capsys.readouterr().err
    assert (
        left.value.code == 2 and said.startswith("error: this command needs Linux or macOS") and said.count("\n") == 1
    )
