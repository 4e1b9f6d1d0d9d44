"""SentEval's transfer tasks: a logistic regression on frozen embeddings of sentences or pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from train.evaluation.classifier import FAST, FULL, Accuracies, FitSettings, Labelled, nested_folds, validated
from train.evaluation.files import normalise_spaces, read_columns, read_lines
from train.evaluation.tasks.registry import Column, EvaluationProtocol, Scores, Task
from una_fast.errors import InputError

SETTINGS = {"test": FULL, "fasttest": FAST, "dev": FAST}  # of the classifier, by mode of the protocol
TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
Row = tuple[Any, ...]  # the class of a sentence or of a pair, and its one or two texts


@dataclass(frozen=True)
class TransferTask(Task):
    """A task with its splits: "train" alone, "train" and "test", or "train", "dev" and "test".

    texts: the sentences of each split, or the first and the second sentences of its pairs, in SentEval's order (by
    length, then class), on which its folds depend.
    """

    kind = "transfer"
    labels: dict[str, NDArray[np.int64]]  # the classes of each split

    def score(
        self, embeddings: NDArray, rows: Sequence[NDArray], protocol: EvaluationProtocol
    ) -> tuple[Scores, list[str]]:
        """Accuracies on dev and on test in percent."""
        accuracies = self.classify([embeddings[side] for side in rows], SETTINGS[protocol.mode])
        scores: Scores = {"examples": self.sizes, "dev_accuracy": accuracies.dev, "accuracy": accuracies.test}
        if self.name == "MRPC" and accuracies.predicted is not None:
            scores["f1"] = round(f1(accuracies.predicted, self.labels["test"]), 2)
        return scores, []

    def classify(self, embeddings: Sequence[NDArray], settings: FitSettings) -> Accuracies:
        """Accuracies under SentEval's protocol for the splits; embeddings: float (m, D) of each list of `texts`."""
        sides = len(self.texts) // len(self.labels)
        data = {
            name: Labelled(_features(embeddings[i * sides : (i + 1) * sides]), torch.from_numpy(labels))
            for i, (name, labels) in enumerate(self.labels.items())
        }
        n_classes = 1 + max(int(labels.max()) for labels in self.labels.values())
        if "test" in data:
            return validated(data["train"], data["test"], n_classes, settings, data.get("dev"))
        return nested_folds(data["train"], n_classes, settings)


def f1(predicted: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """F1 of class 1 in percent; 0 if no example has or is predicted to have class 1."""
    hits = int(((predicted == 1) & (labels == 1)).sum())
    called = int((predicted == 1).sum() + (labels == 1).sum())
    return 200 * hits / called if called else 0.0


def _features(embeddings: Sequence[NDArray]) -> Tensor:
    """The classifier's input: embeddings (n, D) of sentences, or |u - v| and u * v of pairs side by side, (n, 2 D)."""
    u, *pair = (torch.from_numpy(np.asarray(part, np.float32)) for part in embeddings)
    return torch.cat([(u - pair[0]).abs(), u * pair[0]], dim=1) if pair else u


def _binary(negative: Path, positive: Path) -> list[Row]:
    # Latin-1, because SentEval reads these files so and its published figures depend on it
    return [(label, text) for label, path in ((1, positive), (0, negative)) for text in read_lines(path, "latin-1")]


def _two_classes(columns: tuple[int, ...], skip: int, path: Path) -> list[Row]:
    """The rows of a tab-separated file. columns: of the class, 0 or 1, and the sentences."""
    rows = read_columns(path, columns, skip)
    return [(_class_in(label, ("0", "1"), path, line), *texts) for line, (label, *texts) in rows]


def _trec(path: Path) -> list[Row]:
    rows = ((line, *text.partition(":")) for line, text in enumerate(read_lines(path, "latin-1"), start=1))
    # the text follows the fine class
    return [(_class_in(label, TREC_CLASSES, path, line), rest.partition(" ")[2]) for line, label, _, rest in rows]


def _class_in(text: str, classes: tuple[str, ...], path: Path, line: int) -> int:
    if text.strip() not in classes:
        raise InputError(f"{path}, line {line}: class {text!r} is none of {', '.join(classes)}")
    return classes.index(text.strip())


def _splits(pattern: str, *splits: str) -> dict[str, tuple[str, ...]]:
    return {split: (pattern.format(split),) for split in splits}


# what reads a split of each task, and the files of each split
READERS: dict[str, tuple[Callable[..., list[Row]], dict[str, tuple[str, ...]]]] = {
    "MR": (_binary, {"train": ("MR/rt-polarity.neg", "MR/rt-polarity.pos")}),
    "CR": (_binary, {"train": ("CR/custrev.neg", "CR/custrev.pos")}),
    "SUBJ": (_binary, {"train": ("SUBJ/subj.subjective", "SUBJ/subj.objective")}),
    "MPQA": (_binary, {"train": ("MPQA/mpqa.neg", "MPQA/mpqa.pos")}),
    "SST2": (partial(_two_classes, (1, 0), 0), _splits("SST/binary/sentiment-{}", "train", "dev", "test")),
    "TREC": (_trec, {"train": ("TREC/train_5500.label",), "test": ("TREC/TREC_10.label",)}),
    "MRPC": (partial(_two_classes, (0, 3, 4), 1), _splits("MRPC/msr_paraphrase_{}.txt", "train", "test")),
}


def read(downstream: Path, name: str, split: str = "test") -> TransferTask:
    """One of SentEval's tasks from its `downstream` folder: all its splits, whichever of them is scored."""
    reader, files = READERS[name]
    texts: list[list[str]] = []
    labels = {}
    for part, names in files.items():
        paths = [downstream / file for file in names]
        if not (rows := reader(*paths)):
            raise InputError(f"{paths[0]}: holds no examples")
        # by number of words of the first sentence, then of the second, then by class
        rows = sorted(rows, key=lambda row: (*(len(text.split()) for text in row[1:]), row[0]))
        classes, *sides = zip(*rows, strict=True)
        texts += map(normalise_spaces, sides)
        labels[part] = np.array(classes, np.int64)
    return TransferTask(name, texts, {part: len(classes) for part, classes in labels.items()}, labels)


def columns(protocol: Mapping[str, Any]) -> list[Column]:
    """The accuracy."""
    name = "dev_accuracy" if protocol["split"] == "dev" else "accuracy"
    return [Column(f"Accuracy, %, {protocol['split']}", lambda scores: scores[name])]


def stated(protocol: EvaluationProtocol) -> dict[str, Any]:
    """How the classifier is fitted."""
    fit = SETTINGS[protocol.mode]
    return {"classifier": f"logistic regression, {fit.optimiser}, {fit.folds} folds, SentEval's seed"}
