"""JSON of any content -> values of known types. A value of another type is left out with a note."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from una_fast.errors import InputError

MOST_NESTED = 50  # levels of a JSON file; a run's files have 6
TOO_DEEP = "cannot be read (objects or lists nested too deeply)"


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file. InputError if there is none, or if it is nested too deeply."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: missing") from None
    except RecursionError:
        raise InputError(f"{path}: {TOO_DEEP}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: not a JSON object")
    if _depth(content) > MOST_NESTED:
        raise InputError(f"{path}: {TOO_DEEP}")
    return content


def _depth(content: Any) -> int:
    """Levels of objects and lists within each other."""
    level, depth = [content], 0
    while level:
        level = [child for one in level for child in (one.values() if isinstance(one, dict) else one)]
        level = [child for child in level if isinstance(child, dict | list)]
        depth += 1
    return depth


def number(value: Any) -> float | None:
    """`value` as a float if it is a finite number; None for anything else (true and false included)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an int larger than any float
        return None


def mapping(value: Any, where: str, notes: list[str]) -> dict[str, Any]:
    """`value` if it is a JSON object, else {} and a note."""
    if isinstance(value, dict):
        return value
    notes.append(f"{where} is not an object of names and values, and is left out")
    return {}


def numbers(value: Any, where: str, notes: list[str]) -> dict[str, float]:
    """The numbers of a JSON object by name; null (undefined) is left out, and so is anything else, with a note."""
    found = {name: (number(one), one) for name, one in mapping(value, where, notes).items()}
    wrong = [name for name, (known, one) in found.items() if known is None and one is not None]
    if wrong:
        notes.append(f"{where}: {', '.join(wrong[:5])} is not a finite number, and is left out")
    return {name: known for name, (known, _) in found.items() if known is not None}
