"""Rows and scores -> a table of measured figures beside the paper's, as JSON and as text."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from train.config.run import defaults
from train.paper.request import Request
from train.paper.tables import TITLES, Cell, Checkpoint, Row, Source, Trained
from train.paper.works import Scores, Work
from train.record.folder import TABLES, write_json, write_page
from una_fast.text_table import aligned

NOTE = "Measured ± deviation over seeds, then the paper's figure and the difference, all × 100."
PAPERS_RUN = "The paper's are BERT-base or RoBERTa-base, on a million sentences of Wikipedia, one epoch, 64 a step."
UNPUBLISHED = "{0}: its authors name no model on the hub; --checkpoints '{0}=FOLDER' scores one"


def save(request: Request, rows: Sequence[Row], measures: Mapping[Source, Work]) -> str:
    """Write the table into the folder and return it as text.

    OUTPUT/tables holds each table under its name, OUTPUT/table.json and .md the last one.
    """
    table = as_json(request, rows, measures)
    text = as_text(table)
    for stem in (request.output / TABLES / table["table"], request.output / "table"):
        write_json(Path(f"{stem}.json"), table)
        write_page(Path(f"{stem}.md"), text + "\n\n")
    return text


def as_json(request: Request, rows: Sequence[Row], measures: Mapping[Source, Work]) -> dict[str, Any]:
    """The table with what is measured so far; figures are fractions, null if there is none.

    A row has, each by column: paper, measured (mean over seeds), difference, deviation (of the sample, n - 1), seeds.
    """
    table = request.table
    scores = {source: work.scores() for source, work in measures.items()}
    unpublished = [row.name for row in rows if isinstance(row.source, Checkpoint) and not row.source.model]
    return {
        "table": table.name,
        "number": table.number,
        "title": table.title,
        "curve": table.curve,
        "seeds": request.seeds,
        "model": request.given.get("model", ""),
        "corpus": request.given.get("corpus", ()),
        "note": _trained_with(request, rows),
        "rows": [{"name": row.name, **_by_column(row.cells, scores)} for row in rows],
        "notes": [UNPUBLISHED.format(name) for name in unpublished],
    }


def _trained_with(request: Request, rows: Sequence[Row]) -> str:
    """Encoder, text and steps of the measured figures if they may differ from the paper's; "" for the paper's own."""
    models = [row.source.model for row in rows if isinstance(row.source, Trained)]
    own = {"model", "corpus", "max_steps", "epochs", "batch_size"} & {*request.given}
    if not (models and own):
        return ""
    run = defaults() | request.given
    names = ", ".join(dict.fromkeys(map(request.model_of, models)))
    texts = ", ".join(Path(name).name for name in request.corpus)
    steps = f"{run['max_steps']:,} steps" if run["max_steps"] else f"{run['epochs']} epochs"
    return f"Measured with {names} on {texts}, {steps} at most of {run['batch_size']} sentences. {PAPERS_RUN}"


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
    lines = [f"| {line} |" for line in aligned(rows, left=range(len(rows[0])), between=" | ")]
    lines.insert(1, re.sub("[^|]", "-", lines[0]))
    plain = any(isinstance(value, (int, str)) for row in table["rows"] for value in row["paper"].values())
    below = ["Measured, with the paper's in brackets." if plain else NOTE, *filter(None, [table["note"]])]
    return "\n".join([f"Table {table['number']}: {table['title']}", "", *lines, "", *below, *table["notes"]])


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
