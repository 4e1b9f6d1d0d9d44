"""Cells and scores -> a table of measured figures beside the paper's, as JSON and as text."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from train.record.files import write_json
from train.record.folder import TABLES
from train.reproduction.plan import Plan
from train.tables.kind import TITLES, Cell, Source

Scores = Mapping[int, Mapping[str, Any]]
NOTE = "Measured ± deviation over seeds, then the paper's figure and the difference, all × 100."


def as_json(plan: Plan) -> dict[str, Any]:
    """The table with what is measured so far; figures are fractions, null if there is none.

    A row has, each by column: paper, measured (mean over seeds), difference, deviation (of the sample, n - 1), seeds.
    """
    table, setting = plan.setting.request.table, plan.setting
    scores = {source: measure.scores() for source, measure in plan.measures.items()}
    return {
        "table": table.name,
        "number": table.number,
        "title": table.title,
        "curve": table.curve,
        "seeds": setting.seeds,
        "model": setting.request.given.get("model", ""),
        "corpus": setting.request.given.get("corpus", ()),
        "rows": [{"name": row.name, **_by_column(row.cells, scores)} for row in plan.rows],
        "notes": plan.notes,
    }


def _by_column(cells: Mapping[str, Cell], scores: Mapping[Source, Scores]) -> dict[str, dict[str, Any]]:
    found = {column: _measured(cell, scores.get(cell.source, {})) for column, cell in cells.items()}
    names = ("paper", "paper_deviation", "measured", "difference", "deviation", "seeds")
    return {name: {column: one[name] for column, one in found.items()} for name in names}


def _measured(cell: Cell, scores: Scores) -> dict[str, Any]:
    seeds = {seed: by_name.get(cell.score) for seed, by_name in scores.items() if cell.seed in (None, seed)}
    values = [value for value in seeds.values() if value is not None]
    numeric = bool(values) and not any(isinstance(value, str) for value in values)
    mean = (statistics.fmean(values) if len(values) > 1 else values[0]) if numeric else next(iter(values), None)
    paper = cell.paper
    return {
        "paper": paper,
        "paper_deviation": cell.deviation,
        "measured": mean,
        "difference": mean - paper if numeric and isinstance(paper, (int, float)) and mean is not None else None,
        "deviation": statistics.stdev(values) if numeric and len(values) > 1 else None,
        "seeds": {str(seed): value for seed, value in seeds.items()},
    }


def as_text(table: Mapping[str, Any]) -> str:
    """The table as Markdown. A cell is the measured figure, followed by the paper's and the difference in brackets."""
    columns = list(dict.fromkeys(column for row in table["rows"] for column in row["paper"]))
    rows = [[table["curve"] or "", *(TITLES.get(column, column) for column in columns)]]
    rows += [[row["name"], *(_cell(row, column) for column in columns)] for row in table["rows"]]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, cells, widths)) + " |" for cells in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    about = [f"Table {table['number']}: {table['title']}", ""]
    plain = any(isinstance(value, (int, str)) for row in table["rows"] for value in row["paper"].values())
    below = ["", "Measured, with the paper's in brackets." if plain else NOTE, *table["notes"]]
    return "\n".join([*about, *lines, *below])


def _cell(row: Mapping[str, Any], column: str) -> str:
    measured, paper, difference = (row[name][column] for name in ("measured", "paper", "difference"))
    deviation, of_paper = row["deviation"][column], row["paper_deviation"][column]
    text = _figure(measured) + (f" ± {100 * deviation:.2f}" if deviation is not None else "")
    if paper is None:
        return text
    beside = _figure(paper) + (f" ± {100 * of_paper:.2f}" if of_paper is not None else "")
    if isinstance(difference, float):
        beside += f", {100 * difference:+.2f}"
    return f"{text} ({beside})"


def _figure(value: float | str | None) -> str:
    """A score (float) × 100, a count (int) or a text as it is, "-" for None."""
    if value is None:
        return "-"
    return f"{100 * value:.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value


def save(plan: Plan) -> str:
    """Write the table into the folder and return it as text.

    OUTPUT/tables holds each table under its name, OUTPUT/table.json and .md the last one.
    """
    table, output = as_json(plan), plan.setting.output
    text = as_text(table)
    for stem in (output / TABLES / table["table"], output / "table"):
        stem.parent.mkdir(parents=True, exist_ok=True)
        write_json(Path(f"{stem}.json"), table)
        Path(f"{stem}.md").write_text(text + "\n", encoding="utf-8")
    return text
