"""Rows of cells -> lines of text with aligned columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Sequence


def aligned(rows: Sequence[Sequence[str]], left: Container[int] = (), between: str = "  ") -> list[str]:
    """The rows as lines of equal columns, right-aligned but for the columns numbered in `left`."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
            blanks = " " * (width - _width(cell))
            cells.append(cell + blanks if i in left else blanks + cell)
        lines.append(between.join(cells))
    return lines


def _width(cell: str) -> int:
    """The columns that a terminal takes for it: two for a character of East Asia, none for a mark above another."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in cell)
    return len(cell) + wide - sum(unicodedata.category(character) in ("Mn", "Me", "Cf") for character in cell)
