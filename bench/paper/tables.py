"""The tables of the paper, read from tables.yaml as cells."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from train.evaluation.tasks.registry import suite

BERT, ROBERTA = "bert-base-uncased", "roberta-base"
AVERAGE, DEV = "average", "stsb_dev"  # scores that are not tasks
RUN, CHECKPOINT, PAIRS, NEGATIVE = "run", "checkpoint", "pairs", "negative"  # kinds of sources
STS = (*suite("sts"), AVERAGE)

Scores = Mapping[int, Mapping[str, Any]]  # by seed, then by name; scores are fractions


class Source(NamedTuple):
    """What the figure in a cell is measured on."""

    kind: str  # RUN (of train.ddp), CHECKPOINT (a published encoder), PAIRS (of a task) or NEGATIVE (of a text)
    name: str  # the encoder, the task or the text
    # the row's options of train.ddp or train.evaluate as (name, value); all other options have the paper's values
    options: tuple[tuple[str, Any], ...] = ()
    texts: str = ""  # the kind of text that is used as the positive; "" if the positive is the sentence itself


class Cell(NamedTuple):
    """A cell of a table: a figure of the paper, and which score to measure for it."""

    row: str
    column: str
    paper: float | str | None  # the paper's figure, or None if the paper has none
    deviation: float | None  # the paper's standard deviation over seeds
    source: Source
    score: str  # the name of the score of `source`
    seed: int | None  # the seed of this score, or None for the mean over all seeds of the command


@functools.cache
def contents() -> dict[str, dict[str, Any]]:
    """Read tables.yaml, and return the tables by name."""
    return yaml.safe_load(Path(__file__).with_name("tables.yaml").read_text(encoding="utf-8"))


def cells_of(name: str, seeds: Sequence[int] = (), model: str = "") -> list[Cell]:
    """Return the cells of a table, row by row.

    Args:
        name: name of the table.
        seeds: seeds of the rows that show one seed. By default the paper's seeds.
        model: an encoder that replaces BERT. If it is given, rows with RoBERTa are left out.
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
