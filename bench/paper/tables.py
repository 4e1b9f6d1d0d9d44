"""The tables of the paper: tables.yaml -> cells, and cells with measured scores -> table.json and table.md."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.report import table
from train.evaluation.tasks.registry import TASKS, suite
from train.record.folder import write_file, write_json
from train.report.runs import STS_AVERAGE

BERT, ROBERTA = "bert-base-uncased", "roberta-base"
AVERAGE, DEV = "average", "stsb_dev"  # scores besides the tasks
RUN, CHECKPOINT, PAIRS, NEGATIVE = "run", "checkpoint", "pairs", "negative"  # kinds of sources
STS = (*suite("sts"), AVERAGE)
TITLES = {AVERAGE: "Avg.", DEV: "STS-B dev"} | {row.name: row.short for row in TASKS.values() if row.short}
NOTE = "Measured ± deviation over seeds, in brackets the paper's figure and the difference; scores × 100."

Scores = Mapping[int, Mapping[str, Any]]  # by seed, then by name; scores are fractions


@dataclass(frozen=True)
class Source:
    """What measures a figure: a RUN of train.ddp, a published CHECKPOINT, the PAIRS of a task, the NEGATIVE of a text.

    Attributes:
        name: the encoder, the task or the text.
        options: (name, value) pairs of the row, for train.ddp or train.evaluate; all others are the paper's.
        texts: the kind of text that is the positive, "" if a sentence is its own positive.
    """

    kind: str
    name: str
    options: tuple[tuple[str, Any], ...] = ()
    texts: str = ""


@dataclass(frozen=True)
class Cell:
    """A figure of the paper, None if it has none, and the score of `source` that is measured beside it.

    Attributes:
        deviation: the paper's, over seeds.
        seed: the one whose score this is; None: the mean over the command's seeds.
    """

    row: str
    column: str
    paper: float | str | None
    deviation: float | None
    source: Source
    score: str
    seed: int | None


@functools.cache
def contents() -> dict[str, dict[str, Any]]:
    """tables.yaml: each table by its name."""
    return yaml.safe_load(Path(__file__).with_name("tables.yaml").read_text(encoding="utf-8"))


def cells_of(name: str, seeds: Sequence[int] = (), model: str = "") -> list[Cell]:
    """The cells of a table, row by row.

    Args:
        name: Of the table.
        seeds: Of the rows that show one seed; by default the paper's.
        model: What takes the place of BERT; then no row has RoBERTa.
    """
    columns, rows = (contents()[name][part] for part in ("columns", "rows"))
    columns = STS if columns == "sts" else columns
    columns = columns if isinstance(columns, dict) else {score: {"score": score} for score in columns}
    if seeds and any("seed" in row for row in rows.values()):
        means = {label: row for label, row in rows.items() if "seed" not in row}
        rows = {str(seed): rows.get(str(seed), {"seed": seed}) for seed in seeds} | means
    empty = [None] * len(columns)
    return [
        Cell(label, column, figure, deviation, _source(label, row, about, model), about["score"], row.get("seed"))
        for label, row in rows.items()
        if not (model and ROBERTA in (row.get("model"), row.get(CHECKPOINT)))
        for (column, about), figure, deviation in zip(
            columns.items(), row.get("paper", empty), row.get("deviation", empty), strict=True
        )
    ]


def _source(label: str, row: Mapping[str, Any], column: Mapping[str, Any], model: str) -> Source:
    if column["score"] in (PAIRS, NEGATIVE):
        return Source(column["score"], label)
    name = row.get(CHECKPOINT, row.get("model", BERT))
    name = model if model and name == BERT else name
    if CHECKPOINT in row:
        return Source(CHECKPOINT, name, tuple((one, row[one]) for one in ("pooling", "whiten") if one in row))
    options = {**row.get("run", {}), **column.get("run", {})}
    return Source(RUN, name, tuple(sorted(options.items())), row.get("texts") or column.get("texts", ""))


def save(folder: Path, about: Mapping[str, Any], cells: Iterable[Cell], scores: Mapping[Source, Scores]) -> str:
    """Write the table with what is measured so far, and return it as Markdown.

    FOLDER/tables holds each table under its name, FOLDER/table.json and .md the last one. Figures are fractions, null
    if there is none; a row has, each by column: paper, paper_deviation, measured (mean over seeds), difference,
    deviation (of the sample, n - 1) and seeds. about: the further entries of table.json.
    """
    rows: dict[str, dict[str, Any]] = {}
    texts: dict[str, list[str]] = {}
    for cell in cells:
        row, entry = rows.setdefault(cell.row, {"name": cell.row}), _measured(cell, scores.get(cell.source, {}))
        for name, value in entry.items():
            row.setdefault(name, {})[cell.column] = value
        texts.setdefault(cell.row, [cell.row]).append(_text(**entry))
    columns = list(dict.fromkeys(column for row in rows.values() for column in row["paper"]))
    lines = table([about["curve"], *(TITLES.get(column, column) for column in columns)], texts.values())
    page = "\n\n".join([f"Table {about['number']}: {about['title']}", lines, NOTE, *filter(None, [about["note"]])])
    for stem in (folder / "tables" / about["table"], folder / "table"):
        write_json(Path(f"{stem}.json"), {**about, "rows": [*rows.values()]})
        write_file(Path(f"{stem}.md"), page + "\n")
    return page


def _measured(cell: Cell, scores: Scores) -> dict[str, Any]:
    name = STS_AVERAGE if cell.score == AVERAGE else cell.score
    seeds = {seed: by_name.get(name) for seed, by_name in scores.items() if cell.seed in (None, seed)}
    values = [value for value in seeds.values() if value is not None]
    several = len(values) > 1 and not isinstance(values[0], str)
    measured = statistics.fmean(values) if several else next(iter(values), None)
    compared = isinstance(measured, (int, float)) and isinstance(cell.paper, (int, float))
    return {
        "paper": cell.paper,
        "paper_deviation": cell.deviation,
        "measured": measured,
        "difference": measured - cell.paper if compared else None,
        "deviation": statistics.stdev(values) if several else None,
        "seeds": {str(seed): value for seed, value in seeds.items()},
    }


def _text(paper: Any, paper_deviation: Any, measured: Any, difference: Any, deviation: Any, seeds: Any) -> str:
    """A cell of the Markdown: the measured figure, and in brackets the paper's and the difference of scores."""
    if paper is None:
        return _figure(measured, deviation)
    more = f", {100 * difference:+.2f}" if isinstance(difference, float) else ""
    return f"{_figure(measured, deviation)} ({_figure(paper, paper_deviation)}{more})"


def _figure(value: float | str | None, deviation: float | None) -> str:
    """A score (float) × 100 ± its deviation, a count (int) or a text as it is, "-" for None."""
    if isinstance(value, float):
        return f"{100 * value:.2f}" + (f" ± {100 * deviation:.2f}" if deviation is not None else "")
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else value
