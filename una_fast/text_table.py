"""Rows of cells -> lines of text with aligned columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Sequence


def aligned(rows: Sequence[Sequence[str]], left: Container[int] = ()) -> list[str]:
    """Return the rows as lines of equal columns, right-aligned except for the columns numbered in `left`."""
    columns = []
    for i, column in enumerate(zip(*rows, strict=True)):
        width = max(map(_width, column))
        blanks = [" " * (width - _width(cell)) for cell in column]
        sides = (column, blanks) if i in left else (blanks, column)
        columns.append(map("".join, zip(*sides, strict=True)))
    return [*map("  ".join, zip(*columns, strict=True))]


def _width(cell: str) -> int:
    """Return its columns on a terminal: two for a character of East Asia, none for a mark above another."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in cell)
    return len(cell) + wide - sum(unicodedata.category(character) in ("Mn", "Me", "Cf") for character in cell)
