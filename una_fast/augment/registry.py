"""The text augmentations by name. To add one, add a file to this folder and a row here.

HARD lists the values of training's --augment, POSITIVES those of --positives. Those in WITH_SYNONYMS use --synonyms.

Training makes its options from these tables, so this import must be fast: only `load_augmentation` imports the classes.
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
    """An augmentation: a class whose constructor accepts the index, `seed`, `tokenizer` and `n_jobs`.

    meaning: what it does to a sentence, for --help; path: the class, as "module:name"; settings: arguments of the class
    that the name implies.
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
    "harmless": AugmentationSpec("small edits keep the meaning", "una_fast.augment.harmless:HarmlessEdits"),
}
WITH_SYNONYMS = ("eda-synonym", "eda-insert")
AUGMENTATIONS = HARD | POSITIVES


def make_augmentation(
    name: str, index: Index, /, offered: Mapping[str, Any] = MappingProxyType({}), **settings: Any
) -> TextAugmentation:
    """Make the augmentation of this name for `index`; see `load_augmentation`.

    offered: options of training; only those in the class's `training_options` are used. settings: other arguments.
    Raises InputError for an argument that the constructor does not accept.
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
    """Return the options of training that an augmentation accepts. maker: a class, or a partial of one."""
    return getattr(maker, "func", maker).training_options


def load_augmentation(name: str) -> Callable[..., TextAugmentation]:
    """Return the class, or a partial of it, for a name in `AUGMENTATIONS` or an import path "module:name".

    Raises InputError unless the path names a `TextAugmentation` or a result of `numba_augmentation`.
    """
    if row := AUGMENTATIONS.get(name):
        return partial(import_object(row.path), **row.settings)
    if ":" not in name:
        raise InputError(f"there is no augmentation {name!r}: choose from {', '.join(AUGMENTATIONS)}")
    maker = import_object(name)
    if not hasattr(getattr(maker, "func", maker), "token_ids"):  # numba_augmentation returns a partial of a class
        raise InputError(f"{name!r} is not a text augmentation: derive a class from una_fast.WordAugmentation")
    return maker
