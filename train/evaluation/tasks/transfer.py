"""SentEval's transfer tasks: a logistic regression on frozen embeddings of sentences or pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from train.evaluation.classifier import (
    FAST,
    FULL,
    Accuracies,
    FitSettings,
    Labelled,
    cross_validated,
    nested_folds,
    split_validated,
)
from train.evaluation.files import normalise_spaces, read_columns, read_lines
from train.evaluation.protocol import EvaluationProtocol
from train.evaluation.tasks.registry import Column, Kind, Scores, Task
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
    second: list[str] | None  # None unless the task is on pairs
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def texts(self) -> list[list[str]]:
        """The sentences, or the first and the second ones of the pairs."""
        return [self.first] if self.second is None else [self.first, self.second]


@dataclass(frozen=True)
class TransferTask(Task):
    """A task with its splits: "train" alone, "train" and "test", or "train", "dev" and "test"."""

    kind = "transfer"
    name: str
    splits: dict[str, Split]
    n_classes: int

    @property
    def sizes(self) -> dict[str, int]:
        """Examples of each split."""
        return {name: len(split) for name, split in self.splits.items()}

    def texts(self) -> list[list[str]]:
        """The sentences of each split, or the first and the second sentences of its pairs."""
        return [texts for split in self.splits.values() for texts in split.texts]

    def score(
        self, embeddings: NDArray, rows: Sequence[NDArray], protocol: EvaluationProtocol
    ) -> tuple[Scores, list[str]]:
        """Accuracies on dev and on test in percent."""
        accuracies = self.classify([embeddings[side] for side in rows], settings_of(protocol.mode))
        scores: Scores = {"examples": self.sizes, "dev_accuracy": accuracies.dev, "accuracy": accuracies.test}
        if self.name == "MRPC" and accuracies.predicted is not None:
            scores["f1"] = round(f1(accuracies.predicted, self.splits["test"].labels), 2)
        return scores, []

    def classify(self, embeddings: Sequence[NDArray], settings: FitSettings) -> Accuracies:
        """Accuracies under SentEval's protocol for the splits; embeddings: float (m, D) of each list of `texts`."""
        left = iter(embeddings)
        data = {
            name: Labelled(_features([next(left) for _ in split.texts]), torch.from_numpy(split.labels))
            for name, split in self.splits.items()
        }
        if "dev" in data:
            return split_validated(data["train"], data["dev"], data["test"], self.n_classes, settings)
        if "test" in data:
            return cross_validated(data["train"], data["test"], self.n_classes, settings)
        return nested_folds(data["train"], self.n_classes, settings)


def settings_of(mode: str) -> FitSettings:
    """The settings of the classifier in a mode of the protocol."""
    return FULL if mode == "test" else FAST


def _columns(protocol: Mapping[str, Any]) -> list[Column]:
    split = protocol["split"]
    name = "dev_accuracy" if split == "dev" else "accuracy"
    return [Column(f"Accuracy, %, {split}", lambda scores: scores[name])]


def _stated(protocol: EvaluationProtocol) -> dict[str, str]:
    settings = settings_of(protocol.mode)
    fit = f"logistic regression, {settings.optimiser}, {settings.folds} folds, SentEval's seed"
    return {"classifier": fit}


KIND = Kind("transfer", _columns, _stated)


def read(downstream: Path, name: str, split: str = "test") -> TransferTask:
    """One of SentEval's tasks from its `downstream` folder: all its splits, whichever of them is scored."""
    if name in BINARY_FILES:
        return _read_binary(downstream / name, name)
    if name in READERS:
        folder, reader = READERS[name]
        return reader(downstream / folder)
    raise InputError(f"unknown transfer task {name!r}: choose from {', '.join((*BINARY_FILES, *READERS))}")


def f1(predicted: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """F1 of class 1 in percent; 0 if no example has or is predicted to have class 1."""
    hits = int(((predicted == 1) & (labels == 1)).sum())
    called = int((predicted == 1).sum() + (labels == 1).sum())
    return 200 * hits / called if called else 0.0


def _features(embeddings: list[NDArray]) -> Tensor:
    """The classifier's input: embeddings (n, D) of sentences, or |u - v| and u * v of pairs side by side, (n, 2 D)."""
    first, *others = (torch.from_numpy(np.asarray(part, np.float32)) for part in embeddings)
    if not others:
        return first
    (second,) = others
    return torch.cat([(first - second).abs(), first * second], dim=1)


def _in_order(first: list[str], labels: list[int], second: list[str] | None = None) -> Split:
    """The split in SentEval's order: by number of words of the first sentence, then of the second, then by class."""
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
        # Latin-1, because SentEval reads these files so and its published figures depend on it
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
            texts.append(rest.partition(" ")[2])  # the text after the fine class
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


READERS = {"SST2": ("SST/binary", _read_sst2), "TREC": ("TREC", _read_trec), "MRPC": ("MRPC", _read_mrpc)}
