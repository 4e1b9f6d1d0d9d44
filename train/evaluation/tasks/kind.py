"""The interface of a task and of a kind of task. The rest of the evaluation uses nothing else of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from train.evaluation.protocol import Protocol

Scores = dict[str, Any]  # of one task, of JSON types; None is an undefined score


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
        """All lists of sentences that are embedded, in a fixed order."""

    @abstractmethod
    def score(self, embeddings: NDArray, rows: Sequence[NDArray], protocol: Protocol) -> tuple[Scores, list[str]]:
        """The scores of the task, and a sentence for each thing about them that a reader should know.

        embeddings: (n, D), of distinct sentences; rows: for each list of `texts`, its rows in them, int64 (m,).
        """


@dataclass(frozen=True)
class Column:
    """One measure as a table shows it: `value` of a task's scores, times `scale`."""

    title: str
    value: Callable[[Scores], float | None]
    scale: float = 1


@dataclass(frozen=True)
class Kind:
    """What all tasks of a kind share; the module of the kind holds it as KIND.

    label: the kind in a sentence. columns: the measures under a described protocol (`results.describe`); the mean of
    the first over the tasks is the average of the kind. stated: lines of the described protocol, from its mode.
    """

    label: str
    columns: Callable[[Mapping[str, Any]], list[Column]]
    stated: Callable[[str], dict[str, str]]


def mean_of(column: Column, tasks: Mapping[str, Scores]) -> float | None:
    """Mean of a column, unscaled, over the tasks for which it is defined; None if there is none."""
    defined = [value for scores in tasks.values() if (value := column.value(scores)) is not None]
    return sum(defined) / len(defined) if defined else None
