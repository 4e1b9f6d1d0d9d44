"""SentEval's transfer tasks: a logistic regression on frozen embeddings of sentences or pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from train.evaluation.classifier import FAST, FULL, Accuracies, FitSettings, Labelled, nested_folds, validated
from train.evaluation.files import normalise_spaces, read_columns, read_lines
from train.evaluation.protocol import EvaluationProtocol
from train.evaluation.tasks.registry import Column, Kind, Scores, Task
from una_fast.errors import InputError

SETTINGS = {"test": FULL, "fasttest": FAST, "dev": FAST}  # of the classifier, by mode of the protocol
TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
Row = tuple[int, str] | tuple[int, str, str]  # the class of a sentence or of a pair


@dataclass(frozen=True)
class Split:
    """Examples in SentEval's order (by length, then class), on which its folds depend.

    texts: the sentences, or the first and the second ones of the pairs.
    """

    texts: list[list[str]]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


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
        accuracies = self.classify([embeddings[side] for side in rows], SETTINGS[protocol.mode])
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
        if "test" in data:
            return validated(data["train"], data["test"], self.n_classes, settings, data.get("dev"))
        return nested_folds(data["train"], self.n_classes, settings)


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


def _binary(negative: Path, positive: Path) -> list[Row]:
    # Latin-1, because SentEval reads these files so and its published figures depend on it
    return [(label, text) for label, path in ((1, positive), (0, negative)) for text in read_lines(path, "latin-1")]


def _sst2(path: Path) -> list[Row]:
    rows = read_columns(path, (0, 1))
    return [(_class_in(label, ("0", "1"), path, line), text) for line, (text, label) in rows]


def _trec(path: Path) -> list[Row]:
    rows = ((line, *text.partition(":")) for line, text in enumerate(read_lines(path, "latin-1"), start=1))
    # the text follows the fine class
    return [(_class_in(label, TREC_CLASSES, path, line), rest.partition(" ")[2]) for line, label, _, rest in rows]


def _mrpc(path: Path) -> list[Row]:
    rows = read_columns(path, (0, 3, 4), skip=1)
    return [(_class_in(label, ("0", "1"), path, line), first, second) for line, (label, first, second) in rows]


def _class_in(text: str, classes: tuple[str, ...], path: Path, line: int) -> int:
    try:
        return classes.index(text.strip())
    except ValueError:
        raise InputError(f"{path}, line {line}: class {text!r} is none of {', '.join(classes)}") from None


# the folder of each task, what reads a split, the files of each split, and the number of classes
READERS: dict[str, tuple[str, Callable[..., list[Row]], dict[str, tuple[str, ...]], int]] = {
    "MR": ("MR", _binary, {"train": ("rt-polarity.neg", "rt-polarity.pos")}, 2),
    "CR": ("CR", _binary, {"train": ("custrev.neg", "custrev.pos")}, 2),
    "SUBJ": ("SUBJ", _binary, {"train": ("subj.subjective", "subj.objective")}, 2),
    "MPQA": ("MPQA", _binary, {"train": ("mpqa.neg", "mpqa.pos")}, 2),
    "SST2": ("SST/binary", _sst2, {split: (f"sentiment-{split}",) for split in ("train", "dev", "test")}, 2),
    "TREC": ("TREC", _trec, {"train": ("train_5500.label",), "test": ("TREC_10.label",)}, len(TREC_CLASSES)),
    "MRPC": ("MRPC", _mrpc, {split: (f"msr_paraphrase_{split}.txt",) for split in ("train", "test")}, 2),
}


def read(downstream: Path, name: str, split: str = "test") -> TransferTask:
    """One of SentEval's tasks from its `downstream` folder: all its splits, whichever of them is scored."""
    if name not in READERS:
        raise InputError(f"unknown transfer task {name!r}: choose from {', '.join(READERS)}")
    folder, reader, files, n_classes = READERS[name]
    paths = {one: [downstream / folder / file for file in names] for one, names in files.items()}
    return TransferTask(name, {one: _in_order(reader(*paths[one]), paths[one][0]) for one in files}, n_classes)


def _in_order(rows: list[Row], path: Path) -> Split:
    """The split in SentEval's order: by number of words of the first sentence, then of the second, then by class."""
    if not rows:
        raise InputError(f"{path}: holds no examples")
    labels, *texts = zip(*rows, strict=True)
    sides = [normalise_spaces(side) for side in texts]
    order = sorted(range(len(rows)), key=lambda i: (*(len(side[i].split()) for side in sides), labels[i]))
    return Split([[side[i] for i in order] for side in sides], np.array([labels[i] for i in order], np.int64))


def _columns(protocol: Mapping[str, Any]) -> list[Column]:
    name = "dev_accuracy" if protocol["split"] == "dev" else "accuracy"
    return [Column(f"Accuracy, %, {protocol['split']}", lambda scores: scores[name])]


def _stated(protocol: EvaluationProtocol) -> dict[str, str]:
    own = SETTINGS[protocol.mode]
    return {"classifier": f"logistic regression, {own.optimiser}, {own.folds} folds, SentEval's seed"}


KIND = Kind("transfer", _columns, _stated)
