"""Rows of cells -> lines of text with aligned columns."""

from __future__ import annotations

from collections.abc import Container, Sequence


def aligned(rows: Sequence[Sequence[str]], left: Container[int] = (), between: str = "  ") -> list[str]:
    """The rows as lines of equal columns, right-aligned but for the columns numbered in `left`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        between.join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
