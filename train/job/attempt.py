"""The ranks of a run on this machine: their processes, their messages and their ends."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing import connection
from multiprocessing.context import ForkServerProcess
from typing import Any

from torch.distributed import TCPStore

from train.config.run import Run
from train.job.fork_server import kill_process
from train.job.worker import TRAINING, rank_process
from train.loop.loop import Outcome

HOST = "127.0.0.1"


class Attempt:
    """The ranks of a run, on this machine. outcomes: by rank, of the ranks that have sent theirs."""

    def __init__(self, run: Run) -> None:
        self._store = TCPStore(HOST, 0, is_master=True, wait_for_workers=False)
        self._processes: list[ForkServerProcess] = []
        self._replies: dict[int, connection.Connection] = {}
        self._training: set[int] = set()
        self._messages: dict[int, str] = {}
        self.outcomes: dict[int, Outcome] = {}
        try:
            for rank in range(run.nproc):
                self._start(run, rank, self._environment(run, rank))
        except BaseException:
            self.kill()
            raise

    def _environment(self, run: Run, rank: int) -> dict[str, str]:
        """The environment variables that torchrun would set for a rank."""
        return {
            "RANK": str(rank),
            "WORLD_SIZE": str(run.nproc),
            "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(run.nproc),
            "MASTER_ADDR": HOST,
            "MASTER_PORT": str(self._store.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",  # the store is in this process, not in rank 0
        }

    def _start(self, run: Run, rank: int, environment: dict[str, str]) -> None:
        context = multiprocessing.get_context("forkserver")
        self._replies[rank], theirs = context.Pipe(duplex=False)
        process = context.Process(target=rank_process, args=(run, environment, theirs), name=f"rank {rank}")
        self._processes.append(process)
        process.start()
        theirs.close()

    def receive(self, seconds: float) -> None:
        """Wait up to `seconds` for messages of the ranks and keep them."""
        open_ends = [reply for reply in self._replies.values() if not reply.closed]
        ended = [process.sentinel for process in self._processes if process.is_alive()]
        connection.wait([*open_ends, *ended], seconds)
        for rank, reply in self._replies.items():
            while not reply.closed and reply.poll():
                try:
                    self._keep(rank, reply.recv())
                except (EOFError, OSError):
                    reply.close()

    def _keep(self, rank: int, message: Any) -> None:
        if isinstance(message, Outcome):
            self.outcomes[rank] = message
        elif message == TRAINING:
            self._training.add(rank)
        else:
            self._messages[rank] = message

    @property
    def training(self) -> bool:
        """True once every rank takes steps, so that there is something to save."""
        return len(self._training) == len(self._processes)

    @property
    def done(self) -> bool:
        """True if all ranks have sent their outcomes and ended."""
        return len(self.outcomes) == len(self._processes) and not any(p.is_alive() for p in self._processes)

    def dead(self) -> tuple[int, str] | None:
        """(rank, its last message) of a rank that ended without an outcome; None if there is none."""
        for rank, process in enumerate(self._processes):
            if not process.is_alive():
                self.receive(0)  # it may have sent its outcome since the last call
                if rank not in self.outcomes:
                    return rank, self._messages.get(rank) or f"exit code {process.exitcode}"
        return None

    def send(self, number: int) -> None:
        """Send a signal to the ranks; it does no harm to a rank that has already received it."""
        for process in self._processes:
            if process.pid and process.is_alive():
                os.kill(process.pid, number)

    def kill(self) -> None:
        """End the ranks at once."""
        for process in self._processes:
            if process.pid and process.is_alive():
                kill_process(process.pid)
        for process in self._processes:
            if process.pid:
                process.join()
