"""The interface of a task and of a kind of task, which is all that the rest of the evaluation uses of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from train.evaluation.protocol import EvaluationProtocol

Scores = Any  # of one task: a number, or a dictionary of JSON types; None is an undefined score


class Task(ABC):
    """A task with its sentences and gold labels in memory."""

    kind: ClassVar[str]  # a key of registry.KINDS
    name: str

    @property
    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Pairs or examples of each split that was read."""

    @abstractmethod
    def texts(self) -> list[list[str]]:
        """All lists of sentences to embed, in a fixed order."""

    @abstractmethod
    def score(
        self, embeddings: NDArray, rows: Sequence[NDArray], protocol: EvaluationProtocol
    ) -> tuple[Scores, list[str]]:
        """The scores of the task, and notes about them for the reader, one sentence each.

        embeddings: (n, D), of distinct sentences; rows: for each list of `texts`, the rows of its sentences in
        `embeddings`, int64 (m,).
        """


@dataclass(frozen=True)
class Column:
    """One measure as a table shows it: `value(scores)` of each task, times `scale`.

    averaged: False where the tasks measure different things, so that their mean says nothing.
    """

    title: str
    value: Callable[[Scores], float | None]
    scale: float = 1
    averaged: bool = True


@dataclass(frozen=True)
class Kind:
    """What all tasks of a kind share; the module of the kind holds it as KIND.

    label: the name of the kind in a sentence. columns: the measures under a described protocol (`results.describe`);
    the mean of the first over the tasks is the average of the kind. stated: maps the protocol to the entries that this
    kind adds to the described one.
    """

    label: str
    columns: Callable[[Mapping[str, Any]], list[Column]]
    stated: Callable[[EvaluationProtocol], dict[str, Any]]


def mean_of(column: Column, tasks: Mapping[str, Scores]) -> float | None:
    """Mean of a column, unscaled, over the tasks for which it is defined; None if there is no such task."""
    defined = [value for scores in tasks.values() if (value := column.value(scores)) is not None]
    return sum(defined) / len(defined) if defined else None


def or_none(value: float) -> float | None:
    """The score, or None if it is NaN, which JSON lacks."""
    return None if math.isnan(value) else value
