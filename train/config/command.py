"""How a command of `train` ends: its exit code, and one sentence on stderr after bad input."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from una_fast.errors import InputError, InputWarning
from una_fast.extras import missing_package


def run_command(action: Callable[[], int], extra: str) -> int:
    """The exit code of `action`; 2, after a sentence on stderr, for bad input and for a package that is missing.

    extra: of `pip install`, with what the command needs.
    """
    show_warnings_as_lines()
    try:
        return action()
    except ModuleNotFoundError as error:
        sys.stderr.write(f"error: {missing_package(error, extra) or error}\n")
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
    return 2


def exit_with_error(error: InputError) -> NoReturn:
    """Leave as a command line does after bad input: the sentence on stderr, exit code 2."""
    sys.stderr.write(f"error: {error}\n")
    sys.exit(2)


def show_warnings_as_lines() -> None:
    """Write each InputWarning as one line on stderr, without the place in the source; other warnings as before."""
    shown = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, InputWarning):
            sys.stderr.write(f"warning: {message}\n")
        else:
            shown(message, category, *place)

    warnings.showwarning = show  # type: ignore[assignment]
