"""SentEval's three protocols for choosing a regularisation and measuring accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from torch import Tensor

from train.evaluation.measures.classifier import REGULARISATIONS, SEED, Fits, FitSettings, fit_folds

HELD_OUT = 0.05  # share of the training rows that stops the final fit early


@dataclass(frozen=True)
class Accuracies:
    """Accuracy in percent on dev and on test, and the predicted classes of the test set if there is one."""

    dev: float
    test: float
    predicted: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Labelled:
    """Features float32 (n, D) with classes int64 (n,)."""

    features: Tensor
    labels: Tensor


def nested_folds(data: Labelled, n_classes: int, settings: FitSettings) -> Accuracies:
    """Mean over outer folds; each chooses its regularisation by cross-validation on its own training rows."""
    outer = [(train, test) for train, test in _folds(data.labels.numpy(), settings.folds)]

    def run(split: tuple[NDArray, NDArray]) -> tuple[float, float]:
        train, test = (Labelled(data.features[rows], data.labels[rows]) for rows in map(torch.from_numpy, split))
        accuracies = cross_validated(train, test, n_classes, settings)
        return accuracies.dev, accuracies.test

    # one thread per outer fold, because its matrix products are too small to be shared by several threads
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(threads) as pool:
            dev, test = zip(*pool.map(run, outer), strict=True)
    finally:
        torch.set_num_threads(threads)
    return Accuracies(round(float(np.mean(dev)), 2), round(float(np.mean(test)), 2))


def cross_validated(train: Labelled, test: Labelled, n_classes: int, settings: FitSettings) -> Accuracies:
    """Choose the regularisation by cross-validation on train, fit on all of it, measure on test."""
    splits = _folds(train.labels.numpy(), settings.folds)
    accuracy = np.concatenate(
        [fits.accuracy for fits in _fit_by_size(train, splits, n_classes, settings)]
    )  # (folds, R)
    scores = [round(100 * float(mean), 2) for mean in accuracy.mean(axis=0)]
    chosen = REGULARISATIONS[int(np.argmax(scores))]
    predicted = _final_fit(train, n_classes, settings, chosen).predict(test.features)
    return Accuracies(max(scores), _percent(predicted, test.labels), predicted)


def split_validated(
    train: Labelled, dev: Labelled, test: Labelled, n_classes: int, settings: FitSettings
) -> Accuracies:
    """Choose the regularisation on dev, which also stops the fits, and measure the chosen fit on test."""
    both = Labelled(torch.cat([train.features, dev.features]), torch.cat([train.labels, dev.labels]))
    rows = np.arange(len(both.labels))[None]
    n = len(train.labels)
    fits = fit_folds(both.features, both.labels, rows[:, :n], rows[:, n:], n_classes, settings)
    scores = [round(100 * float(accuracy), 2) for accuracy in fits.accuracy[0]]
    predicted = fits.predict(test.features, regularisation=int(np.argmax(scores)))
    return Accuracies(max(scores), _percent(predicted, test.labels), predicted)


def _folds(labels: NDArray, n_folds: int) -> list[tuple[NDArray, NDArray]]:
    """SentEval's stratified folds: (training rows, held-out rows) of each."""
    splitter = StratifiedKFold(n_splits=n_folds, shuffle=True, random_state=SEED)
    return list(splitter.split(np.zeros(len(labels)), labels))


def _fit_by_size(
    data: Labelled, splits: Sequence[tuple[NDArray, NDArray]], n_classes: int, settings: FitSettings
) -> list[Fits]:
    """Fit all folds, and folds of equal size together (sizes differ by one at most)."""
    sizes = sorted({len(train) for train, _ in splits})
    together = [[split for split in splits if len(split[0]) == size] for size in sizes]
    return [
        fit_folds(
            data.features,
            data.labels,
            np.stack([train for train, _ in group]),
            np.stack([dev for _, dev in group]),
            n_classes,
            settings,
        )
        for group in together
    ]


def _final_fit(data: Labelled, n_classes: int, settings: FitSettings, regularisation: float) -> Fits:
    """Fit on all rows but a random share of HELD_OUT, which stops the fit; the share is drawn first, then the order."""
    generator = np.random.RandomState(SEED)
    rows = generator.permutation(len(data.labels))[None]
    held = int(HELD_OUT * len(data.labels))
    return fit_folds(
        data.features,
        data.labels,
        rows[:, held:],
        rows[:, :held],
        n_classes,
        settings,
        (regularisation,),
        generator,
    )


def _percent(predicted: NDArray, labels: Tensor) -> float:
    return round(100 * float((predicted == labels.numpy()).mean()), 2)
