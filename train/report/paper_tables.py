"""Tables that `train.paper` wrote, with the paper's figures, and curves of the tables whose rows are numbers."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train.record.folder import TABLES
from train.report.charts import Line, line_chart
from train.report.figures import figure
from train.report.runs import title as title_of
from train.report.tables import table
from train.report.untrusted import number, read_object
from una_fast.errors import InputError

NOTE = "Measured ± one standard deviation over seeds, then the paper's figure and the difference; scores are × 100."
CURVE_NOTE = "Solid: measured, the band one standard deviation over seeds. Dashed: the paper."


@dataclass(frozen=True)
class Cell:
    """A figure of the paper and the measured one; None for one that does not exist."""

    paper: float | str | None
    measured: float | str | None
    deviation: float | None


@dataclass(frozen=True)
class PaperTable:
    """A table. curve: the option whose values are the names of the rows, or ""."""

    name: str
    number: str
    curve: str
    rows: Mapping[str, Mapping[str, Cell]]  # row, then column

    @property
    def columns(self) -> list[str]:
        """The columns, in order of appearance."""
        return list(dict.fromkeys(column for cells in self.rows.values() for column in cells))


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
    name, place, curve = (str(content.get(key, "")) for key in ("title", "number", "curve"))
    return PaperTable(name, place, curve, cells)


def _cell(row: Mapping[str, Any], column: str) -> Cell:
    def found(name: str) -> Any:
        by_column = row.get(name)
        value = by_column.get(column) if isinstance(by_column, dict) else None
        return value if isinstance(value, (int, str)) and not isinstance(value, bool) else number(value)

    deviation = found("deviation")
    return Cell(found("paper"), found("measured"), deviation if isinstance(deviation, float) else None)


def paper_table(one: PaperTable) -> str:
    """The table as HTML, with its curves below."""
    head = [one.curve, *map(title_of, one.columns)]
    rows = [[html.escape(name), *(_shown(cells.get(c)) for c in one.columns)] for name, cells in one.rows.items()]
    curves = f"<div class='figures'>{_curves(one)}</div>" if one.curve else ""
    return f"{table(head, rows)}<p class='note'>{NOTE}</p>{curves}"


def _shown(cell: Cell | None) -> str:
    if cell is None:
        return ""
    text = _figure(cell.measured) + (f" ± {100 * cell.deviation:.2f}" if cell.deviation is not None else "")
    beside = "" if cell.paper is None else _figure(cell.paper)
    if isinstance(cell.measured, float) and isinstance(cell.paper, float):
        beside += f", {100 * (cell.measured - cell.paper):+.2f}"
    return f"{text} <small>({beside})</small>" if beside else text


def _figure(value: float | str | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.2f}" if isinstance(value, float) else html.escape(str(value))


def _curves(one: PaperTable) -> str:
    """A chart of every column over the values in the names of the rows."""
    lines: list[Line] = []
    for group, column in enumerate(one.columns):
        cells = {
            x: cells[column] for name, cells in one.rows.items() if column in cells and (x := _value(name)) is not None
        }
        measured = sorted((x, 100 * cell.measured) for x, cell in cells.items() if isinstance(cell.measured, float))
        paper = sorted((x, 100 * cell.paper) for x, cell in cells.items() if isinstance(cell.paper, float))
        around = {x: 100 * cell.deviation for x, cell in cells.items() if cell.deviation is not None}
        band = [(x, y - around[x], y + around[x]) for x, y in measured if x in around]
        lines.append(Line(column, group, measured, band))
        lines.append(Line(f"{column}, paper", group, paper, second=True))
    chart = line_chart(lines, one.curve, "Spearman correlation × 100 on STS-B dev", x_format="~g")
    return figure(f"STS-B dev over {one.curve}", chart, CURVE_NOTE, whole=True)


def _value(name: str) -> float | None:
    try:
        return number(float(name))
    except ValueError:
        return None


def paper_sections(tables: Sequence[PaperTable]) -> list[tuple[str, str]]:
    """Heading and body of each table."""
    return [(html.escape(f"Table {one.number}: {one.name}"), paper_table(one)) for one in tables]
