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

from train.steps.signals import held_back

PACKAGES = Path(__file__).parents[2]  # the folder that holds the package `train`
# The second is most of what a model's module imports: 1.8 s of processor time, once and not for every rank.
PRELOADED = ("train.job.worker", "transformers.activations")


def start_fork_server(modules: Sequence[str] = PRELOADED) -> None:
    """Start the process that ranks are forked from: it imports all they need once (5 s), and has no threads.

    It starts with stop signals blocked, and so do the ranks, until their loop handles them: what goes to the whole
    process group ends neither.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the ranks; torch's own threads are set by `join_group`
    multiprocessing.set_forkserver_preload(list(modules))
    with beside_the_package(), held_back():
        resource_tracker.ensure_running()  # unblocks SIGINT and SIGTERM, so it comes first
        with held_back():
            forkserver.ensure_running()
    atexit.register(_end_fork_server)


def _end_fork_server() -> None:
    """End the fork server at once: by itself it ends after its imports, and takes modules apart for seconds."""
    server = getattr(forkserver, "_forkserver", None)
    if pid := getattr(server, "_forkserver_pid", None):
        kill_process(pid)


def kill_process(pid: int) -> None:
    """End a process at once; nothing happens if it has ended already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@contextmanager
def beside_the_package() -> Iterator[None]:
    """Within it this process works in the folder that holds the package `train`.

    A fork server looks for modules in its working folder before anywhere else. In the user's folder it would take the
    user's own train.py for our package: run it, and then find no module of ours. The ranks go back by themselves.
    """
    before = Path.cwd()
    os.chdir(PACKAGES)
    try:
        yield
    finally:
        os.chdir(before)
