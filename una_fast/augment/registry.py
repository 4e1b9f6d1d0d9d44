"""The text augmentations by name. To add one, add a file to this folder and a row here.

HARD lists the values of training's --augment, POSITIVES those of --positives. WITH_SYNONYMS use --synonyms.

Training makes its options from these tables, so importing them must be fast: `load_augmentation` imports the classes.
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
class AugmentationRow:
    """One augmentation: a class whose constructor takes the index, `seed`, `tokenizer` and `n_jobs`.

    meaning: what it does to a sentence, for --help. path: its class, as "module:name". settings: arguments of the class
    that the name implies.
    """

    meaning: str
    path: str
    settings: Mapping[str, Any] = field(default_factory=dict)


EDA = "una_fast.augment.eda:EDA"
HARD = {
    "una": AugmentationRow("important words become words of similar importance", "una_fast.augment.una:Augmenter"),
    "near-misses": AugmentationRow("one small edit changes the meaning", "una_fast.augment.near_misses:NearMisses"),
}
POSITIVES = {
    "eda-synonym": AugmentationRow("some words become synonyms", EDA, {"operation": "synonym"}),
    "eda-insert": AugmentationRow("synonyms of some words are put in at random places", EDA, {"operation": "insert"}),
    "eda-swap": AugmentationRow("some words change places", EDA, {"operation": "swap"}),
    "eda-delete": AugmentationRow("some words are left out", EDA, {"operation": "delete"}),
    "harmless": AugmentationRow("small edits keep the meaning", "una_fast.augment.harmless:HarmlessEdits"),
}
WITH_SYNONYMS = ("eda-synonym", "eda-insert")
AUGMENTATIONS = HARD | POSITIVES


def make_augmentation(
    name: str, index: Index, /, offered: Mapping[str, Any] = MappingProxyType({}), **settings: Any
) -> TextAugmentation:
    """Make the augmentation of this name for `index`; see `load_augmentation`.

    offered: options of training; the constructor gets those listed in the class's `training_options`. settings: further
    arguments. Raises InputError for one that the constructor does not accept.
    """
    maker = load_augmentation(name)
    signature = inspect.signature(maker)
    try:
        signature.bind_partial(index, **settings)
    except TypeError as error:
        raise InputError(f"{name}: {error}: its constructor takes {', '.join(signature.parameters)}") from None
    taken = training_options_of(maker)
    return maker(index, **{name: offered[name] for name in taken if name in offered} | settings)


def training_options_of(maker: Any) -> tuple[str, ...]:
    """Return the options of training that an augmentation accepts. maker: a result of `load_augmentation`."""
    return getattr(maker, "func", maker).training_options  # may be a partial of a class


def load_augmentation(name: str) -> Callable[..., TextAugmentation]:
    """Return the class for a name in `AUGMENTATIONS`, or for an import path "module:name".

    The path must name a `TextAugmentation`, or a result of `numba_augmentation`. Otherwise raises InputError.
    """
    if row := AUGMENTATIONS.get(name):
        return partial(import_object(row.path), **row.settings)
    if ":" not in name:
        raise InputError(f"there is no augmentation {name!r}: choose from {', '.join(AUGMENTATIONS)}")
    maker = import_object(name)
    if not hasattr(getattr(maker, "func", maker), "token_ids"):  # numba_augmentation makes a partial of a class
        raise InputError(f"{name!r} is not a text augmentation: derive a class from una_fast.WordAugmentation")
    return maker
