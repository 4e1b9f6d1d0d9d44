"""Finds and reads SentEval's files; an error names the file and, if one is wrong, the line."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from una_fast.errors import InputError

NEAR_MISSES = "near_miss"  # the folder of SugarCrepe++, beside senteval/


def downstream_folder(data: str | os.PathLike[str] | None = None) -> Path:
    """SentEval's `downstream` folder in `data`, which may hold `senteval/`, be it, or be `downstream` itself.

    Without `data`, the folder named by UNA_FAST_DATA. A folder that holds the near-misses (`near_miss/`) alone has a
    place for SentEval's files too, and they are missing there. Raises InputError if there is neither.
    """
    named = data if data is not None else os.environ.get("UNA_FAST_DATA")
    if not named:
        raise InputError("no evaluation data: give --data FOLDER, or name the folder in UNA_FAST_DATA")
    root = Path(named)
    for candidate in (root / "senteval" / "downstream", root / "downstream", root):
        if candidate.name == "downstream" and candidate.is_dir():
            return candidate
    if (root / NEAR_MISSES).is_dir():
        return root / "senteval" / "downstream"
    what = "holds no senteval/downstream" if root.is_dir() else "is not a folder"
    raise InputError(f"evaluation data: {root} {what}; `python -m train.download --to {root}` fetches it")


def read_lines(path: Path, encoding: str = "utf-8") -> list[str]:
    """The lines of a text file without their line ends; InputError if it cannot be read."""
    try:
        with path.open(encoding=encoding) as file:
            return [line.rstrip("\n") for line in file]
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not {encoding} text (byte {error.start}: {error.reason})") from None
    except OSError as error:
        reason = "missing" if isinstance(error, FileNotFoundError) else error.strerror or error
        raise InputError(f"{path}: {reason}") from None


def read_columns(path: Path, columns: tuple[int, ...], skip: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Line number and the requested columns of each line of a tab-separated file, after `skip` lines of heading."""
    needed = max(columns) + 1
    for number, line in enumerate(read_lines(path)[skip:], start=1 + skip):
        fields = line.split("\t")
        if len(fields) < needed:
            raise InputError(f"{path}, line {number}: {len(fields)} columns between tabs, {needed} expected")
        yield number, [fields[column] for column in columns]


def number_in(text: str, path: Path, line: int) -> float:
    """The finite number in `text`; InputError, with file and line, if it is none."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{path}, line {line}: score {text!r} is not a number")
    return value


def normalise_spaces(texts: Iterable[str]) -> list[str]:
    """Each text split at white space and joined by single spaces, as SentEval does."""
    return [" ".join(text.split()) for text in texts]
