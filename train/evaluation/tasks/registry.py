"""The tasks by name, one row each, and the interface of a task, which is all that the evaluation uses of it.

The modules that read and score tasks are imported on demand. To add a task of an existing kind, add a row and a module
with `read(folder, name, split)`, which returns the kind's task object (`sts.StsTask`, `transfer.TransferTask`). To add
a kind, add a row in KINDS and a module with KIND, a `Kind`.
"""

from __future__ import annotations

import difflib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from train.evaluation.protocol import EvaluationProtocol
from una_fast.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

KINDS = {
    "sts": "train.evaluation.tasks.sts",
    "transfer": "train.evaluation.tasks.transfer",
    "near-miss": "train.evaluation.tasks.near_miss",
}
FULL = ("sts", "transfer")  # the sets of tasks that papers report; together, "full"


@dataclass(frozen=True)
class TaskRow:
    """One task.

    short: the name in tables. aliases: other names that --tasks takes. sizes: number of pairs or examples of each
    split, by which `train.download` checks the files; a task of a suite needs it.
    dev: it has a dev score. suite: --tasks gives it by the name of its kind; the mean over such a set in FULL is what
    papers call the average; another task is scored only if named. module: the module with `read`; "" for the module of
    the kind.
    """

    name: str
    kind: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    short: str = ""
    aliases: tuple[str, ...] = ()
    dev: bool = False
    suite: bool = False
    module: str = ""

    def __post_init__(self) -> None:
        if self.suite and not self.sizes:
            raise ValueError(f"task {self.name}: a task of a suite needs the sizes of its splits")

    @property
    def title(self) -> str:
        """The name at the head of a table."""
        return self.short or self.name


def _sts(name: str, pairs: int, **more: object) -> TaskRow:
    """The row of an STS task. pairs: the size of its test split."""
    return TaskRow(name, "sts", {"test": pairs}, suite=True, **more)  # type: ignore[arg-type]


def _transfer(name: str, aliases: tuple[str, ...] = (), **sizes: int) -> TaskRow:
    """The row of a transfer task. sizes: the number of examples of each split as SentEval's readers load them."""
    return TaskRow(name, "transfer", sizes, aliases=aliases, dev=True, suite=True)


def _near_miss(name: str, n: int, short: str = "") -> TaskRow:
    """The row of a score on near-misses. n: entries or pairs of its test split."""
    return TaskRow(name, "near-miss", {"test": n}, short=short, dev=True, suite=True)


TASKS = {
    row.name: row
    for row in (
        _sts("STS12", 3108),
        _sts("STS13", 1500),
        _sts("STS14", 3750),
        _sts("STS15", 3000),
        _sts("STS16", 1186),
        _sts("STSBenchmark", 1379, short="STS-B", dev=True),
        _sts("SICKRelatedness", 4927, short="SICK-R", aliases=("SICK",), dev=True),
        _transfer("MR", train=10662),
        _transfer("CR", train=3775),
        _transfer("SUBJ", train=10000),
        _transfer("MPQA", train=10606),
        _transfer("SST2", aliases=("SST",), train=67349, dev=872, test=1821),
        _transfer("TREC", train=5452, test=500),
        _transfer("MRPC", train=4076, test=1725),
        _near_miss("replace_obj", 1652),
        _near_miss("replace_att", 788),
        _near_miss("replace_rel", 1406),
        _near_miss("swap_obj", 245),
        _near_miss("swap_att", 666),
        _near_miss("replace", 3846, short="replace_*"),
        _near_miss("recall_at_5", 3846, short="recall at 5 %"),
        _near_miss("sick_auc", 2134, short="SICK AUC"),
    )
}


def choices() -> str:
    """What --tasks accepts, for --help."""
    return (
        f"{', '.join(KINDS)}, full ({' and '.join(FULL)}), or these and names with commas between: {', '.join(TASKS)}"
    )


def suite(name: str) -> list[str]:
    """The tasks of a set of --tasks: "sts", "transfer", "near-miss", or "full" for the sets in FULL."""
    sets = FULL if name == "full" else (name,)
    return [row.name for row in TASKS.values() if row.suite and row.kind in sets]


def kind_of(name: str) -> Kind:
    """The kind with this name in KINDS."""
    return import_module(KINDS[name]).KIND


def read_task(folder: Path, name: str, split: str = "test") -> Task:
    """One of TASKS from SentEval's `downstream` folder.

    Raises:
        InputError: the task's files are missing or damaged, or it has no such split.
    """
    row = TASKS[name]
    return import_module(row.module or KINDS[row.kind]).read(folder, name, split)


def task_names(tasks: str, mode: str = "test") -> list[str]:
    """The tasks that --tasks asks for, by sets and names; in dev mode, a set gives its tasks with a dev score.

    Raises:
        InputError: a name of no task, or no name at all.
    """
    known, found = _spellings(), list[str]()
    for name in filter(None, map(str.strip, tasks.split(","))):
        if names := suite(name):
            found += [one for one in names if mode != "dev" or TASKS[one].dev]
        elif _plain(name) in known:
            found.append(known[_plain(name)])
        else:
            near = difflib.get_close_matches(_plain(name), known, n=1, cutoff=0.5)
            hint = f"did you mean {known[near[0]]}?" if near else f"choose from {', '.join(TASKS)}"
            raise InputError(f"unknown task {name!r}: {hint}")
    if not found:
        raise InputError(f"--tasks {tasks!r} names no task: give {', '.join(KINDS)}, full or names of tasks")
    return list(dict.fromkeys(found))


def _spellings() -> dict[str, str]:
    """The task of each accepted spelling; the keys are spellings as `_plain` writes them."""
    names = {_plain(name): name for name in TASKS}
    return names | {_plain(text): row.name for row in TASKS.values() for text in (row.short, *row.aliases) if text}


def _plain(name: str) -> str:
    """A task's name without case, hyphens, underscores and spaces: STS-B, sts_b and stsb are one."""
    return re.sub(r"[-_\s]", "", name).lower()


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

    label: the name of the kind in a sentence. columns: the measures under a described protocol (`scoring.describe`);
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
