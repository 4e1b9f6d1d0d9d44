"""The ranks of one start of a run on this machine: their processes, what they say, and their end."""

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
from train.steps.loop import Outcome

HOST = "127.0.0.1"


class Attempt:
    """The ranks of one start of a run, on this machine."""

    def __init__(self, run: Run, restarts: int) -> None:
        # A store that outlives the ranks still holds the addresses of those that died: new ones may read them and
        # wait for ever (seen on a busy machine; pytorch/pytorch#135712). So each attempt has its own.
        self._store = TCPStore(HOST, 0, is_master=True, wait_for_workers=False)
        self._processes: list[ForkServerProcess] = []
        self._replies: dict[int, connection.Connection] = {}
        self._training: set[int] = set()
        self._messages: dict[int, str] = {}
        self.outcomes: dict[int, Outcome] = {}
        try:
            for rank in range(run.nproc):
                self._start(run, rank, self._environment(run, rank, restarts))
        except BaseException:
            self.kill()
            raise

    def _environment(self, run: Run, rank: int, restarts: int) -> dict[str, str]:
        """What torchrun would tell a rank, in its words."""
        return {
            "RANK": str(rank),
            "WORLD_SIZE": str(run.nproc),
            "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(run.nproc),
            "MASTER_ADDR": HOST,
            "MASTER_PORT": str(self._store.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",  # the store is here, not in rank 0
            "TORCHELASTIC_RESTART_COUNT": str(restarts),
        }

    def _start(self, run: Run, rank: int, environment: dict[str, str]) -> None:
        context = multiprocessing.get_context("forkserver")
        self._replies[rank], theirs = context.Pipe(duplex=False)
        process = context.Process(target=rank_process, args=(run, environment, theirs), name=f"rank {rank}")
        self._processes.append(process)
        process.start()
        theirs.close()

    def look(self, seconds: float) -> None:
        """Take in what the ranks say within so many seconds."""
        open_ends = [reply for reply in self._replies.values() if not reply.closed]
        ended = [process.sentinel for process in self._processes if process.is_alive()]
        connection.wait([*open_ends, *ended], seconds)
        for rank, reply in self._replies.items():
            while not reply.closed and reply.poll():
                try:
                    self._take(rank, reply.recv())
                except (EOFError, OSError):
                    reply.close()

    def _take(self, rank: int, said: Any) -> None:
        if isinstance(said, Outcome):
            self.outcomes[rank] = said
        elif said == TRAINING:
            self._training.add(rank)
        else:
            self._messages[rank] = said

    @property
    def training(self) -> bool:
        """True once every rank takes steps, so that there is something to save."""
        return len(self._training) == len(self._processes)

    @property
    def done(self) -> bool:
        """True if all ranks have told their outcomes and ended."""
        return len(self.outcomes) == len(self._processes) and not any(p.is_alive() for p in self._processes)

    def dead(self) -> tuple[int, str] | None:
        """A rank that ended without an outcome, and the last it said; None if there is none."""
        for rank, process in enumerate(self._processes):
            if not process.is_alive():
                self.look(0)  # it may have told it and ended between two looks
                if rank not in self.outcomes:
                    return rank, self._messages.get(rank) or f"exit code {process.exitcode}"
        return None

    def send(self, number: int) -> None:
        """Hand a signal on to the ranks; one more does no harm to a rank that got it itself."""
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
