"""The signals that ask a run to stop, and their handlers.

During training, a rank that receives a signal finishes its step and saves a checkpoint; at any other time the signal
ends the rank. This module is imported first, so it imports nothing slow.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from train.messages import tell_user

Handler = Callable[[int, Any], object]  # arguments: signal number, interrupted frame

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")  # schedulers send the last two
STOP_SIGNALS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))  # Windows has the first two
ONE_PRESS = 0.2  # seconds within which signals count as one, because `timeout` sends its signal twice
NEEDS_POSIX = (
    "this command needs Linux or macOS: on Windows run it under WSL; indexes, negatives and the integrations work there"
)


class Stopped(BaseException):
    """Raised when a stop signal came. It is not an Exception, so ``except Exception`` does not catch it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def signals_handled(handler: Handler | signal.Handlers) -> Iterator[None]:
    """Unblock stop signals and handle them with `handler` in the with block. SIGHUP stays ignored under nohup."""
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
def signals_blocked() -> Iterator[None]:
    """Block stop signals inside the with block. A process that starts there must unblock them itself."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def raise_stopped(number: int, frame: Any = None) -> NoReturn:
    """Handle a signal by raising Stopped."""
    raise Stopped(number)


def leave_at_once(number: int, frame: Any = None) -> NoReturn:
    """Handle a signal by printing a message and exiting at once with code 128 + `number`."""
    # without an exception, which other code could catch, or which could leave a module half imported
    tell_user(f"stopped by {signal.Signals(number).name}")
    os._exit(128 + number)


def stop_then_end(stop: Callable[[int], object], end: Handler) -> Handler:
    """Make a handler that calls `stop` for the first signal, and `end` for a later Ctrl-C; it ignores all others."""
    times: list[float] = []

    def handle(number: int, frame: Any) -> None:
        times.append(time.monotonic())
        if len(times) == 1:
            stop(number)
        elif number == signal.SIGINT and times[-1] > times[0] + ONE_PRESS:
            end(number, frame)

    return handle
