"""SentEval's transfer tasks: a logistic regression on frozen embeddings of sentences or pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from train.evaluation.classifier import Protocol
from train.evaluation.files import normalise_spaces, read_columns, read_lines
from train.evaluation.tasks.names import TRANSFER_TASKS
from train.evaluation.validation import Accuracies, Labelled, cross_validated, nested_folds, split_validated
from una_fast.errors import InputError

BINARY_FILES = {  # folder: file of class 1, file of class 0
    "MR": ("rt-polarity.pos", "rt-polarity.neg"),
    "CR": ("custrev.pos", "custrev.neg"),
    "SUBJ": ("subj.objective", "subj.subjective"),
    "MPQA": ("mpqa.pos", "mpqa.neg"),
}
TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")


@dataclass(frozen=True)
class Split:
    """Examples in SentEval's order (by length, then class), on which its folds depend."""

    first: list[str]
    second: list[str] | None  # of a task on pairs
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class TransferTask:
    """A task by its splits: "train" alone, "train" and "test", or "train", "dev" and "test"."""

    name: str
    splits: dict[str, Split]
    n_classes: int


def read_transfer(downstream: Path, name: str) -> TransferTask:
    """One of TRANSFER_TASKS from SentEval's `downstream` folder."""
    if name in BINARY_FILES:
        return _read_binary(downstream / name, name)
    if name == "SST2":
        return _read_sst2(downstream / "SST" / "binary")
    if name == "TREC":
        return _read_trec(downstream / name)
    if name == "MRPC":
        return _read_mrpc(downstream / name)
    raise InputError(f"unknown transfer task {name!r}: choose from {', '.join(TRANSFER_TASKS)}")


def score_transfer(task: TransferTask, embed: Callable[[list[str]], NDArray], protocol: Protocol) -> Accuracies:
    """Accuracies of a task under SentEval's protocol for its splits; embed: texts -> float (n, D)."""
    data = {
        name: Labelled(_features(split, embed), torch.from_numpy(split.labels)) for name, split in task.splits.items()
    }
    if "dev" in data:
        return split_validated(data["train"], data["dev"], data["test"], task.n_classes, protocol)
    if "test" in data:
        return cross_validated(data["train"], data["test"], task.n_classes, protocol)
    return nested_folds(data["train"], task.n_classes, protocol)


def f1(predicted: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """F1 of class 1 in percent; 0 where no example is or was called 1."""
    hits = int(((predicted == 1) & (labels == 1)).sum())
    called = int((predicted == 1).sum() + (labels == 1).sum())
    return 200 * hits / called if called else 0.0


def _features(split: Split, embed: Callable[[list[str]], NDArray]) -> Tensor:
    """Embeddings (n, D) of sentences; of pairs, |u - v| beside u v, (n, 2 D)."""
    first = torch.from_numpy(np.asarray(embed(split.first), np.float32))
    if split.second is None:
        return first
    second = torch.from_numpy(np.asarray(embed(split.second), np.float32))
    return torch.cat([(first - second).abs(), first * second], dim=1)


def _in_order(first: list[str], labels: list[int], second: list[str] | None = None) -> Split:
    """The split in the order that SentEval sorts it into: words of first, words of second, class."""
    first = normalise_spaces(first)
    second = None if second is None else normalise_spaces(second)

    def key(i: int) -> tuple[int, int, int]:
        return len(first[i].split()), len(second[i].split()) if second else 0, labels[i]

    order = sorted(range(len(labels)), key=key)
    return Split(
        [first[i] for i in order],
        None if second is None else [second[i] for i in order],
        np.array([labels[i] for i in order], np.int64),
    )


def _read_binary(folder: Path, name: str) -> TransferTask:
    texts: list[str] = []
    labels: list[int] = []
    for label, file in zip((1, 0), BINARY_FILES[name], strict=True):
        # Latin-1, as SentEval reads these files: its published figures are of those characters
        lines = read_lines(folder / file, "latin-1")
        texts += lines
        labels += [label] * len(lines)
    return TransferTask(name, {"train": _in_order(texts, labels)}, 2)


def _read_sst2(folder: Path) -> TransferTask:
    splits = {}
    for split in ("train", "dev", "test"):
        path = folder / f"sentiment-{split}"
        rows = [(text, _class_in(label, ("0", "1"), path, line)) for line, (text, label) in read_columns(path, (0, 1))]
        splits[split] = _in_order([text for text, _ in rows], [label for _, label in rows])
    return TransferTask("SST2", splits, 2)


def _read_trec(folder: Path) -> TransferTask:
    splits = {}
    for split, file in (("train", "train_5500.label"), ("test", "TREC_10.label")):
        path = folder / file
        texts, labels = [], []
        for number, line in enumerate(read_lines(path, "latin-1"), start=1):
            label, _, rest = line.partition(":")
            labels.append(_class_in(label, TREC_CLASSES, path, number))
            texts.append(rest.partition(" ")[2])  # after the fine class
        splits[split] = _in_order(texts, labels)
    return TransferTask("TREC", splits, len(TREC_CLASSES))


def _read_mrpc(folder: Path) -> TransferTask:
    splits = {}
    for split in ("train", "test"):
        path = folder / f"msr_paraphrase_{split}.txt"
        rows = list(read_columns(path, (0, 3, 4), skip=1))
        labels = [_class_in(label, ("0", "1"), path, line) for line, (label, _, _) in rows]
        splits[split] = _in_order([row[1] for _, row in rows], labels, [row[2] for _, row in rows])
    return TransferTask("MRPC", splits, 2)


def _class_in(text: str, classes: tuple[str, ...], path: Path, line: int) -> int:
    try:
        return classes.index(text.strip())
    except ValueError:
        raise InputError(f"{path}, line {line}: class {text!r} is none of {', '.join(classes)}") from None
