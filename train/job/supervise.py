"""The processes of the ranks: starts them, passes signals on, and collects their outcomes; a rank that dies ends all.

torch's elastic agent is not used here. After a signal it waits 30 s for its ranks and then kills them, while each rank
waits as long for the agent's permission to end, so a stop took 31 s. With the agent, a signal to the whole process
group would also end the fork server, and the launcher would learn nothing more about the ranks.
"""

from __future__ import annotations

import signal
import time

from train.config.run import Run
from train.job.attempt import Attempt
from train.job.fork_server import start_fork_server
from train.loop.loop import Outcome
from train.record.pointer import Progress
from train.signals import Stopped, handled, tell_user

POLL_SECONDS = 0.1  # between two checks for a signal
ONE_PRESS = 0.2  # signals within so many seconds count as one, because `timeout` sends its signal twice


class Supervisor:
    """Runs the ranks of a run to its end, until one of them dies, or until a signal stops them."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._received: list[tuple[int, float]] = []  # (signal, time.monotonic() when it came)

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
        attempt = Attempt(self._run)
        with handled(self._note):
            death = self._watch(attempt)
        if death is None:
            return worst(list(attempt.outcomes.values()))
        if self.number:
            return Outcome("stopped", Progress(), self.number)
        rank, message = death
        return Outcome("died", Progress(), message=f"rank {rank} died: {message}")

    def _note(self, number: int) -> None:
        self._received.append((number, time.monotonic()))

    def _watch(self, attempt: Attempt) -> tuple[int, str] | None:
        """Wait until all ranks have ended (None), or until one has died: kill the others, return (rank, message)."""
        sent = False
        while not attempt.done:
            attempt.receive(POLL_SECONDS)
            if death := attempt.dead():
                attempt.kill()
                return death
            if self.number and not sent:
                if not attempt.training:
                    attempt.kill()
                    raise Stopped(self.number)
                attempt.send(self.number)
                tell_user(f"{signal.Signals(self.number).name}: the run stops after this step; Ctrl-C ends it at once")
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
