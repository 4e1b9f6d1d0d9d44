"""What a user sees of long work: a bar in a terminal, else a line each minute. A closed terminal does not stop it."""

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
    """The bar or the lines of some work, on standard error.

    start, total: units that are done at the start, and at the end. smoothing: tqdm's, of the speed; 0: its mean.
    """

    def __init__(
        self,
        start: int,
        total: int,
        unit: str = "step",
        smoothing: float = 0.3,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total, self._unit, self._clock = total, unit, clock
        self._first = start + 1  # the units done when the clock of the time left started
        self._begun: float | None = None
        self._next_line = clock() + FIRST_LINE
        self.dev = ""  # the dev score as a line shows it
        looks = {"unit": unit, "smoothing": smoothing, "dynamic_ncols": True, "mininterval": 0.5}
        self._bar = tqdm(total=total, initial=start, disable=None, **looks)

    def step(self, step: int, loss: float, sentences_per_second: float) -> None:
        """One optimiser step is done; `step` counts from 0."""
        loss_shown, speed = loss_text(loss), f"{sentences_per_second:.0f}"
        self.show(step + 1, f", loss {loss_shown}{self.dev}, {speed} sentences/s", loss=loss_shown, sentences_s=speed)

    def show(self, done: int, about: str = "", **beside: str) -> None:
        """`done` units are done. about: the middle of a line; beside: what stands at the end of a bar, by name."""
        now = self._clock()
        if self._begun is None:  # now, so that what comes before the first unit, an evaluation say, does not count
            self._begun, self._first = now, done
            self._bar.unpause()
        with _ignoring_closed_terminal():
            if not self._bar.disable:
                self._bar.set_postfix(beside, refresh=False)
                self._bar.update(done - self._bar.n)
                return
        if now < self._next_line:
            return
        self._next_line = now + LINE
        left = datetime.timedelta(
            seconds=round((now - self._begun) / max(1, done - self._first) * (self._total - done))
        )
        self.say(f"{self._unit} {done:,} of {self._total:,}{about}, {left} left")

    def say(self, message: str) -> None:
        """Show a line above the bar."""
        with _ignoring_closed_terminal():
            tqdm.write(message, file=sys.stderr)
            sys.stderr.flush()

    def close(self) -> None:
        """Close the bar."""
        with _ignoring_closed_terminal():
            self._bar.close()
