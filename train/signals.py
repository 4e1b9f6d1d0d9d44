"""The signals that ask a run to stop, and how the parts of the program handle them.

Ctrl-C (SIGINT), SIGTERM and SIGHUP come from people and systems, SIGUSR1 and SIGUSR2 from schedulers that announce
the end of a job's time. In training a rank notes a signal, ends its step and saves; at any other time the signal ends
it. The launcher passes signals on to its ranks. This module is imported first, so it imports nothing slow.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

Handler = Callable[[int, Any], object] | signal.Handlers  # of a signal's number and the frame that it interrupts

STOP_SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)  # Windows has the first two
)

EXIT_DIED, EXIT_BAD_INPUT = 1, 2  # exit codes of a run, besides 0, and 128 + n after signal n

ONE_PRESS = 0.2  # signals within so many seconds count as one, because `timeout` sends its signal twice

NEEDS_POSIX = (
    "this command needs Linux or macOS: on Windows run it under WSL; indexes, negatives and the integrations work there"
)


class Stopped(BaseException):
    """A stop signal came. It does not derive from Exception, so that error handlers let it pass."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def handled(handler: Handler) -> Iterator[None]:
    """Inside the with block `handler` answers every stop signal; afterwards the old handlers are back.

    Signals that this process has blocked are delivered inside the block. SIGHUP stays ignored if it is (nohup). On
    Windows, where signals cannot be blocked, the program ends with a message.
    """
    if not hasattr(signal, "pthread_sigmask"):
        tell_user(f"error: {NEEDS_POSIX}")
        sys.exit(2)
    numbers = [n for n in STOP_SIGNALS if n != signal.SIGHUP or signal.getsignal(n) != signal.SIG_IGN]
    before = {n: signal.signal(n, handler) for n in numbers}
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, action in before.items():
            signal.signal(number, signal.SIG_DFL if action is None else action)


@contextmanager
def held_back() -> Iterator[None]:
    """Inside the with block, stop signals are blocked, also in a process that starts there, until it unblocks them."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def raise_stopped(number: int, frame: Any = None) -> NoReturn:
    """A handler: raise Stopped."""
    raise Stopped(number)


def leave_at_once(number: int, frame: Any = None) -> NoReturn:
    """A handler: print one sentence and exit with the signal's code.

    It raises nothing: an exception during an import may be swallowed, or leave a module half initialised.
    """
    tell_user(f"stopped by {signal.Signals(number).name}")
    os._exit(128 + number)


def stop_then_end(stop: Callable[[int], object], end: Callable[[int, Any], object]) -> Callable[[int, Any], None]:
    """A handler: `stop` for the first signal, and `end` for Ctrl-C pressed after it."""
    at: list[float] = []

    def handle(number: int, frame: Any) -> None:
        at.append(time.monotonic())
        if len(at) == 1:
            stop(number)
        elif number == signal.SIGINT and at[-1] > at[0] + ONE_PRESS:
            end(number, frame)

    return handle


class _StandardError:
    """Standard error. A terminal that is gone, as after SIGHUP, or a `tee` that Ctrl-C ended, raises nothing."""

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


STDERR: Any = _StandardError()


def is_first_rank() -> bool:
    """True in the one process of a run that tells the user how it goes."""
    return os.environ.get("RANK", "0") == "0"


def tell_user(message: str) -> None:
    """Write a line to standard error, of several ranks on the first."""
    if is_first_rank():
        STDERR.write(f"{message}\n")
        STDERR.flush()
