"""The text augmentations by name: a new one is a file in this folder and a row here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from una_fast.augment.base import TextAugmentation
from una_fast.augment.eda import EDA
from una_fast.augment.una import Augmenter
from una_fast.errors import InputError
from una_fast.index.index import Index

AUGMENTATIONS: dict[str, Callable[..., TextAugmentation]] = {
    "una": Augmenter,
    "eda-synonym": partial(EDA, operation="synonym"),
    "eda-insert": partial(EDA, operation="insert"),
    "eda-swap": partial(EDA, operation="swap"),
    "eda-delete": partial(EDA, operation="delete"),
}


def make_augmentation(name: str, index: Index, **settings: Any) -> TextAugmentation:
    """The augmentation of this name over `index`; of the settings it gets those that are arguments of its own.

    Raises:
        InputError: a name that is not among `AUGMENTATIONS`.

    """
    if name not in AUGMENTATIONS:
        raise InputError(f"there is no augmentation {name!r}: choose from {', '.join(AUGMENTATIONS)}")
    maker = AUGMENTATIONS[name]
    taken = inspect.signature(maker).parameters.keys()
    return maker(index, **{setting: value for setting, value in settings.items() if setting in taken})
