"""How a command of `train` ends: its exit code, and one sentence on stderr after bad input."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from una_fast.errors import InputError, InputWarning
from una_fast.extras import missing_package


def run_command(action: Callable[[], int], extra: str) -> int:
    """Run `action` and return its exit code; for bad input or a missing package write one line to stderr and return 2.

    extra: what `pip install 'una_fast[EXTRA]'` must name to install the packages of the command.
    """
    show_warnings_as_lines()
    try:
        return action()
    except ModuleNotFoundError as error:
        if (sentence := missing_package(error, extra)) is None:
            raise
        sys.stderr.write(f"error: {sentence}\n")
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
    return 2


def exit_with_error(error: InputError) -> NoReturn:
    """Write the error to stderr and exit with code 2, as `run_command` does for bad input."""
    sys.stderr.write(f"error: {error}\n")
    sys.exit(2)


def show_warnings_as_lines() -> None:
    """Write each InputWarning as one line on stderr, without file and line number; other warnings stay as they are."""
    shown = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, InputWarning):
            sys.stderr.write(f"warning: {message}\n")
        else:
            shown(message, category, *place)

    warnings.showwarning = show  # type: ignore[assignment]
