"""SentEval's transfer tasks: the accuracy of a logistic regression on frozen embeddings, by SentEval's protocols.

Letters in shapes: F folds, R regularisations, n training rows and m held-out rows of a fold, B rows of a batch, D width
of the features, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from torch import Tensor, nn

from train.evaluation.model import in_threads
from train.evaluation.tasks.reading import normalise_spaces, read_lines, read_rows
from train.evaluation.tasks.registry import TASKS, EvaluationProtocol, FitSettings, Scores, Task
from una_fast.errors import InputError

REGULARISATIONS = (1e-5, 1e-4, 1e-3, 1e-2)  # weight decay of Adam or RMSprop
SEED = 1111
MAX_PASSES = 200
HELD_OUT = 0.05  # share of the training rows that the final fit uses only for early stopping
OPTIMISERS = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}


class Labelled(NamedTuple):
    """Features of n examples, and their classes."""

    features: Tensor  # float32 (n, D)
    labels: Tensor  # int64 (n,)

    def select(self, rows: NDArray[np.int64]) -> Labelled:
        """Select examples by their row numbers."""
        return Labelled(*(part[torch.from_numpy(rows)] for part in self))


class Fits(NamedTuple):
    """F x R fitted models, and their accuracies on dev."""

    accuracy: Tensor  # float64 (F, R)
    weights: Tensor  # (F, D, R, C)
    biases: Tensor  # (F, 1, R, C)


def fit_folds(
    data: Labelled,
    train: NDArray[np.int64],
    dev: NDArray[np.int64],
    n_classes: int,
    settings: FitSettings,
    regularisations: Sequence[float] = REGULARISATIONS,
    shuffle: np.random.RandomState | None = None,
) -> Fits:
    """Fit a model for every fold and regularisation. Each fit stops early by its accuracy on the fold's dev rows.

    SentEval seeds every fit equally. Fits on folds of the same size therefore start from the same weights and visit
    their rows in the same order, so one batched matrix product serves all these fits.

    train, dev: row numbers in `data`, (F, n) and (F, m). shuffle: draws the order of the training rows.
    """
    shuffle = shuffle or np.random.RandomState(SEED)
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
    """Compute the logits of all models, (F, B, R, C). x: features (F, B, D)."""
    return (x @ weights.flatten(2)).unflatten(2, weights.shape[2:]) + biases


def _set_gradients(data: Labelled, rows: Tensor, weights: Tensor, biases: Tensor, decay: Tensor) -> None:
    """Set weights.grad and biases.grad for one batch of every fold. The loss is cross-entropy plus weight decay.

    rows: row numbers in `data`, (F, B). decay: the weight decay of each regularisation, (R, 1).
    """
    x = data.features[rows]  # (F, B, D)
    target = nn.functional.one_hot(data.labels[rows], weights.shape[3]).unsqueeze(2)  # (F, B, 1, C)
    error = (torch.softmax(_logits(x, weights, biases), dim=3) - target) / rows.shape[1]  # (F, B, R, C)
    weights.grad = (x.transpose(1, 2) @ error.flatten(2)).view_as(weights).addcmul_(decay, weights)
    biases.grad = error.sum(dim=1, keepdim=True).addcmul_(decay, biases)


def nested_folds(data: Labelled, n_classes: int, settings: FitSettings) -> tuple[float, float]:
    """Return the mean dev and test accuracies of nested cross-validation, in percent."""

    def run(split: Sequence[NDArray]) -> tuple[float, float]:
        train, test = map(data.select, split)
        return select_and_test(train, test, n_classes, settings)[:2]

    dev, test = zip(*in_threads(run, _folds(data.labels.numpy(), settings.folds)), strict=True)
    return round(float(np.mean(dev)), 2), round(float(np.mean(test)), 2)


def select_and_test(
    train: Labelled, test: Labelled, n_classes: int, settings: FitSettings, dev: Labelled | None = None
) -> tuple[float, float, NDArray[np.int64]]:
    """Choose the regularisation on `dev` or, if that is None, by cross-validation on `train`. Test the fitted model.

    Return the accuracies on dev and on test in percent, and the predicted classes of `test`.
    """
    if dev is None:
        data, splits = train, _folds(train.labels.numpy(), settings.folds)
    else:
        data = Labelled(*map(torch.cat, zip(train, dev, strict=True)))
        splits = [np.split(np.arange(len(data.labels)), [len(train.labels)])]
    fits = []
    for size in sorted({len(rows) for rows, _ in splits}):  # fit folds of equal size together: there are 1 or 2 sizes
        rows, held_out = map(np.stack, zip(*(split for split in splits if len(split[0]) == size), strict=True))
        fits.append(fit_folds(data, rows, held_out, n_classes, settings))
    scores = [round(100 * float(mean), 2) for mean in torch.cat([fit.accuracy for fit in fits]).mean(0)]  # R
    chosen, best = fits[0], int(np.argmax(scores))
    if dev is None:  # the final fit stops early by a random share of train, drawn before the order of the other rows
        shuffle = np.random.RandomState(SEED)
        drawn = shuffle.permutation(len(train.labels))[None]
        held = int(HELD_OUT * len(train.labels))
        decay, best = REGULARISATIONS[best], 0
        chosen = fit_folds(train, drawn[:, held:], drawn[:, :held], n_classes, settings, (decay,), shuffle)
    logits = test.features @ chosen.weights[0, :, best] + chosen.biases[0, :, best]  # (m, C)
    predicted = logits.argmax(dim=1).numpy()
    accuracy = float((predicted == test.labels.numpy()).mean())
    return max(scores), round(100 * accuracy, 2), predicted


def _folds(labels: NDArray, n_folds: int) -> list[Sequence[NDArray]]:
    """Return SentEval's stratified folds: (training rows, held-out rows) of each."""
    splitter = StratifiedKFold(n_splits=n_folds, shuffle=True, random_state=SEED)
    return list(splitter.split(np.zeros(len(labels)), labels))


@dataclass(frozen=True)
class TransferTask(Task):
    """Labelled sentences or pairs. For pairs, `texts` has two lists per split: the first and the second sentences."""

    kind = "transfer"
    labels: dict[str, NDArray[np.int64]]  # by split: "train", and "dev" and "test" if the task has them

    def score(self, embeddings: Sequence[NDArray], protocol: EvaluationProtocol) -> Scores:
        """Return dev and test accuracy in percent. Cross-validation replaces a missing split, as in SentEval."""
        n_sides, data = len(embeddings) // len(self.labels), {}
        for i, (split, labels) in enumerate(self.labels.items()):
            data[split] = Labelled(_features(embeddings[i * n_sides :][:n_sides]), torch.from_numpy(labels))
        n_classes = 1 + max(int(labels.max()) for labels in self.labels.values())
        if "test" not in data:
            dev, test = nested_folds(data["train"], n_classes, protocol.fit)
            return {"examples": self.sizes, "dev_accuracy": dev, "accuracy": test}
        dev, test, predicted = select_and_test(data["train"], data["test"], n_classes, protocol.fit, data.get("dev"))
        scores: Scores = {"examples": self.sizes, "dev_accuracy": dev, "accuracy": test}
        if self.name == "MRPC":
            f1 = f1_score(self.labels["test"], predicted, zero_division=0.0)  # of class 1
            scores["f1"] = round(100 * float(f1), 2)
        return scores


def _features(embeddings: Sequence[NDArray]) -> Tensor:
    """Make the classifier's input: embeddings or, for pairs with embeddings u and v, [|u - v|, u * v]."""
    u, *pair = (torch.from_numpy(np.asarray(part, np.float32)) for part in embeddings)
    return torch.cat([(u - pair[0]).abs(), u * pair[0]], dim=1) if pair else u


BINARY = {  # the files with the sentences of class 0 and of class 1
    "MR": ("MR/rt-polarity.neg", "MR/rt-polarity.pos"),
    "CR": ("CR/custrev.neg", "CR/custrev.pos"),
    "SUBJ": ("SUBJ/subj.subjective", "SUBJ/subj.objective"),
    "MPQA": ("MPQA/mpqa.neg", "MPQA/mpqa.pos"),
}
TABLES = {  # the file of a split, the columns of the class and the sentences, the number of header lines
    "SST2": ("SST/binary/sentiment-{}", (1, 0), 0),
    "MRPC": ("MRPC/msr_paraphrase_{}.txt", (0, 3, 4), 1),
}
TREC = {"train": "TREC/train_5500.label", "test": "TREC/TREC_10.label"}  # lines are "CLASS:SUBCLASS QUESTION"
TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")


def read(downstream: Path, name: str, split: str = "test") -> TransferTask:
    """Read a task with all its splits from SentEval's `downstream` folder. `split` is ignored."""
    texts: list[list[str]] = []
    labels = {}
    for part in TASKS[name].sizes:
        if not (rows := _examples(downstream, name, part)):
            raise InputError(f"{downstream}: contains no examples of {name}, {part}")
        # SentEval's order, on which its folds depend: by the number of words in each sentence, then by class
        rows = sorted(rows, key=lambda row: (*(len(text.split()) for text in row[1:]), row[0]))
        classes, *sides = zip(*rows, strict=True)
        texts += map(normalise_spaces, sides)
        labels[part] = np.array(classes, np.int64)
    return TransferTask(name, texts, {part: len(classes) for part, classes in labels.items()}, labels)


def _examples(downstream: Path, name: str, split: str) -> list[tuple[Any, ...]]:
    """Return (class, text) or, for MRPC, (class, first text, second text) for each example of a split."""
    # SentEval reads some files as Latin-1, and its published scores depend on it
    if name in BINARY:
        files = enumerate(BINARY[name])
        return [(label, text) for label, file in files for text in read_lines(downstream / file, "latin-1")]
    if name == "TREC":
        return [row for (row,) in read_rows(downstream / TREC[split], (0,), _parse_question, encoding="latin-1")]
    file, columns, skip = TABLES[name]
    return read_rows(downstream / file.format(split), columns, _parse_class, skip)


def _parse_class(text: str, classes: Sequence[str] = ("0", "1")) -> int:
    """Return the position of a class name in `classes`."""
    if text.strip() not in classes:
        raise ValueError(f"class {text!r} is not one of {', '.join(classes)}")
    return classes.index(text.strip())


def _parse_question(line: str) -> tuple[int, str]:
    """Split a line of TREC into the class and the text of a question."""
    label, _, question = line.partition(" ")
    return _parse_class(label.partition(":")[0], TREC_CLASSES), question
