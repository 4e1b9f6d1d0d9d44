"""The tables that `train.paper` wrote, with the paper's figures: their files -> tables of known types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train.record.folder import TABLES
from train.report.records import number, read_object
from una_fast.errors import InputError

Value = float | str | None  # in a table: a score as a fraction; another figure, as text or whole number; or none


@dataclass(frozen=True)
class Cell:
    """A figure of the paper and the measured one, with its standard deviation over seeds."""

    paper: Value
    measured: Value
    deviation: float | None


@dataclass(frozen=True)
class PaperTable:
    """A table. curve: the option whose values are the names of the rows, or "". note: what was trained, or ""."""

    name: str
    number: str
    curve: str
    note: str
    rows: Mapping[str, Mapping[str, Cell]]  # row, then column

    @property
    def columns(self) -> list[str]:
        """The columns, in order of appearance."""
        return list(dict.fromkeys(column for cells in self.rows.values() for column in cells))

    def over_values(self, column: str) -> list[tuple[float, Cell]]:
        """The cells of a column whose rows have a number as their name, by this number."""
        found = [(_number(name), cells[column]) for name, cells in self.rows.items() if column in cells]
        return sorted([(x, cell) for x, cell in found if x is not None], key=lambda each: each[0])


def find_tables(folders: Iterable[Path], notes: list[str]) -> list[PaperTable]:
    """The tables in folders of `train.paper`; a file that holds no table is left out with a sentence in `notes`."""
    found = []
    for path in (path for folder in folders for path in sorted((folder / TABLES).glob("*.json"))):
        try:
            found.append(_table(read_object(path), path))
        except InputError as error:
            notes.append(f"{error}; the table is left out")
    return found


def _table(content: Mapping[str, Any], path: Path) -> PaperTable:
    rows = content.get("rows")
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and isinstance(row.get("paper"), dict) for row in rows
    ):
        raise InputError(f"{path}: holds no table of train.paper")
    cells = {str(row.get("name")): {column: _cell(row, column) for column in row["paper"]} for row in rows}
    name, place, curve, note = (str(content.get(key, "")) for key in ("title", "number", "curve", "note"))
    return PaperTable(name, place, curve, note, cells)


def _cell(row: Mapping[str, Any], column: str) -> Cell:
    def found(name: str) -> Value:
        by_column = row.get(name)
        value = by_column.get(column) if isinstance(by_column, dict) else None
        return value if isinstance(value, (int, str)) and not isinstance(value, bool) else number(value)

    deviation = found("deviation")
    return Cell(found("paper"), found("measured"), deviation if isinstance(deviation, float) else None)


def _number(name: str) -> float | None:
    try:
        return number(float(name))
    except ValueError:
        return None
