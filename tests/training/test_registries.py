"""The names that options take are those of the registries behind them."""

from typing import get_args

from train.config import groups
from train.encoder.pooling import AUTO, OF_TRAINING
from train.objective.losses import LOSSES, NEGATIVE_VIEWS
from una_fast.augment.registry import AUGMENTATIONS


def test_losses() -> None:
    assert set(get_args(groups.Loss)) == LOSSES.keys() == NEGATIVE_VIEWS.keys()


def test_poolings() -> None:
    assert set(get_args(groups.Pooling)) == {AUTO, *OF_TRAINING}


def test_positives() -> None:
    assert set(get_args(groups.Positive)) == {"same", *AUGMENTATIONS} - {"una"}
