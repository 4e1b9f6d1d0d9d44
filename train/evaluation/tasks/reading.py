"""Reads the files of evaluation tasks. Every error names the file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from una_fast.errors import InputError

if TYPE_CHECKING:
    from train.evaluation.tasks.registry import DevTask


def read_dev(path: str | Path) -> DevTask:
    """Read the task of --dev: a file of scored pairs, or a folder of retrieval sets in BEIR's format."""
    module, read = ("retrieval", "read_folder") if Path(path).is_dir() else ("sts", "load_dev")
    return getattr(import_module(f"train.evaluation.tasks.{module}"), read)(Path(path))


def read_lines(path: Path, encoding: str = "utf-8-sig") -> list[str]:
    """Read the lines of a text file, without their line ends."""
    try:
        with path.open(encoding=encoding) as file:
            return [line.rstrip("\n") for line in file]
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig")
        raise InputError(f"{path}: not {name} text (byte {error.start}: {error.reason})") from None
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror or error
        raise InputError(f"{path}: {reason}") from None


def read_rows(
    path: Path, columns: Sequence[int], first: Callable[[str], Any] = str, skip: int = 0, encoding: str = "utf-8-sig"
) -> list[tuple[Any, ...]]:
    """Read some columns of a tab-separated file, after `skip` header lines.

    first: converts the text of the first of `columns`, and raises ValueError if the text is invalid.
    """
    rows, needed = [], max(columns) + 1
    for number, line in enumerate(read_lines(path, encoding)[skip:], start=1 + skip):
        fields = line.split("\t")
        try:
            if len(fields) < needed:
                raise ValueError(f"{len(fields)} tab-separated columns, {needed} expected")
            value, *texts = (fields[column] for column in columns)
            rows.append((first(value), *texts))
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}") from None
    return rows


def parse_score(text: str) -> float:
    """Parse a finite number."""
    with suppress(ValueError):
        if math.isfinite(value := float(text)):
            return value
    raise ValueError(f"score {text!r} is not a number")


def normalise_spaces(texts: Iterable[str]) -> list[str]:
    """Replace each run of white space by one space, and strip each text at both ends, as SentEval does."""
    return [" ".join(text.split()) for text in texts]
