"""Aligns the columns of a table of text."""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Sequence


def aligned(rows: Sequence[Sequence[str]], left: Container[int] = ()) -> list[str]:
    """Return the rows as lines with aligned columns.

    left: the indices of the left-aligned columns, from 0. All other columns are right-aligned.
    """
    columns = []
    for i, column in enumerate(zip(*rows, strict=True)):
        width = max(map(_width, column))
        blanks = [" " * (width - _width(cell)) for cell in column]
        sides = (column, blanks) if i in left else (blanks, column)
        columns.append(map("".join, zip(*sides, strict=True)))
    return [*map("  ".join, zip(*columns, strict=True))]


def _width(cell: str) -> int:
    """Return how many columns a cell fills on a terminal: 2 per East Asian character, 0 per combining mark, else 1."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in cell)
    return len(cell) + wide - sum(unicodedata.category(character) in ("Mn", "Me", "Cf") for character in cell)
