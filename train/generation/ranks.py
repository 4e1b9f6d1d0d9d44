"""The ranks of a job: one in this process, or several processes that do not communicate with each other."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing import connection
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from train.generation.options import Job
from train.generation.work import write_share
from train.loop.distributed import end_with_launcher
from train.signals import handled, held_back, tell_user
from una_fast.errors import InputError
from una_fast.parallel import n_cores

POLL_SECONDS = 0.2  # between two checks for a signal
ONE_PRESS = 0.2  # signals within so many seconds count as one, because `timeout` sends its signal twice


class Stop:
    """Notes the first stop signal. A later Ctrl-C ends this process and its ranks at once; written batches are kept."""

    def __init__(self) -> None:
        self.number = 0
        self._at = 0.0

    def __call__(self, number: int) -> None:
        """Handle the signal `number`."""
        if self.number and number == signal.SIGINT and time.monotonic() > self._at + ONE_PRESS:
            os._exit(128 + number)
        if not self.number:
            self.number, self._at = number, time.monotonic()
            tell_user(f"{signal.Signals(number).name}: stops after this batch; Ctrl-C ends it at once")


def run_ranks(
    job: Job, devices: list[torch.device], done: NDArray[np.bool_], stop: Stop, wrote: Callable[[int], Any]
) -> str:
    """Write the lines that are not done, with one rank per device, until all are written or a signal comes.

    done: bool (lines of the corpus,). wrote: called with the number of lines of each batch that was written. Returns a
    message about a rank that died, or "".

    Raises:
        InputError: a rank found bad input; the others are stopped.
    """
    if len(devices) == 1:
        write_share(job, 0, devices[0], done, lambda: stop.number, wrote)
        return ""
    ranks = _Processes()
    for rank, device in enumerate(devices):
        ranks.start(rank, job, device, done)
    asked = False
    while ranks.listen(wrote):
        if (stop.number or ranks.wrong or ranks.dead()) and not asked:
            ranks.stop()
            asked = True
    death = ranks.dead()
    if ranks.wrong:
        raise InputError(ranks.wrong)
    return death


class _Processes:
    """The ranks as processes. wrong: the first message of a rank about bad input, or ""."""

    def __init__(self) -> None:
        self.wrong = ""
        self._processes: list[Any] = []
        self._replies: dict[Any, Any] = {}  # pipe -> process
        self._writing: set[Any] = set()  # processes that have written a batch
        self._let_go: set[Any] = set()  # processes that `stop` killed, which do not count as dead

    def start(self, rank: int, *args: Any) -> None:
        """Start the process of a rank; args: the arguments of `_rank_process` between `rank` and `reply`."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_rank_process, args=(rank, *args, theirs), name=f"rank {rank}")
        with held_back():  # the rank starts with signals blocked, until it handles them itself
            process.start()
        theirs.close()
        self._processes.append(process)
        self._replies[ours] = process

    def listen(self, wrote: Callable[[int], Any]) -> bool:
        """Wait up to POLL_SECONDS for messages of the ranks and handle them; False once all ranks have ended."""
        for reply in cast(list[Any], connection.wait([*self._replies], POLL_SECONDS)):
            try:
                message = reply.recv()
            except (EOFError, OSError):
                del self._replies[reply]
                continue
            if isinstance(message, int):
                wrote(message)
                self._writing.add(self._replies[reply])
            else:
                self.wrong = self.wrong or message
        if not self._replies:
            for process in self._processes:
                process.join()
        return bool(self._replies)

    def dead(self) -> str:
        """A message about a rank that died, or ""."""
        codes = (
            (process.name, process.exitcode)
            for process in self._processes
            if process.exitcode and process not in self._let_go
        )
        return next((f"{name} died (exit code {code})" for name, code in codes), "")

    def stop(self) -> None:
        """Ask ranks that write to stop after their batch, and end ranks that still load their models."""
        for process in self._processes:
            if process in self._writing and process.is_alive():
                os.kill(process.pid, signal.SIGTERM)
            elif process.exitcode is None:
                self._let_go.add(process)
                process.kill()


class _FirstSignal:
    """The number of the first stop signal that a rank received, or 0."""

    number = 0

    def __call__(self, number: int) -> None:
        self.number = self.number or number


def _rank_process(rank: int, job: Job, device: torch.device, done: NDArray[np.bool_], reply: Any) -> None:
    end_with_launcher()
    if device.type == "cpu":
        torch.set_num_threads(max(1, n_cores(None) // job.nproc))
    received = _FirstSignal()
    try:
        with handled(received):
            write_share(job, rank, device, done, lambda: received.number, reply.send)
    except InputError as error:
        reply.send(str(error))
