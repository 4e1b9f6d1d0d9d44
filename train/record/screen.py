"""What a user sees of a run: a bar in a terminal, else a line each minute. A closed terminal does not stop the run."""

from __future__ import annotations

import contextlib
import datetime
import sys
import time
from collections.abc import Callable, Iterator

from tqdm import tqdm

FIRST_LINE, LINE = 10.0, 60.0  # without a terminal: seconds to the first line, and between lines


@contextlib.contextmanager
def _ignoring_closed_terminal() -> Iterator[None]:
    """Ignore the OSError that every write raises after a terminal closed, or after Ctrl-C ended a `tee`."""
    with contextlib.suppress(OSError):
        yield


class Screen:
    """The bar or the lines of one run, on standard error."""

    def __init__(self, start: int, n_steps: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._start, self._n_steps, self._clock = start, n_steps, clock
        self._begun = clock()
        self._next_line = self._begun + FIRST_LINE
        self.dev = ""  # the dev score as a line shows it
        self._bar = tqdm(total=n_steps, initial=start, unit="step", dynamic_ncols=True, mininterval=0.5, disable=None)

    def step(self, step: int, loss: float, sentences_per_second: float) -> None:
        """One optimiser step is done; `step` counts from 0."""
        with _ignoring_closed_terminal():
            if not self._bar.disable:
                self._bar.set_postfix(loss=f"{loss:.4f}", sentences_s=f"{sentences_per_second:.0f}", refresh=False)
                self._bar.update(step + 1 - self._bar.n)
                return
        now, done = self._clock(), step + 1
        if now < self._next_line:
            return
        self._next_line = now + LINE
        left = (now - self._begun) / max(1, done - self._start) * (self._n_steps - done)
        self.say(
            f"step {done:,} of {self._n_steps:,}, loss {loss:.4f}{self.dev}, {sentences_per_second:.0f} sentences/s, "
            f"{datetime.timedelta(seconds=round(left))} left"
        )

    def say(self, message: str) -> None:
        """Show a line above the bar."""
        with _ignoring_closed_terminal():
            tqdm.write(message, file=sys.stderr)
            sys.stderr.flush()

    def close(self) -> None:
        """Close the bar."""
        with _ignoring_closed_terminal():
            self._bar.close()
