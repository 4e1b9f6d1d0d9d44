"""The process that ranks are forked from: it imports what they need once."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from pathlib import Path

from train.signals import held_back

PACKAGES = Path(__file__).parents[2]  # the folder that holds the package `train`
# The second brings most of a model's imports: 1.8 s of processor time, spent once and not by every rank.
PRELOADED = ("train.job.worker", "transformers.activations")


def start_fork_server(modules: Sequence[str] = PRELOADED) -> None:
    """Start the process that ranks are forked from: it imports all they need once (5 s), and has no threads.

    It starts with stop signals blocked, and so do the ranks until their loop handles them, so that a signal to the
    whole process group ends neither.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the ranks; `join_group` sets torch's own threads
    multiprocessing.set_forkserver_preload(list(modules))
    with beside_the_package(), held_back():
        resource_tracker.ensure_running()  # first, because it unblocks SIGINT and SIGTERM
        with held_back():
            forkserver.ensure_running()
    atexit.register(_end_fork_server)


def _end_fork_server() -> None:
    """End the fork server at once; left alone, it would finish its imports and then spend seconds on unloading them."""
    server = getattr(forkserver, "_forkserver", None)
    if pid := getattr(server, "_forkserver_pid", None):
        kill_process(pid)


def kill_process(pid: int) -> None:
    """Kill a process; nothing happens if it has already ended."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@contextmanager
def beside_the_package() -> Iterator[None]:
    """Inside the with block, the working directory is the folder that holds the package `train`.

    A fork server looks for modules in its working directory first. In the user's directory it would take the user's own
    train.py for our package: run it, and then find no module of ours. The ranks return to the user's directory.
    """
    before = Path.cwd()
    os.chdir(PACKAGES)
    try:
        yield
    finally:
        os.chdir(before)
