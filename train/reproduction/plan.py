"""A request -> the rows that it asks for, and the works that measure them, each of them once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from transformers import AutoConfig

from train.encoder.encoder import from_pretrained, quiet
from train.reproduction.checkpoints import Scoring
from train.reproduction.setting import Setting
from train.reproduction.texts import Texts
from train.reproduction.training import Training
from train.reproduction.untrained import Counting, Drawing
from train.tables.kind import (
    BERT,
    DEV,
    ROBERTA,
    STS,
    Cell,
    Checkpoint,
    Row,
    Source,
    TestSet,
    Trained,
)  # fmt: skip
from una_fast.errors import InputError

UNPUBLISHED = "{0}: its authors name no model on the hub; --checkpoints '{0}=FOLDER' scores one"


class Work(Protocol):
    """A job that measures the cells of a source, or that prepares such a measurement."""

    @property
    def name(self) -> str:
        """The name of the work in messages."""

    @property
    def models(self) -> Sequence[str]:
        """The models that must be on this machine, by name or folder."""

    def done(self) -> bool:
        """True if nothing is left to do."""

    def do(self) -> int:
        """Do what is left and return the exit code."""

    def describe(self) -> str:
        """The command that does the work, or the work in words."""


class Measure(Work, Protocol):
    """A work that gives scores."""

    def scores(self) -> dict[int, dict[str, Any]]:
        """The scores that are saved already, by seed."""


@dataclass(frozen=True)
class Plan:
    """The rows of a request and their works, by source in the order of the rows. before: works to be done first."""

    setting: Setting
    rows: tuple[Row, ...]
    before: tuple[Texts, ...]
    measures: dict[Source, Measure]
    notes: tuple[str, ...]

    @property
    def trust(self) -> bool:
        """Whether Python code that comes with a model may run."""
        return bool(self.setting.request.given.get("trust_remote_code"))

    @property
    def works(self) -> list[Work]:
        """All works in the order in which they are done."""
        return [*self.before, *self.measures.values()]


def make_plan(setting: Setting) -> Plan:
    """The plan of a request.

    Raises:
        InputError: no such row, no data, or options that no run can have.
    """
    rows = _chosen(setting, _rows(setting))
    cells: dict[Source, list[Cell]] = {}
    notes = []
    for row in rows:
        for cell in row.cells.values():
            cells.setdefault(cell.source, []).append(cell)
        if any(isinstance(cell.source, Checkpoint) and not cell.source.model for cell in row.cells.values()):
            notes.append(UNPUBLISHED.format(row.name))
    measures = {source: _measure(setting, source, own) for source, own in cells.items()}
    found = {source: measure for source, measure in measures.items() if measure}
    kinds = dict.fromkeys(source.texts for source in found if isinstance(source, Trained) and source.texts)
    return Plan(setting, rows, tuple(Texts(setting, kind) for kind in kinds), found, tuple(notes))


def _measure(setting: Setting, source: Source, cells: Sequence[Cell]) -> Measure | None:
    if isinstance(source, Trained):
        seeds = tuple(
            dict.fromkeys(s for cell in cells for s in ([cell.seed] if cell.seed is not None else setting.seeds))
        )
        return Training(setting, source, seeds, scored=any(cell.score != DEV for cell in cells))
    if isinstance(source, Checkpoint):
        return Scoring(setting, source) if source.model else None
    return Counting(setting, source) if isinstance(source, TestSet) else Drawing(setting, source)


def _rows(setting: Setting) -> list[Row]:
    """The rows of the table for the user's encoder, seeds and checkpoints."""
    table = setting.request.table
    rows = list(table.rows)
    if table.of_seed:
        rows = [*map(table.of_seed, setting.seeds), *(row for row in rows if not _of_one_seed(row))]
    rows = [own for row in rows if (own := _with_model(setting, row))]
    if setting.request.paper.checkpoints and not any(isinstance(_source(row), Checkpoint) for row in table.rows):
        raise InputError(f"--checkpoints: the table {table.name} scores no published encoders: comparison does")
    return _with_checkpoints(rows, setting.request.paper.checkpoints)


def _source(row: Row) -> Source:
    return next(iter(row.cells.values())).source


def _of_one_seed(row: Row) -> bool:
    return all(cell.seed is not None for cell in row.cells.values())


def _with_model(setting: Setting, row: Row) -> Row | None:
    """The row with --model in place of BERT or RoBERTa, or None if it would then repeat another row."""
    source = _source(row)
    named = getattr(source, "model", None)
    if named not in (BERT, ROBERTA):
        return row
    if not setting.has_place_for(named):
        return None
    if isinstance(source, Checkpoint):
        return _scored_by(row, dataclasses.replace(source, model=setting.model_of(named)))
    return row


def _scored_by(row: Row, source: Checkpoint) -> Row:
    return Row(row.name, {name: dataclasses.replace(cell, source=source) for name, cell in row.cells.items()})


def _with_checkpoints(rows: list[Row], given: Sequence[str]) -> list[Row]:
    """The rows with the user's encoders: in place of a row's own, or in new rows without figures of the paper."""
    for word in given:
        name, _, model = word.rpartition("=")
        known = {row.name: place for place, row in enumerate(rows)}
        if not name:
            source = Checkpoint(word, "auto")
            rows.append(Row(Path(word).name, {score: Cell(None, source, score) for score in STS}))
        elif name in known and isinstance(before := _source(rows[known[name]]), Checkpoint):
            rows[known[name]] = _scored_by(rows[known[name]], dataclasses.replace(before, model=model))
        else:
            raise InputError(f"--checkpoints {word}: there is no row {name!r} of a published encoder: name one of them")
    return rows


def _chosen(setting: Setting, rows: list[Row]) -> tuple[Row, ...]:
    """The rows that --rows names with the columns that --columns names, in the order of the table."""
    paper = setting.request.paper
    wanted = _named("--rows", paper.rows, [row.name for row in rows])
    columns = _named("--columns", paper.columns, list(dict.fromkeys(name for row in rows for name in row.cells)))
    return tuple(
        Row(row.name, {name: cell for name, cell in row.cells.items() if name in columns})
        for row in rows
        if row.name in wanted
    )


def _named(flag: str, text: str, names: Sequence[str]) -> list[str]:
    """The names in the value `text` of the option `flag`; if it is empty, all `names`."""
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in names:
            raise InputError(f"{flag}: the table has no {name!r}: choose from {', '.join(names)}")
    return wanted or list(names)


def missing_models(works: Sequence[Work], trust: bool) -> InputError | None:
    """An error that names all models that are not on this machine and how to fetch them; None if none is missing."""
    quiet()
    names = dict.fromkeys(name for work in works for name in work.models)
    missing = [name for name in names if not _is_here(name, trust)]
    if not missing:
        return None
    commands = " && ".join(f"hf download {name}" for name in missing)
    return InputError(
        f"{', '.join(missing)}: not on this machine, and the Hugging Face hub cannot be reached: run "
        f"`{commands}` where there is a network, or name models that are here (--model, --paraphraser, "
        "--translator, --checkpoints), or choose --rows or --columns without them"
    )


def _is_here(name: str, trust: bool) -> bool:
    try:
        from_pretrained("configuration", AutoConfig, name, trust)
    except InputError:
        if Path(name).exists() or name.startswith((".", "/", "~")):
            raise
        return False
    return True
