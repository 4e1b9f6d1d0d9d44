"""The names of all text augmentations: HARD for the training option --augment, and POSITIVES for --positives.

Training makes its options from these tables. So importing this module must be fast, and only `load_augmentation`
imports the classes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from una_fast.command import options_of
from una_fast.errors import InputError
from una_fast.imports import import_object
from una_fast.options import Edits, parse_edits

if TYPE_CHECKING:
    from una_fast.augment.base import TextAugmentation
    from una_fast.index.index import Index

NOTHING: Mapping[str, Any] = MappingProxyType({})


class AugmentationSpec(NamedTuple):
    """An augmentation that has a name."""

    meaning: str  # for --help
    path: str  # of its class, "module:name"; the constructor accepts the index, `seed`, `tokenizer` and `n_jobs`
    settings: Mapping[str, Any] = NOTHING  # what the name implies: further arguments of the constructor


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
WITH_SYNONYMS = ("eda-synonym", "eda-insert")  # they use the option --synonyms
AUGMENTATIONS = HARD | POSITIVES


def make_augmentation(
    name: str, index: Index, /, offered: Mapping[str, Any] = NOTHING, **settings: Any
) -> TextAugmentation:
    """Make the augmentation `name` (see `load_augmentation`) with the arguments `settings`.

    offered: values of training options; the constructor gets those that the class lists in its `training_options`.
    """
    maker = load_augmentation(name)
    signature = inspect.signature(maker)
    try:
        signature.bind_partial(index, **settings)
    except TypeError as error:
        raise InputError(f"{name}: {error}: its constructor accepts {', '.join(signature.parameters)}") from None
    options = {name: offered[name] for name in training_options_of(maker) if name in offered}
    if "edits" in options:
        options["edits"] = parse_edits(options["edits"])
    return maker(index, **options | settings)


def check_edit_options(name: str, options: Any) -> None:
    """Raise InputError if --edits or --word-lists is given, but the augmentation `name` does not use it."""
    used = () if name == "none" else training_options_of(load_augmentation(name))
    for option in options_of(Edits).values():
        if getattr(options, option.name) != option.default and option.name not in used:
            raise InputError(f"{option.flag}: --augment {name} does not use it: add --augment near-misses")


def training_options_of(maker: Any) -> tuple[str, ...]:
    """Return the training options of `maker`, a class of augmentations or a functools.partial of one."""
    options: tuple[str, ...] = getattr(maker, "func", maker).training_options
    return options


def load_augmentation(name: str) -> Callable[..., TextAugmentation]:
    """Return the class of an augmentation, or a functools.partial of it.

    name: a name in `AUGMENTATIONS`, or the import path "module:name" of a `TextAugmentation` or of a result of
    `numba_augmentation`.
    """
    if spec := AUGMENTATIONS.get(name):
        return partial(import_object(spec.path), **spec.settings)
    if ":" not in name:
        raise InputError(f"unknown augmentation {name!r}: choose from {', '.join(AUGMENTATIONS)}")
    maker: Callable[..., TextAugmentation] = import_object(name)
    if not hasattr(getattr(maker, "func", maker), "token_ids"):  # numba_augmentation returns a partial of a class
        raise InputError(f"{name!r} is not a text augmentation: derive a class from una_fast.WordAugmentation")
    return maker
