"""The ranks of a training as processes on this machine: how they start, what they tell, and how they end.

torch's elastic agent is not used. After a signal it waits 30 s for its ranks and then kills them, while each rank waits
as long for the agent's permission to end, so a stop took 31 s. With the agent, a signal to the whole process group
would also end the fork server, and the launcher would learn nothing more about the ranks.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import connection, forkserver, resource_tracker
from pathlib import Path
from typing import Any, cast

from train.signals import held_back
from una_fast.errors import InputError

POLL_SECONDS = 0.1  # between two checks for a signal
WATCH_SECONDS = 0.5  # between two checks whether the launcher still runs
PACKAGES = Path(__file__).parents[2]  # the folder that holds the package `train`
# Rounds for which a thread of an operation waits for another one before it sleeps. By default they are 300,000, and
# where other work keeps the cores busy they take ten times the processor time of a step: 15 s of a step instead of 2.7.
SPINS = "10000"
MODELS = "transformers.activations"  # brings most of a model's imports: 1.8 s of processor time


class RankProcesses:
    """Processes that run a function, one for each rank.

    The function is called with the rank's arguments and then with a function that tells the launcher that the rank is
    ready. ready: the ranks that have told so. results: what the function returned, by rank.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        environments: Sequence[Mapping[str, str]],
    ) -> None:
        """arguments, environments: by rank; an environment is added to the launcher's own."""
        self.ready: dict[int, None] = {}
        self.results: dict[int, Any] = {}
        self._errors: dict[int, str] = {}
        self._processes: list[Any] = []
        self._replies: dict[Any, int] = {}  # the connection to each rank that runs, and its number
        context = multiprocessing.get_context("forkserver")
        try:
            for rank, (own, environment) in enumerate(zip(arguments, environments, strict=True)):
                ours, theirs = context.Pipe(duplex=False)
                self._replies[ours] = rank
                told = (function, own, environment, theirs)
                self._processes.append(context.Process(target=_run_rank, args=told, name=f"rank {rank}"))
                self._processes[-1].start()
                theirs.close()
        except BaseException:
            self.kill()
            raise

    def receive(self, seconds: float = POLL_SECONDS) -> None:
        """Wait up to `seconds` for what ranks tell, or for the end of one."""
        kept = {"ready": self.ready, "result": self.results, "error": self._errors}
        for reply in cast(list[Any], connection.wait([*self._replies], seconds)):
            rank = self._replies[reply]
            try:
                what, value = reply.recv()
                kept[what][rank] = value
            except (EOFError, OSError):  # the rank has ended
                del self._replies[reply]
                self._processes[rank].join()

    @property
    def running(self) -> bool:
        """True until all ranks have ended, and all that they told is received."""
        return bool(self._replies)

    def dead(self) -> tuple[int, str] | None:
        """(rank, why) of a rank that ended without a result; None if there is none."""
        for rank, process in enumerate(self._processes):
            if process.exitcode and rank not in {*self._replies.values(), *self.results}:
                return rank, self._errors.get(rank) or f"exit code {process.exitcode}"
        return None

    def signal(self, number: int) -> None:
        """Send a signal to all ranks; it does no harm to one that has already received it."""
        for process in self._processes:
            if process.pid and process.is_alive():
                os.kill(process.pid, number)

    def kill(self) -> None:
        """End all ranks at once."""
        self.signal(signal.SIGKILL)
        for process in self._processes:
            if process.pid:
                process.join()


def _run_rank(
    function: Callable[..., Any], arguments: tuple, environment: Mapping[str, str], reply: connection.Connection
) -> None:
    end_with_launcher()
    os.environ.update(environment)
    try:
        reply.send(("result", function(*arguments, lambda: reply.send(("ready", None)))))
    except Exception as error:
        reply.send(("error", f"{type(error).__name__}: {error}".strip().splitlines()[-1]))
        raise


def end_with_launcher() -> None:
    """End this process once its launcher is gone (kill -9), because nothing else would end it then."""
    launcher, parent = multiprocessing.parent_process(), os.getppid()

    def watch() -> None:
        if launcher is not None:  # the parent is the fork server, which outlives the launcher
            launcher.join()
        while launcher is None and os.getppid() == parent:  # torchrun is the parent
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="launcher watch").start()


def start_fork_server(modules: Sequence[str]) -> None:
    """Start the process that ranks are forked from: it imports all they need once (5 s), and has no threads.

    It starts with stop signals blocked, and so do the ranks until they handle them, so that a signal to the whole
    process group ends neither. Raises InputError if its socket cannot be made.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the ranks; `join_group` sets torch's own threads
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    multiprocessing.set_forkserver_preload(list(modules))
    # The server looks for modules in its working directory first. In the user's it would take the user's own train.py
    # for our package: run it, and then find no module of ours. The ranks return to the user's directory.
    before = Path.cwd()
    os.chdir(PACKAGES)
    try:
        with held_back():
            resource_tracker.ensure_running()  # first, because it unblocks SIGINT and SIGTERM
            with held_back():
                forkserver.ensure_running()
    except OSError as error:  # its socket lies in the folder for temporary files
        raise InputError(f"TMPDIR: no ranks can be started by a socket there ({error}): name a shorter one") from error
    finally:
        os.chdir(before)
    atexit.register(_end_fork_server)


def _end_fork_server() -> None:
    """End the fork server at once; left alone, it would finish its imports and then spend seconds on unloading them."""
    server = getattr(forkserver, "_forkserver", None)
    if pid := getattr(server, "_forkserver_pid", None):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
