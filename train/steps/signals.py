"""The signals that ask a run to stop, and what a part of the program does with them while it runs.

Ctrl-C (SIGINT), SIGTERM and SIGHUP come from people and systems, SIGUSR1 and SIGUSR2 from schedulers that announce
the end of a job's time. A rank notes a signal, ends its step and saves; the launcher hands it on to the ranks; where
nothing is there to be saved, the signal ends the program. This file imports nothing of weight: it is the first.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

STOP_SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)  # Windows has the first two
)


NEEDS_POSIX = (
    "this command needs Linux or macOS: on Windows run it under WSL; indexes, negatives and the integrations work there"
)


class Stopped(BaseException):
    """A stop signal came. It is no Exception, so that what handles errors lets it pass."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def handled(handler: Callable[[int], object]) -> Iterator[None]:
    """Within it every stop signal calls `handler` with its number; before and after, signals do what they did.

    Signals that this process blocked arrive within. SIGHUP stays ignored where it is (nohup). In another thread than
    the main one nothing changes. Where signals cannot be blocked, on Windows, the program ends with a sentence.
    """
    if not hasattr(signal, "pthread_sigmask"):
        tell_user(f"error: {NEEDS_POSIX}")
        sys.exit(2)
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [n for n in STOP_SIGNALS if n != signal.SIGHUP or signal.getsignal(n) != signal.SIG_IGN]
    before = {n: signal.signal(n, lambda number, frame: handler(number)) for n in numbers}
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, action in before.items():
            signal.signal(number, signal.SIG_DFL if action is None else action)


@contextmanager
def held_back() -> Iterator[None]:
    """Within it stop signals wait; a program started within never gets any, unless it asks for them."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def raise_stopped(number: int) -> NoReturn:
    """A handler: raise Stopped."""
    raise Stopped(number)


def leave_at_once(number: int) -> NoReturn:
    """A handler for the time before there is anything to lose: one sentence, and the exit code of the signal.

    While modules are imported an exception may be swallowed, or leave a module half made.
    """
    if os.environ.get("RANK", "0") == "0":
        tell_user(f"stopped by {signal.Signals(number).name} before the run began")
    os._exit(128 + number)


def tell_user(message: str) -> None:
    """A line for the user. A terminal that is gone, as after SIGHUP, takes nothing and stops nothing."""
    try:
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass
