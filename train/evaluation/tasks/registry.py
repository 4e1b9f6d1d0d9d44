"""The evaluation tasks by name, and the protocol of an evaluation. This module does not import torch."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from train.encoder.pooling import AUTO, POOLINGS
from una_fast.command import option
from una_fast.errors import InputError, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Kind(NamedTuple):
    """A kind of tasks. All tasks of a kind share a table."""

    module: str  # has a function `read(folder, name, split)` that returns a `Task`
    heading: str  # printed above the table
    unit: float = 1  # the highest possible score
    average: str = ""  # name of the mean over all tasks of the kind; "" if papers report none


KINDS = {
    "sts": Kind("train.evaluation.tasks.sts", "Spearman x 100, 'all'", average="STS average"),
    "transfer": Kind("train.evaluation.tasks.transfer", "Accuracy, %", 100, "transfer average"),
    "near-miss": Kind("train.evaluation.tasks.near_miss", "Near-misses x 100"),
    "retrieval": Kind("train.evaluation.tasks.retrieval", "nDCG@10 x 100"),
}
FULL = tuple(name for name, kind in KINDS.items() if kind.average)  # the kinds that --tasks full means
SUGARCREPE = ("replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att")  # its subsets, each also a task
NEAR_MISSES = "near_miss"  # the folder of the near-miss data, next to senteval/


class TaskSpec(NamedTuple):
    """What is known about a task before its files are read."""

    name: str
    kind: str
    sizes: Mapping[str, int]  # number of pairs or examples in each split; `train.download` checks these numbers
    short: str = ""  # the name in tables, if it differs from `name`
    dev: bool = True  # False: --mode dev skips it
    # import path of a module that reads the task, "" for the module of `kind`; --tasks KIND skips a task with a path
    module: str = ""

    @property
    def title(self) -> str:
        """The name in tables."""
        return self.short or self.name


TASKS = {
    row.name: row
    for row in (
        TaskSpec("STS12", "sts", {"test": 3108}, dev=False),
        TaskSpec("STS13", "sts", {"test": 1500}, dev=False),
        TaskSpec("STS14", "sts", {"test": 3750}, dev=False),
        TaskSpec("STS15", "sts", {"test": 3000}, dev=False),
        TaskSpec("STS16", "sts", {"test": 1186}, dev=False),
        TaskSpec("STSBenchmark", "sts", {"test": 1379}, "STS-B"),
        TaskSpec("SICKRelatedness", "sts", {"test": 4927}, "SICK-R"),
        TaskSpec("MR", "transfer", {"train": 10662}),
        TaskSpec("CR", "transfer", {"train": 3775}),
        TaskSpec("SUBJ", "transfer", {"train": 10000}),
        TaskSpec("MPQA", "transfer", {"train": 10606}),
        TaskSpec("SST2", "transfer", {"train": 67349, "dev": 872, "test": 1821}),
        TaskSpec("TREC", "transfer", {"train": 5452, "test": 500}),
        TaskSpec("MRPC", "transfer", {"train": 4076, "test": 1725}),
        TaskSpec("replace_obj", "near-miss", {"test": 1652}),
        TaskSpec("replace_att", "near-miss", {"test": 788}),
        TaskSpec("replace_rel", "near-miss", {"test": 1406}),
        TaskSpec("swap_obj", "near-miss", {"test": 245}),
        TaskSpec("swap_att", "near-miss", {"test": 666}),
        TaskSpec("replace", "near-miss", {"test": 3846}, "replace_*"),
        TaskSpec("recall_at_5", "near-miss", {"test": 3846}, "recall at 5 %"),
        TaskSpec("sick_auc", "near-miss", {"test": 2134}, "SICK AUC"),
        TaskSpec("qqp_near", "near-miss", {"dev": 808}),
        TaskSpec("qqp_close", "near-miss", {"dev": 580}),
        TaskSpec("paws_wiki", "near-miss", {"dev": 990}),
        TaskSpec("checklist", "near-miss", {"dev": 813}),
        TaskSpec("retrieval", "retrieval", {}, dev=False),
    )
}
CHOICES = (
    f"{', '.join(KINDS)}, full ({' and '.join(FULL)}), or a comma-separated list of these and of tasks: "
    f"{', '.join(TASKS)}"
)


def suite(name: str) -> list[str]:
    """List the tasks of a kind, or of "full". Return [] for another name."""
    kinds = FULL if name == "full" else (name,)
    return [row.name for row in TASKS.values() if row.kind in kinds and not row.module]


def read_task(folder: Path, name: str, split: str = "test") -> Task:
    """Read a task from SentEval's `downstream` folder."""
    row = TASKS[name]
    return import_module(row.module or KINDS[row.kind].module).read(folder, name, split)


def task_names(tasks: str, mode: str = "test") -> list[str]:
    """List the tasks of --tasks. In dev mode, a suite includes only tasks with a dev score."""
    titles = {text: row.name for row in TASKS.values() for text in (row.name, row.title)}
    known = {_plain(text): name for text, name in titles.items()}
    names: list[str] = []
    for name in filter(None, map(str.strip, tasks.split(","))):
        if of_suite := suite(name):
            names += [task for task in of_suite if mode != "dev" or TASKS[task].dev]
        elif _plain(name) in known:
            names.append(known[_plain(name)])
        else:
            raise InputError(f"unknown task {name!r}: {nearest(name, titles) or f'choose from {CHOICES}'}")
    if not names:
        raise InputError(f"--tasks {tasks!r} names no task: give {', '.join(KINDS)}, full or names of tasks")
    return list(dict.fromkeys(names))


def _plain(name: str) -> str:
    """Normalise the name of a task: STS-B, sts_b and stsb are equal."""
    return re.sub(r"[-_\s]", "", name).lower()


class FitSettings(NamedTuple):
    """SentEval's settings for the classifiers of transfer tasks, as SimCSE uses them."""

    folds: int
    optimiser: str
    batch_size: int
    tenacity: int  # a fit ends when more than `tenacity` checks, in total, found no new best dev accuracy
    passes: int  # passes over the training rows between two such checks


FULL_FIT = FitSettings(folds=10, optimiser="adam", batch_size=64, tenacity=5, passes=4)
FAST_FIT = FitSettings(folds=5, optimiser="rmsprop", batch_size=128, tenacity=3, passes=2)

MODES = {
    "test": "test splits, with the classifiers of transfer tasks trained in full",
    "fasttest": "test splits, with classifiers trained for a shorter time",
    "dev": "dev splits, with the same classifiers as fasttest",
}


@dataclass(frozen=True)
class EvaluationProtocol:
    """How scores are computed."""  # also the heading of these options in --help

    mode: str = option("evaluation mode, as in SimCSE", "test", choices=MODES)
    pooling: str = option("how token vectors become an embedding, in SimCSE's names; auto: as in the model's "
                          "modules.json, or cls_before_pooler", AUTO, choices=(AUTO, *POOLINGS, "mean"))  # fmt: skip
    max_length: int | None = option("truncate sentences to this many tokens; default: the model's", None, least=3)
    held_out: bool = option("in near-miss tasks, leave out the images on which --mode dev is scored", False)
    whiten: bool = option("whiten embeddings, separately for the sentences of each task", False)
    precision: Literal["fp32", "bf16"] = option("number format of the encoder's arithmetic", "fp32")

    @property
    def split(self) -> str:
        """The split that is scored."""
        return "dev" if self.mode == "dev" else "test"

    @property
    def fit(self) -> FitSettings:
        """The settings for the classifiers of transfer tasks."""
        return FULL_FIT if self.mode == "test" else FAST_FIT


Scores = Any  # the scores of one task: a number, NaN if undefined, or nested dictionaries of numbers


def measures(kind: str, results: Mapping[str, Any]) -> dict[str, float | None]:
    """Select the score that tables show for each task of a kind. results: the content of evaluation.json."""
    scores, accuracy = results.get(kind, {}), "dev_accuracy" if results["protocol"]["split"] == "dev" else "accuracy"
    if kind == "sts":
        return {name: task["spearman"]["all"] for name, task in scores.items()}
    if kind == "transfer":
        return {name: task[accuracy] for name, task in scores.items()}
    if kind == "retrieval":
        return {name: one["ndcg@10"] for sets in scores.values() for name, one in sets.items()}
    return {name: task["auc"] if isinstance(task, dict) else task for name, task in scores.items()}


def per_query(results: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the nDCG@10 of each query, by retrieval set. results: the content of evaluation.json."""
    sets = results.get("retrieval", {}).get("retrieval", {})
    return {name: one["per_query"] for name, one in sets.items()}


@dataclass(frozen=True)
class Task(ABC):
    """A task with its sentences and gold labels in memory."""

    kind: ClassVar[str]  # a key of KINDS
    name: str
    texts: list[list[str]]  # lists of sentences to embed
    sizes: dict[str, int]  # number of pairs or examples in each split that was read

    @abstractmethod
    def score(self, embeddings: Sequence[NDArray], protocol: EvaluationProtocol) -> Scores:
        """Compute the scores from the embeddings (n_sentences, D) of each list of `texts`."""


class DevTask(Task):
    """A task by which a training can choose its best step (--dev)."""

    measure: ClassVar[str]  # name of the score in messages

    @abstractmethod
    def dev_score(self, embeddings: Sequence[NDArray]) -> float:
        """Compute the score, NaN if it is undefined. embeddings: as in `score`."""


def retrieval_folders(root: Path) -> list[Path]:
    """List the folders in BEIR's format: `root` itself, or those in `root` and `root`/retrieval, by name."""
    if (root / "corpus.jsonl").is_file():
        return [root]
    found = (path.parent for pattern in ("*", "retrieval/*") for path in root.glob(f"{pattern}/corpus.jsonl"))
    return sorted(found, key=lambda folder: folder.name)


def downstream_folder(data: str | os.PathLike[str] | None = None) -> Path:
    """Find SentEval's `downstream` folder: `data` itself, or below it. By default, `data` is what UNA_FAST_DATA names.

    If `data` contains near_miss/ or retrieval sets, or is one, but has no SentEval, the returned path does not exist.
    """
    named = data if data is not None else os.environ.get("UNA_FAST_DATA")
    if not named:
        raise InputError("no evaluation data: give --data FOLDER, or name the folder in UNA_FAST_DATA")
    root = Path(named)
    for candidate in (root / "senteval" / "downstream", root / "downstream", root):
        if candidate.name == "downstream" and candidate.is_dir():
            return candidate
    if (root / NEAR_MISSES).is_dir() or retrieval_folders(root):
        return root / "senteval" / "downstream"
    what = "contains no senteval/downstream" if root.is_dir() else "is not a folder"
    raise InputError(f"evaluation data: {root} {what}; `python -m train.download --to {root}` fetches it")
