"""Training commands in processes of their own, forked from a process that has already imported torch.

Imports take 3 s of processor time in a command, and as much in the fork server of its ranks. Tests of a run, not of its
start, fork both instead: they get the same processes in the same process groups, with the same signals.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from multiprocessing import connection, util

from train.launch import ranks
from train.signals import STOP_SIGNALS

PRELOADED = [
    "train.launch.run", "train.launch.seeds", "train.launch.finish", "support.prepared_commands",
    "transformers.models.bert.modeling_bert",  # takes half of a rank's import time
]  # fmt: skip


def start_fork_server() -> None:
    """Start this process's fork server, from which its own ranks are forked too, with all modules that they import."""
    ranks.start_fork_server(PRELOADED)


class PreparedCommand:
    """A running command, with those methods of subprocess.Popen that the tests use."""

    def __init__(self, arguments: Sequence[str], folder: str) -> None:
        start_fork_server()
        self._errors, theirs = multiprocessing.Pipe(duplex=False)
        context = multiprocessing.get_context("forkserver")
        self._process = context.Process(target=_command, args=(list(arguments), folder, dict(os.environ), theirs))
        self._process.start()
        theirs.close()
        assert self._process.pid is not None
        self.pid = self._process.pid
        self.stderr = os.fdopen(os.dup(self._errors.fileno()), encoding="utf-8")
        self._errors.close()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    poll = returncode.fget

    def wait(self, timeout: float | None = None) -> int | None:
        self._process.join(timeout)
        return self.returncode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[None, str]:
        """Wait until the command and all processes that hold its standard error have ended; returns that output."""
        said: list[str] = []
        reader = threading.Thread(target=lambda: said.append(self.stderr.read()), daemon=True)
        reader.start()
        reader.join(timeout)
        if reader.is_alive():
            raise subprocess.TimeoutExpired("train.ddp", timeout or 0)
        self.wait()
        return None, said[0]


def _command(arguments: list[str], folder: str, environment: Mapping[str, str], errors: connection.Connection) -> None:
    """Set up the process as a shell does, then run the command."""
    from train.ddp import main

    os.setsid()
    os.dup2(errors.fileno(), 2)
    errors.close()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Python's handler
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup may have made the tests ignore it
    util.spawnv_passfds = _fork_python  # type: ignore[attr-defined]
    ranks.start_fork_server(["train.launch.run", ranks.MODELS])  # now, while this process has one thread
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    try:
        raise SystemExit(main(arguments))
    finally:
        atexit._run_exitfuncs()


def _fork_python(path: str, arguments: list[str], open_files: Sequence[int]) -> int:
    """Run `python -c CODE` in a fork of this process. As after exec, other files are closed and signals are reset."""
    child = os.fork()
    if child:
        return child
    try:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        atexit._clear()
        kept = [2, *sorted(open_files), os.sysconf("SC_OPEN_MAX")]
        for before, after in zip(kept, kept[1:], strict=False):
            os.closerange(before + 1, after)
        exec(arguments[arguments.index("-c") + 1], {"__name__": "__main__"})
    finally:
        os._exit(0)
