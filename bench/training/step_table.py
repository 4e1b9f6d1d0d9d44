"""What the tables of measured steps share: cells, a description of the machine, and the file of results."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from train.record.environment import machine, versions
from una_fast.errors import InputError
from una_fast.storage.files import write_file


def shown(number: float | None, digits: int) -> str:
    """Format a number with `digits` decimals for a table cell. None gives an empty cell."""
    return "" if number is None else f"{number:,.{digits}f}"


def described() -> str:
    """Describe this machine and its software in one line."""
    return ", ".join(f"{name} {value}" for name, value in {**machine(), **versions()}.items())


def save(path: Path, tables: list[dict[str, Any]], measured: dict[str, Any]) -> None:
    """Save tables for bench/report.py, and the measured figures from which the tables were made.

    Earlier results in the file are replaced.

    Raises:
        InputError: the file exists and does not contain such results.
    """
    with contextlib.suppress(FileNotFoundError):
        if not path.read_bytes().startswith(b'{\n "tables": ['):
            raise InputError(f"{path}: exists and contains no tables of this command: choose another name")
    write_file(path, (json.dumps({"tables": tables, "measured": measured}, indent=1) + "\n").encode())
