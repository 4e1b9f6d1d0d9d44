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


def loss_text(loss: float) -> str:
    """A loss as the user reads it: four decimals, or two significant digits of a smaller one."""
    return f"{loss:.4f}" if loss >= 0.001 else f"{loss:.1e}"


class Screen:
    """The bar or the lines of one run, on standard error."""

    def __init__(self, start: int, n_steps: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._n_steps, self._clock = n_steps, clock
        self._first = start + 1  # the steps done when the clock of the time left started
        self._begun: float | None = None
        self._next_line = clock() + FIRST_LINE
        self.dev = ""  # the dev score as a line shows it
        self._bar = tqdm(total=n_steps, initial=start, unit="step", dynamic_ncols=True, mininterval=0.5, disable=None)

    def step(self, step: int, loss: float, sentences_per_second: float) -> None:
        """One optimiser step is done; `step` counts from 0."""
        now, done = self._clock(), step + 1
        if self._begun is None:  # now, so that the evaluation before the first step does not count
            self._begun, self._first = now, done
            self._bar.unpause()
        with _ignoring_closed_terminal():
            if not self._bar.disable:
                self._bar.set_postfix(loss=loss_text(loss), sentences_s=f"{sentences_per_second:.0f}", refresh=False)
                self._bar.update(done - self._bar.n)
                return
        if now < self._next_line:
            return
        self._next_line = now + LINE
        left = (now - self._begun) / max(1, done - self._first) * (self._n_steps - done)
        self.say(
            f"step {done:,} of {self._n_steps:,}, loss {loss_text(loss)}{self.dev}, "
            f"{sentences_per_second:.0f} sentences/s, {datetime.timedelta(seconds=round(left))} left"
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
