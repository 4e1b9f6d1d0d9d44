"""Trains a run on its ranks: starts them, passes signals on and collects their outcomes; a rank that dies ends all."""

from __future__ import annotations

import signal
import time
from typing import Any

from torch.distributed import TCPStore

from train.config.run import Run
from train.launch.ranks import MODELS, RankProcesses, start_fork_server
from train.launch.worker import TRAINING, rank_process
from train.loop.loop import Outcome
from train.record.pointer import Progress
from train.signals import Stopped, handled, tell_user
from una_fast.errors import InputError

HOST = "127.0.0.1"
ONE_PRESS = 0.2  # signals within so many seconds count as one, because `timeout` sends its signal twice


class StopRequest:
    """The stop signals that came. number: the first one, or 0."""

    def __init__(self) -> None:
        self.number = 0
        self.impatient = False  # Ctrl-C came again
        self._at = 0.0

    def note(self, number: int) -> None:
        """Note a signal."""
        if not self.number:
            self.number, self._at = number, time.monotonic()
        elif number == signal.SIGINT and time.monotonic() > self._at + ONE_PRESS:
            self.impatient = True


def train_on_ranks(run: Run) -> tuple[Outcome, int]:
    """The outcome of a run, all of whose options are resolved, and the stop signal that came, or 0.

    Raises:
        Stopped: a signal came before the ranks trained.
    """
    start_fork_server([rank_process.__module__, MODELS])
    stop = StopRequest()
    store = TCPStore(HOST, 0, is_master=True, wait_for_workers=False)  # in this process, which outlives the ranks
    environments = [environment_of(rank, run.nproc, store.port) for rank in range(run.nproc)]
    ranks = RankProcesses(rank_process, [(run,)] * run.nproc, environments)
    with handled(stop.note):
        return _watch(ranks, run.nproc, stop), stop.number


def environment_of(rank: int, world: int, port: int) -> dict[str, str]:
    """The environment variables that torchrun would set for a rank."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(world),
        "MASTER_ADDR": HOST,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the store is in the launcher, not in rank 0
    }


def _watch(ranks: RankProcesses, world: int, stop: StopRequest) -> Outcome:
    """The outcome of the run, once all ranks have ended or been killed."""
    messages: dict[int, list[Any]] = {rank: [] for rank in range(world)}
    asked = False
    while ranks.running:
        for rank, message in ranks.receive():
            messages[rank].append(_failed(message) if isinstance(message, InputError) else message)
        outcomes = {rank: said[-1] for rank, said in messages.items() if said and isinstance(said[-1], Outcome)}
        if death := ranks.dead(done=outcomes):
            ranks.kill()
            rank, why = death
            return _stopped(stop) if stop.number else Outcome("died", Progress(), message=f"rank {rank} died: {why}")
        if stop.number and not asked:
            if not all(TRAINING in said for said in messages.values()):
                ranks.kill()
                raise Stopped(stop.number)  # there is nothing to save
            ranks.signal(stop.number)
            tell_user(f"{signal.Signals(stop.number).name}: the run stops after this step; Ctrl-C ends it at once")
            asked = True
        if stop.impatient:
            ranks.kill()
            return _stopped(stop)
    return worst([said[-1] for said in messages.values()])


def _failed(error: InputError) -> Outcome:
    return Outcome("failed", Progress(), message=str(error))


def _stopped(stop: StopRequest) -> Outcome:
    return Outcome("stopped", Progress(), stop.number)


def worst(outcomes: list[Outcome]) -> Outcome:
    """The outcome of a run from the outcomes of its ranks: the first failure with a message, if there is one."""
    return max(outcomes, key=lambda outcome: (outcome.status == "failed", bool(outcome.message)))
