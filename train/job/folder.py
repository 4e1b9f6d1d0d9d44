"""The folder that a fork server starts in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PACKAGES = Path(__file__).parents[2]  # the folder that holds the package `train`


@contextmanager
def beside_the_package() -> Iterator[None]:
    """Within it this process works in the folder that holds the package `train`.

    A fork server looks for modules in its working folder before anywhere else. In the user's folder it would take the
    user's own train.py for our package: run it, and then find no module of ours. The ranks go back by themselves.
    """
    before = Path.cwd()
    os.chdir(PACKAGES)
    try:
        yield
    finally:
        os.chdir(before)
