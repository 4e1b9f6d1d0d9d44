"""The processes of the ranks: start them, hand signals on, start them again when one dies, collect their outcomes.

torch's elastic agent is not used here. After a signal it waits 30 s for its ranks and kills them, and each of them
waits as long for a word of the agent that they may go: so a stop took 31 s. It would also let a signal to the whole
process group end the fork server, and with it the news of every rank.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import time
from multiprocessing import connection, forkserver, resource_tracker
from multiprocessing.context import ForkServerProcess
from typing import Any

from torch.distributed import TCPStore

from train.config.run import Run
from train.job.folder import beside_the_package
from train.job.worker import TRAINING, rank_process
from train.record.pointer import Progress
from train.steps.loop import Outcome
from train.steps.signals import Stopped, handled, held_back, tell

POLL_SECONDS = 0.1  # between two looks for a signal
ONE_PRESS = 0.2  # seconds within which signals are one: `timeout` sends its signal twice
HOST = "127.0.0.1"


def start_fork_server() -> None:
    """Start the process that ranks are forked from: it imports all they need once (5 s), and has no threads.

    It starts with stop signals blocked, and so do the ranks, until their loop handles them: what goes to the whole
    process group ends neither.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the ranks; torch's own threads are set by `join`
    multiprocessing.set_forkserver_preload(["train.job.worker"])
    with beside_the_package(), held_back():
        resource_tracker.ensure_running()  # unblocks SIGINT and SIGTERM, so it comes first
        with held_back():
            forkserver.ensure_running()
    atexit.register(_end_fork_server)


def _end_fork_server() -> None:
    """End the fork server at once: by itself it ends after its imports, and takes modules apart for seconds."""
    server = getattr(forkserver, "_forkserver", None)
    if pid := getattr(server, "_forkserver_pid", None):
        _kill(pid)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


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
                _kill(process.pid)
        for process in self._processes:
            if process.pid:
                process.join()


class Supervisor:
    """Runs the ranks of a run to its end, through deaths and signals."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._received: list[tuple[int, float]] = []  # signals and when they came

    @property
    def number(self) -> int:
        """The first stop signal that came, or 0."""
        return self._received[0][0] if self._received else 0

    def __call__(self) -> Outcome:
        """The outcome of the run.

        Raises:
            Stopped: a signal came before the ranks trained.
        """
        start_fork_server()
        for restarts in range(self._run.max_restarts + 1):
            attempt = Attempt(self._run, restarts)
            with handled(self._note):
                death = self._watch(attempt)
            if death is None:
                return worst(list(attempt.outcomes.values()))
            rank, message = death
            if self.number:
                return Outcome("stopped", Progress(), self.number)
            if restarts < self._run.max_restarts:
                tell(f"rank {rank} died ({message}): the ranks start again, {restarts + 1} of {self._run.max_restarts}")
        tries = self._run.max_restarts + 1
        return Outcome("died", Progress(), message=f"rank {rank} died for the {tries}. time: {message}")

    def _note(self, number: int) -> None:
        self._received.append((number, time.monotonic()))

    def _watch(self, attempt: Attempt) -> tuple[int, str] | None:
        """Wait until the ranks have ended well, or one has died, which ends the others."""
        sent = False
        while not attempt.done:
            attempt.look(POLL_SECONDS)
            if death := attempt.dead():
                attempt.kill()
                return death
            if self.number and not sent:
                if not attempt.training:
                    attempt.kill()
                    raise Stopped(self.number)
                attempt.send(self.number)
                tell(f"{signal.Signals(self.number).name}: the run stops after this step; Ctrl-C ends it at once")
                sent = True
            if self._impatient():
                attempt.kill()
                return 0, "ended at once"
        return None

    def _impatient(self) -> bool:
        """True if Ctrl-C came again."""
        return any(n == signal.SIGINT and at > self._received[0][1] + ONE_PRESS for n, at in self._received[1:])


def worst(outcomes: list[Outcome]) -> Outcome:
    """The outcome of a run from those of its ranks: the first failure with a message, if there is one."""
    return max(outcomes, key=lambda outcome: (outcome.status == "failed", bool(outcome.message)))
