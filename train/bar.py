"""The progress bar of commands that run for minutes or hours."""

from __future__ import annotations

import sys

from tqdm import tqdm

from train.signals import STDERR

LINE_SECONDS = 60.0  # between two lines of the bar without a terminal


class Bar(tqdm):
    """A progress bar on standard error. Without a terminal, it prints one line per minute."""

    def __init__(self, start: int, total: int, unit: str, smoothing: float = 0.3) -> None:
        seconds = 0.5 if sys.stderr.isatty() else LINE_SECONDS
        super().__init__(
            initial=start, total=total, unit=unit, smoothing=smoothing, mininterval=seconds, maxinterval=seconds,
            dynamic_ncols=True, file=STDERR,
        )  # fmt: skip
