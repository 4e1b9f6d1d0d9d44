"""The tables of the paper, from tables.yaml: rows of cells, each with the printed figure and what measures it."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train.config.command import read_yaml
from train.evaluation.tasks.registry import TASKS, suite
from una_fast.errors import InputError

BERT, ROBERTA = "bert-base-uncased", "roberta-base"
PARAPHRASE, BACK_TRANSLATION = "paraphrase", "back-translation"  # kinds of text of train.generate
AVERAGE, DEV, PAIRS, NEGATIVE = "average", "stsb_dev", "pairs", "negative"  # scores besides the tasks
STS = (*suite("sts"), AVERAGE)
TITLES = {AVERAGE: "Avg.", DEV: "STS-B dev"} | {row.name: row.short for row in TASKS.values() if row.short}


@dataclass(frozen=True)
class Trained:
    """A run of `train.ddp`. options: the (name, value) pairs of the row; all other options are the paper's.

    texts: the kind of text that is the positive, "" if a sentence is its own positive.
    """

    model: str
    texts: str = ""
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Checkpoint:
    """A published encoder with its authors' pooling. model: a name on the hub, "" if none is published there."""

    model: str
    pooling: str = "auto"
    whiten: bool = False


@dataclass(frozen=True)
class Untrained:
    """A figure that needs no training: PAIRS of the test set of a task, or NEGATIVE of a sentence."""

    score: str
    of: str


Source = Trained | Checkpoint | Untrained


@dataclass(frozen=True)
class Cell:
    """A figure of the paper, None if it has none, and the score of `source` that is measured beside it.

    deviation: the paper's, over seeds. seed: the one whose score this is; None: the mean over the command's seeds.
    """

    paper: float | str | None
    source: Source
    score: str
    deviation: float | None = None
    seed: int | None = None


@dataclass(frozen=True)
class Row:
    """A row of a table: one cell per column."""

    name: str
    cells: Mapping[str, Cell]

    @property
    def source(self) -> Source:
        """What measures the row's first cell."""
        return next(iter(self.cells.values())).source

    @property
    def of_one_seed(self) -> bool:
        """Whether the row shows the scores of one seed."""
        return any(cell.seed is not None for cell in self.cells.values())


@dataclass(frozen=True)
class Table:
    """A table, with the paper's number and seeds. curve: the option whose values are the names of the rows, or ""."""

    name: str
    number: str
    title: str
    curve: str
    seeds: tuple[int, ...]
    columns: Mapping[str, Mapping[str, Any]]
    rows: tuple[Row, ...]

    def row_of(self, seed: int) -> Row:
        """The row of a seed; the paper's figures are None for a seed that it did not train."""
        printed = (row for row in self.rows if row.name == str(seed) and row.of_one_seed)
        return next(printed, None) or _row(str(seed), {"seed": seed}, self.columns)


@functools.cache
def contents() -> dict[str, dict[str, Any]]:
    """tables.yaml: each table by its name."""
    return read_yaml(Path(__file__).with_name("tables.yaml"))


def table_of(name: str) -> Table:
    """The table with this name.

    Raises:
        InputError: there is no such table.
    """
    if name not in contents():
        close = difflib.get_close_matches(name, contents(), n=1)
        hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(contents())}"
        raise InputError(f"{f'unknown table {name!r}' if name else 'the table is missing'}: {hint}")
    told = contents()[name]
    names = STS if told["columns"] == "sts" else told["columns"]
    columns = names if isinstance(names, dict) else {score: {"score": score} for score in names}
    rows = tuple(_row(row, entry, columns) for row, entry in told["rows"].items())
    seeds = tuple(told.get("seeds", [42]))
    return Table(name, told["number"], told["title"], told.get("curve", ""), seeds, columns, rows)


def _row(name: str, entry: Mapping[str, Any], columns: Mapping[str, Mapping[str, Any]]) -> Row:
    """The row of an entry of tables.yaml."""
    figures = entry.get("paper") or [None] * len(columns)
    deviations = entry.get("deviation") or [None] * len(columns)
    cells = {
        column: Cell(figure, _source(name, entry, about), about["score"], deviation, entry.get("seed"))
        for (column, about), figure, deviation in zip(columns.items(), figures, deviations, strict=True)
    }
    return Row(name, cells)


def _source(name: str, entry: Mapping[str, Any], column: Mapping[str, Any]) -> Source:
    if column["score"] in (PAIRS, NEGATIVE):
        return Untrained(column["score"], name)
    if "checkpoint" in entry:
        return Checkpoint(entry["checkpoint"], entry["pooling"], entry.get("whiten", False))
    options = {**entry.get("run", {}), **column.get("run", {})}
    texts = entry.get("texts") or column.get("texts", "")
    return Trained(entry.get("model", BERT), texts, tuple(sorted(options.items())))
