"""The names of all text augmentations, and the classes that they stand for.

HARD contains the augmentations that the training option --augment accepts, and POSITIVES those that --positives
accepts. WITH_SYNONYMS lists the names of the augmentations that use the option --synonyms. To add an augmentation, add
a file to this folder, and an entry to HARD or POSITIVES.

Training makes its options from these tables. So importing this module must be fast, and only `load_augmentation`
imports the classes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from una_fast.errors import InputError
from una_fast.imports import import_object

if TYPE_CHECKING:
    from una_fast.augment.base import TextAugmentation
    from una_fast.index.index import Index


@dataclass(frozen=True)
class AugmentationSpec:
    """The class of an augmentation, and the arguments that its name implies.

    Attributes:
        meaning: what the augmentation does to a sentence, for --help.
        path: the class, as "module:name". Its constructor accepts the index, `seed`, `tokenizer` and `n_jobs`.
        settings: the arguments that the name implies, such as operation="swap" for the name "eda-swap".
    """

    meaning: str
    path: str
    settings: Mapping[str, Any] = field(default_factory=dict)


EDA = "una_fast.augment.eda:EDA"
HARD = {
    "una": AugmentationSpec("important words become words of similar importance", "una_fast.augment.una:Augmenter"),
    "near-misses": AugmentationSpec("one small edit changes the meaning", "una_fast.augment.near_misses:NearMisses"),
}
POSITIVES = {
    "eda-synonym": AugmentationSpec("some words become synonyms", EDA, {"operation": "synonym"}),
    "eda-insert": AugmentationSpec("synonyms of some words are put in at random places", EDA, {"operation": "insert"}),
    "eda-swap": AugmentationSpec("some words change places", EDA, {"operation": "swap"}),
    "eda-delete": AugmentationSpec("some words are left out", EDA, {"operation": "delete"}),
}
WITH_SYNONYMS = ("eda-synonym", "eda-insert")
AUGMENTATIONS = HARD | POSITIVES


def make_augmentation(
    name: str, index: Index, /, offered: Mapping[str, Any] = MappingProxyType({}), **settings: Any
) -> TextAugmentation:
    """Make an augmentation for `index`.

    name: a name or an import path, as in `load_augmentation`. offered: the values of training options by name. The
    constructor only gets the options that are listed in the class's `training_options`. settings: other arguments of
    the constructor.

    Raises InputError if the constructor does not accept one of `settings`.
    """
    maker = load_augmentation(name)
    signature = inspect.signature(maker)
    try:
        signature.bind_partial(index, **settings)
    except TypeError as error:
        raise InputError(f"{name}: {error}: its constructor accepts {', '.join(signature.parameters)}") from None
    options = {name: offered[name] for name in training_options_of(maker) if name in offered}
    return maker(index, **options | settings)


def training_options_of(maker: Any) -> tuple[str, ...]:
    """Return the names of the options of training that an augmentation accepts.

    maker: a class of augmentations, or a functools.partial of a class.
    """
    return getattr(maker, "func", maker).training_options


def load_augmentation(name: str) -> Callable[..., TextAugmentation]:
    """Return the constructor of an augmentation: its class, or a functools.partial of the class.

    name: a name in `AUGMENTATIONS`, or the import path "module:name" of a `TextAugmentation` or of a result of
    `numba_augmentation`. Raises InputError for any other name.
    """
    if spec := AUGMENTATIONS.get(name):
        return partial(import_object(spec.path), **spec.settings)
    if ":" not in name:
        raise InputError(f"unknown augmentation {name!r}: choose from {', '.join(AUGMENTATIONS)}")
    maker = import_object(name)
    if not hasattr(getattr(maker, "func", maker), "token_ids"):  # numba_augmentation returns a partial of a class
        raise InputError(f"{name!r} is not a text augmentation: derive a class from una_fast.WordAugmentation")
    return maker
