"""SentEval's transfer tasks: a logistic regression on frozen embeddings of sentences or pairs, with its protocols for
choosing a regularisation and measuring accuracy.

SentEval seeds every fit alike, so all fits on folds of one size start from the same weights and go through their rows
in the same order: they can share one batched matrix product. Letters: F folds, R regularisations, n rows of a fold, D
width, C classes, B rows of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from torch import Tensor, nn

from train.evaluation.model import one_thread_an_operation
from train.evaluation.tasks.registry import (
    Column,
    EvaluationProtocol,
    Scores,
    Task,
    normalise_spaces,
    read_columns,
    read_lines,
)
from una_fast.errors import InputError

REGULARISATIONS = (1e-5, 1e-4, 1e-3, 1e-2)  # weight decay of Adam or RMSprop
SEED = 1111
MAX_PASSES = 200
HELD_OUT = 0.05  # share of the training rows that stops the final fit early


class FitSettings(NamedTuple):
    """How SimCSE has SentEval fit a classifier."""

    folds: int
    optimiser: str
    batch_size: int
    tenacity: int  # how many checks without a gain, in total, a fit survives
    passes: int  # over the training rows between two checks of the dev accuracy


FULL = FitSettings(folds=10, optimiser="adam", batch_size=64, tenacity=5, passes=4)
FAST = FitSettings(folds=5, optimiser="rmsprop", batch_size=128, tenacity=3, passes=2)
OPTIMISERS = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}


class Labelled(NamedTuple):
    """Features with their classes."""

    features: Tensor  # float32 (n, D)
    labels: Tensor  # int64 (n,)


class Fits(NamedTuple):
    """Models of F folds and R regularisations, and their dev accuracies."""

    accuracy: Tensor  # float64 (F, R)
    weights: Tensor  # (F, D, R, C)
    biases: Tensor  # (F, 1, R, C)


class Accuracies(NamedTuple):
    """Accuracy in percent on dev and on test, and the predicted classes of the test set if there is one."""

    dev: float
    test: float
    predicted: NDArray[np.int64] | None = None


def fit_folds(
    data: Labelled,
    train: NDArray[np.int64],
    dev: NDArray[np.int64],
    n_classes: int,
    settings: FitSettings,
    regularisations: Sequence[float] = REGULARISATIONS,
    generator: np.random.RandomState | None = None,
) -> Fits:
    """Fit a model for every fold and regularisation, each stopped early by its accuracy on its own dev rows.

    train: (F, n) and dev: (F, m) row numbers in `data`.
    generator: draws the order of the rows; by default one with SentEval's seed.
    """
    shuffle = generator or np.random.RandomState(SEED)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        layer = nn.Linear(data.features.shape[1], n_classes)
    shape = (len(train), -1, len(regularisations), n_classes)
    weights, biases = (
        part.detach()[None, :, None].expand(shape).clone() for part in (layer.weight.T, layer.bias[None])
    )  # (F, D, R, C), (F, 1, R, C)
    decay, dev_rows = torch.tensor(regularisations)[:, None], torch.from_numpy(dev)
    optimiser = OPTIMISERS[settings.optimiser]([weights, biases])
    best = Fits(torch.full((len(train), len(regularisations)), -1.0, dtype=torch.float64), weights, biases)
    misses, running, passes = torch.zeros_like(best.accuracy), torch.ones_like(best.accuracy, dtype=torch.bool), 0
    while running.any() and passes <= MAX_PASSES:
        for _ in range(settings.passes):
            order = torch.from_numpy(train[:, shuffle.permutation(train.shape[1])])  # (F, n)
            for rows in order.split(settings.batch_size, dim=1):
                _set_gradients(data, rows, weights, biases, decay)
                optimiser.step()
        passes += settings.passes
        classes = _logits(data.features[dev_rows], weights, biases).argmax(3)  # (F, m, R)
        accuracy = (classes == data.labels[dev_rows].unsqueeze(2)).double().mean(1)  # (F, R)
        better = running & (accuracy > best.accuracy)
        where = (better, better[:, None, :, None], better[:, None, :, None])
        best = Fits(*map(torch.where, where, (accuracy, weights, biases), best))
        missed = running & ~better
        running &= ~(missed & (misses >= settings.tenacity))
        misses += missed
    return best


def _logits(x: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
    """Logits (F, B, R, C) of features (F, B, D)."""
    return (x @ weights.flatten(2)).unflatten(2, weights.shape[2:]) + biases


def _set_gradients(data: Labelled, rows: Tensor, weights: Tensor, biases: Tensor, decay: Tensor) -> None:
    """Set the gradients on the rows (F, B), of cross-entropy and decay (R, 1), by formula, without autograd."""
    x = data.features[rows]  # (F, B, D)
    target = nn.functional.one_hot(data.labels[rows], weights.shape[3]).unsqueeze(2)  # (F, B, 1, C)
    error = (torch.softmax(_logits(x, weights, biases), dim=3) - target) / rows.shape[1]  # (F, B, R, C)
    weights.grad = (x.transpose(1, 2) @ error.flatten(2)).view_as(weights).addcmul_(decay, weights)
    biases.grad = error.sum(dim=1, keepdim=True).addcmul_(decay, biases)


def nested_folds(data: Labelled, n_classes: int, settings: FitSettings) -> Accuracies:
    """Mean over outer folds; each chooses its regularisation by cross-validation on its own training rows."""

    def run(split: Sequence[NDArray]) -> tuple[float, float]:
        train, test = (Labelled(data.features[rows], data.labels[rows]) for rows in map(torch.from_numpy, split))
        return validated(train, test, n_classes, settings)[:2]

    # one thread per outer fold, because its matrix products are too small to be shared by several threads
    workers = torch.get_num_threads()  # before it is 1
    with one_thread_an_operation(), ThreadPoolExecutor(workers) as pool:
        dev, test = zip(*pool.map(run, _folds(data.labels.numpy(), settings.folds)), strict=True)
    return Accuracies(round(float(np.mean(dev)), 2), round(float(np.mean(test)), 2))


def validated(
    train: Labelled, test: Labelled, n_classes: int, settings: FitSettings, dev: Labelled | None = None
) -> Accuracies:
    """Choose the regularisation on dev, which also stops the fits, and measure the chosen fit on test.

    Without dev, it is chosen by cross-validation on train, and a fit on all of train is measured.
    """
    if dev is None:
        data, splits = train, _folds(train.labels.numpy(), settings.folds)
    else:
        data = Labelled(torch.cat([train.features, dev.features]), torch.cat([train.labels, dev.labels]))
        splits = [np.split(np.arange(len(data.labels)), [len(train.labels)])]
    fits = []
    for size in sorted({len(rows) for rows, _ in splits}):  # folds of equal size together: sizes differ by one at most
        rows, held_out = map(np.stack, zip(*(split for split in splits if len(split[0]) == size), strict=True))
        fits.append(fit_folds(data, rows, held_out, n_classes, settings))
    scores = [round(100 * float(mean), 2) for mean in torch.cat([fit.accuracy for fit in fits]).mean(0)]  # R
    chosen, best = fits[0], int(np.argmax(scores))
    if dev is None:  # a random share stops the fit on all of train: it is drawn first, then the order of the others
        generator = np.random.RandomState(SEED)
        drawn = generator.permutation(len(train.labels))[None]
        held = int(HELD_OUT * len(train.labels))
        decay, best = REGULARISATIONS[best], 0
        chosen = fit_folds(train, drawn[:, held:], drawn[:, :held], n_classes, settings, (decay,), generator)
    logits = test.features @ chosen.weights[0, :, best] + chosen.biases[0, :, best]  # (m, C)
    predicted = logits.argmax(dim=1).numpy()
    right = float((predicted == test.labels.numpy()).mean())
    return Accuracies(max(scores), round(100 * right, 2), predicted)


def _folds(labels: NDArray, n_folds: int) -> list[Sequence[NDArray]]:
    """SentEval's stratified folds: (training rows, held-out rows) of each."""
    splitter = StratifiedKFold(n_splits=n_folds, shuffle=True, random_state=SEED)
    return list(splitter.split(np.zeros(len(labels)), labels))


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
            f1 = f1_score(self.labels["test"], accuracies.predicted, zero_division=0.0)  # of class 1
            scores["f1"] = round(100 * float(f1), 2)
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
