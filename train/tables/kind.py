"""The parts of a table of the paper: rows of cells, each with the printed figure and the source of the measured one.

Figures are fractions, as the paper prints them. A score is a task of `train.evaluation.tasks.registry`, AVERAGE over
the seven STS tasks, or DEV, the Spearman correlation on STS-B's dev set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from train.evaluation.tasks.registry import TASKS, suite

BERT, ROBERTA = "bert-base-uncased", "roberta-base"
PARAPHRASE, BACK_TRANSLATION = "paraphrase", "back-translation"  # kinds of text of train.generate
AVERAGE, DEV = "average", "stsb_dev"
STS = (*suite("sts"), AVERAGE)
UNA, WITH_PARAPHRASES = "UNA", "Paraphrasing & UNA"  # columns of the tables of alpha, beta and radius
TITLES = {AVERAGE: "Avg.", DEV: "STS-B dev"} | {row.name: row.short for row in TASKS.values() if row.short}


@dataclass(frozen=True)
class Trained:
    """A run of `train.ddp`. settings: the (option, value) pairs of the row; all other options are the paper's.

    texts: the kind of text that is the positive, "" if a sentence is its own positive.
    """

    model: str
    texts: str = ""
    settings: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Checkpoint:
    """A published encoder with its authors' pooling. model: a name on the hub, "" if none is published there."""

    model: str
    pooling: str
    whiten: bool = False


@dataclass(frozen=True)
class TestSet:
    """The size of the test set of a task."""

    task: str


@dataclass(frozen=True)
class Negative:
    """A hard negative of a sentence, with the vocabulary of the corpus."""

    sentence: str


Source = Trained | Checkpoint | TestSet | Negative


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


@dataclass(frozen=True)
class Table:
    """A table. number: the paper's own. curve: the option whose values are the names of the rows; "" for other names.

    seeds: those that the paper trains; 42 alone is the first of its seeds, with which the figures of table 1 agree.
    of_seed: in a table of seeds, a function from a seed to its row.
    """

    name: str
    number: str
    title: str
    rows: tuple[Row, ...]
    curve: str = ""
    seeds: tuple[int, ...] = (42,)
    of_seed: Callable[[int], Row] | None = None


def trained(model: str = BERT, texts: str = "", **settings: Any) -> Trained:
    """A run with these options of `train.ddp`."""
    return Trained(model, texts, tuple(sorted(settings.items())))


def sts_row(name: str, source: Source, *figures: float) -> Row:
    """A row of the seven STS tasks and their average."""
    return Row(name, {score: Cell(figure, source, score) for score, figure in zip(STS, figures, strict=True)})


def dev_row(name: str, una: float, with_paraphrases: float, **settings: Any) -> Row:
    """A row of dev scores, of UNA alone and with paraphrases as positives."""
    return Row(
        name,
        {
            UNA: Cell(una, trained(**settings), DEV),
            WITH_PARAPHRASES: Cell(with_paraphrases, trained(texts=PARAPHRASE, **settings), DEV),
        },
    )
