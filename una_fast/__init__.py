"""UNA: hard negatives for contrastive training of sentence encoders, made by compiled kernels.

Shu and Lampos 2024, Unsupervised hard Negative Augmentation for contrastive learning, https://arxiv.org/abs/2401.02594.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING

from una_fast.version import VERSION

if TYPE_CHECKING:
    from una_fast import integrations as integrations
    from una_fast import losses as losses
    from una_fast.augment.base import WordAugmentation as WordAugmentation
    from una_fast.augment.contradiction import contradicts as contradicts
    from una_fast.augment.eda import EDA as EDA
    from una_fast.augment.harmless import HarmlessEdits as HarmlessEdits
    from una_fast.augment.near_misses import NearMisses as NearMisses
    from una_fast.augment.numba import numba_augmentation as numba_augmentation
    from una_fast.augment.una import Augmenter as Augmenter
    from una_fast.corpus.sample import sample_corpus as sample_corpus
    from una_fast.errors import InputError as InputError
    from una_fast.errors import InputWarning as InputWarning
    from una_fast.index.build import build_index as build_index
    from una_fast.index.index import Index as Index
    from una_fast.index.index import load_index as load_index
    from una_fast.pair_scores import score_pairs as score_pairs
    from una_fast.probing import probe as probe
    from una_fast.tokens.ids import TokenIds as TokenIds
    from una_fast.verify.verifier import Verifier as Verifier

__version__ = VERSION
logging.getLogger(__name__).addHandler(logging.NullHandler())  # only programs that configure logging see messages
# Public names are imported at their first use (PEP 562), because torch and transformers take 1.3 s to import, and
# --help and the error messages of commands need neither.
_HOMES = {
    "Augmenter": "augment.una",
    "EDA": "augment.eda",
    "HarmlessEdits": "augment.harmless",
    "Index": "index.index",
    "InputError": "errors",
    "InputWarning": "errors",
    "NearMisses": "augment.near_misses",
    "TokenIds": "tokens.ids",
    "Verifier": "verify.verifier",
    "WordAugmentation": "augment.base",
    "build_index": "index.build",
    "contradicts": "augment.contradiction",
    "load_index": "index.index",
    "numba_augmentation": "augment.numba",
    "probe": "probing",
    "sample_corpus": "corpus.sample",
    "score_pairs": "pair_scores",
}
__all__ = [*_HOMES]
_MODULES = ("integrations", "losses")  # not in __all__, because they need optional packages


def __getattr__(name: str) -> object:
    if name in _MODULES:
        from una_fast.imports import naming_extras

        with naming_extras():
            return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]
