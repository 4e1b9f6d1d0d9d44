"""Transfer tasks: their readers, and the batched classifiers compared with single ones trained by autograd."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from train.evaluation.tasks import transfer
from train.evaluation.tasks.registry import EvaluationProtocol, FitSettings
from train.evaluation.tasks.transfer import Labelled, TransferTask, fit_folds
from una_fast.errors import InputError

SMALL = FitSettings(folds=3, optimiser="adam", batch_size=16, tenacity=1, passes=2)
BRISK = FitSettings(folds=3, optimiser="rmsprop", batch_size=16, tenacity=3, passes=4)


def separable(n: int, n_classes: int = 2, width: int = 6, seed: int = 0) -> Labelled:
    """Points whose classes lie along the axes, with enough noise that no classifier is perfect."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n)
    features = rng.normal(size=(n, width)) + 1.2 * np.eye(n_classes, width)[labels]
    return Labelled(torch.from_numpy(features.astype(np.float32)), torch.from_numpy(labels))


def fit_plainly(train, dev, n_classes, settings, decay) -> tuple[float, nn.Linear]:
    """SentEval's fit of one logistic regression, step by step."""
    torch.manual_seed(transfer.SEED)
    model = nn.Linear(train.features.shape[1], n_classes)
    kinds = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}
    optimiser = kinds[settings.optimiser](model.parameters(), weight_decay=decay)
    shuffle = np.random.RandomState(transfer.SEED)
    best, kept, misses, passes = -1.0, model, 0, 0
    while passes <= transfer.MAX_PASSES:
        for _ in range(settings.passes):
            order = torch.from_numpy(shuffle.permutation(len(train.labels)))
            for rows in order.split(settings.batch_size):
                loss = nn.functional.cross_entropy(model(train.features[rows]), train.labels[rows])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        passes += settings.passes
        accuracy = float((model(dev.features).argmax(1) == dev.labels).float().mean())
        if accuracy > best:
            best, kept = accuracy, copy.deepcopy(model)
        elif misses >= settings.tenacity:
            break
        else:
            misses += 1
    return best, kept


@pytest.mark.parametrize("settings", [SMALL, EvaluationProtocol(mode="fasttest").fit], ids=["adam", "rmsprop"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_batched_fits_equal_fits_one_at_a_time(settings, n_classes):
    data = separable(90, n_classes)
    train = np.stack([np.delete(np.arange(90), np.arange(start, start + 20)) for start in (0, 30, 60)])
    dev = np.stack([np.arange(start, start + 20) for start in (0, 30, 60)])
    decays = (1e-4, 1e-1)
    fits = fit_folds(data, train, dev, n_classes, settings, decays)
    for fold in range(3):
        parts = [Labelled(data.features[rows[fold]], data.labels[rows[fold]]) for rows in (train, dev)]
        for i, decay in enumerate(decays):
            accuracy, model = fit_plainly(*parts, n_classes, settings, decay)
            assert float(fits.accuracy[fold, i]) == pytest.approx(accuracy, abs=1e-6)
            torch.testing.assert_close(fits.weights[fold, :, i], model.weight.detach().T, atol=1e-4, rtol=1e-3)
            torch.testing.assert_close(fits.biases[fold, 0, i], model.bias.detach(), atol=1e-4, rtol=1e-3)


def test_fits_neither_use_nor_advance_the_global_generators():
    data = separable(60)
    rows = np.arange(60)[None]
    torch.manual_seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002 - that it stays is what is validated
    first = fit_folds(data, rows[:, :40], rows[:, 40:], 2, SMALL)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    second = fit_folds(data, rows[:, :40], rows[:, 40:], 2, SMALL)
    assert torch.equal(first.weights, second.weights)


def test_all_three_validation_protocols_beat_chance_and_report_percent():
    train, dev, test = (separable(n, 3, seed=i) for i, n in enumerate((150, 60, 90)))
    selected = (transfer.select_and_test(train, test, 3, BRISK, *of)[:2] for of in ((), (dev,)))
    for on_dev, on_test in (transfer.nested_folds(train, 3, BRISK), *selected):
        assert 50 < on_dev <= 100 and 50 < on_test <= 100


def test_pairs_are_classified_by_difference_and_product():
    first = [f"{i}" for i in range(0, 120, 2)]
    second = [f"{i}" if i % 4 else f"{i + 1}" for i in range(0, 120, 2)]  # equal to first in every other pair
    labels = np.array([int(a == b) for a, b in zip(first, second, strict=True)])
    texts = [first, second] * 2
    task = TransferTask("MRPC", texts, {"train": 60, "test": 60}, {"train": labels, "test": labels})
    of_texts = np.random.default_rng(0).normal(size=(120, 4))
    scores = task.score([of_texts[[int(text) for text in side]] for side in texts], EvaluationProtocol(mode="fasttest"))
    assert scores["accuracy"] > 75


def test_examples_are_sorted_by_words_then_class(tmp_path):
    (tmp_path / "CR").mkdir()
    (tmp_path / "CR" / "custrev.pos").write_text("good  thing here\nfine\n")
    (tmp_path / "CR" / "custrev.neg").write_text("bad\nworse still\n")
    task = transfer.read(tmp_path, "CR")
    assert task.texts == [["bad", "fine", "worse still", "good thing here"]]
    assert task.labels["train"].tolist() == [0, 1, 0, 1]


def test_trec_drops_the_fine_class_and_reads_latin_1(tmp_path):
    (tmp_path / "TREC").mkdir()
    (tmp_path / "TREC" / "train_5500.label").write_bytes(b"LOC:city Where is the caf\xe9 ?\n")
    (tmp_path / "TREC" / "TREC_10.label").write_bytes(b"NUM:dist How far ?\n")
    task = transfer.read(tmp_path, "TREC")
    assert task.texts == [["Where is the café ?"], ["How far ?"]]
    assert task.labels["test"].tolist() == [5]


def test_unknown_classes_and_empty_files_are_named(tmp_path):
    folder = tmp_path / "SST" / "binary"
    folder.mkdir(parents=True)
    for content, named in (("fine\t1\nbad\t2\n", "sentiment-train, line 2: .*'2'"), ("", "SST2, train")):
        (folder / "sentiment-train").write_text(content)
        with pytest.raises(InputError, match=named):
            transfer.read(tmp_path, "SST2")


def test_fit_settings_are_those_of_simcse():
    full, fast = (EvaluationProtocol(mode=mode).fit for mode in ("test", "fasttest"))
    assert full._asdict() == {"folds": 10, "optimiser": "adam", "batch_size": 64, "tenacity": 5, "passes": 4}
    assert fast._asdict() == {"folds": 5, "optimiser": "rmsprop", "batch_size": 128, "tenacity": 3, "passes": 2}
    assert EvaluationProtocol(mode="dev").fit == fast
