"""Messages and the progress bar of a command, on standard error."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import Any

GRACE_SECONDS = 1  # between the end of a rank and the errors of others
LINE_SECONDS = 60.0  # between two lines of the bar without a terminal


class _StandardError:
    """Standard error that ignores failed writes, such as to a closed terminal or to a `tee` that Ctrl-C ended."""

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
    """Return whether this process is rank 0 or the only process. Only rank 0 writes to the terminal."""
    return os.environ.get("RANK", "0") == "0"


def tell_user(message: str) -> None:
    """Write a line to standard error, on rank 0 only."""
    if is_first_rank():
        STDERR.write(f"{message}\n")
        STDERR.flush()


def tell_error(message: str, is_shared: bool = False) -> None:
    """Write an error of any rank to standard error. is_shared: another rank's end may have caused it."""
    if is_shared or not is_first_rank():
        time.sleep(GRACE_SECONDS)  # if another rank has the same error or caused it, the launcher ends this one here
    STDERR.write(f"{message}\n")


def progress_bar(start: int, total: int, unit: str, smoothing: float = 0.3) -> Any:
    """Return a tqdm bar. Without a terminal, it prints one line per minute."""
    from tqdm import tqdm  # imported late, because signals are handled before anything slow is imported

    seconds = 0.5 if sys.stderr.isatty() else LINE_SECONDS
    return tqdm(
        initial=start, total=total, unit=unit, smoothing=smoothing, mininterval=seconds, maxinterval=seconds,
        dynamic_ncols=True, file=STDERR,
    )  # fmt: skip
