"""The tables of the paper by name. Each has a file: its rows with the printed figures, and the settings of their runs.

To add a table, add a file with a TABLE (`kind.Table`), and its name here.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING

from una_fast.errors import InputError

if TYPE_CHECKING:
    from train.tables.kind import Table

NAMES = "main ablation sizes samples augmentations alpha beta radius seeds comparison".split()


def table_of(name: str) -> Table:
    """The table with this name.

    Raises:
        InputError: there is no such table.
    """
    if name not in NAMES:
        close = difflib.get_close_matches(name, NAMES, n=1)
        hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(NAMES)}"
        raise InputError(f"{f'unknown table {name!r}' if name else 'the table is missing'}: {hint}")
    return import_module(f"train.tables.{name}").TABLE
