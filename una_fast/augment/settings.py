"""Checks the settings of an augmenter, and makes the `SamplingConfig` of its kernels of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from una_fast._kernels.draws.sampling_config import SamplingConfig
from una_fast.arrays import ID
from una_fast.augment.counter_rng import integer
from una_fast.augment.kept_words import KeptWords, as_bits
from una_fast.augment.radius import is_number, resolve_radius, score_windows, warn_if_wide
from una_fast.augment.same_script import term_scripts
from una_fast.errors import InputError, counted
from una_fast.index.index import Index
from una_fast.index.scores import inverse_document_frequency


def make_config(index: Index, settings: Mapping[str, Any], kept: KeptWords) -> SamplingConfig:
    """What the kernels of an `Augmenter` read: its settings, which are explained there, and the scores of the terms.

    kept: of the settings `keep_punctuation` and `keep_words`.

    Raises:
        InputError: a setting out of its range, or fewer than two terms that are not kept.

    """
    beta, radius, by_score = settings["beta"], settings["radius"], settings["window"] == "score"
    if not is_number(beta) or not 0 <= beta <= 1:  # NaN fails too
        raise InputError(f"beta={beta!r}: give a number in [0, 1], a mean probability; the paper takes 0.5")
    fixed = _fixed_terms(index, settings["variant"], kept) if kept else None
    keeps_script = settings["same_script"] and settings["surface"] == "kept" and settings["variant"] == "paper"
    resolved = resolve_radius(radius, index.n_terms, settings["window"])
    bounds = score_windows(index.max_tfidf, resolved) if by_score else (np.empty(0, ID),) * 2
    if radius is not None and settings["replace"] != "random":
        widest = int((bounds[1] - bounds[0]).max()) if by_score else min(2 * int(resolved) + 1, index.n_terms)
        warn_if_wide(radius, widest, index.n_terms)
    return SamplingConfig(
        index.idf,
        index.max_tfidf,
        *bounds,
        unseen_idf=float(inverse_document_frequency(1, index.n_documents)),
        beta=beta,
        radius=resolved,
        seed=integer("seed", settings["seed"]) % 2**64,
        by_score=by_score,
        released=settings["variant"] == "released",
        random_select=settings["select"] == "random",
        random_replace=settings["replace"] == "random",
        fixed=None if fixed is None else as_bits(fixed),
        scripts=term_scripts(index.terms, fixed) if keeps_script else None,
    )


def _fixed_terms(index: Index, variant: str, kept: KeptWords) -> np.ndarray:
    """The terms that are kept: bool (V,)."""
    setting = "keep_punctuation=True" if kept.punctuation else "keep_words"
    if variant == "released":
        raise InputError(f'{setting}: the released code replaces all words: give variant="paper"')
    fixed = kept.terms(index)
    if (n_others := index.n_terms - np.count_nonzero(fixed)) < 2:
        raise InputError(
            f"{setting}: {n_others} of the {counted(index.n_terms, 'term')} may be replaced, and by nothing: give a "
            "larger corpus, or keep fewer words"
        )
    return fixed


def check_choices(function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Raise InputError for one of `values`, by name, that the Literal type of its parameter does not have."""
    for name, hint in get_type_hints(function).items():
        if get_origin(hint) is Literal and values[name] not in get_args(hint):
            raise InputError(f"{name}={values[name]!r}: must be {' or '.join(map(repr, get_args(hint)))}")


def check_index(index: Index) -> None:
    """Raise InputError for anything but an `Index`, and for one whose vocabulary is a single term."""
    if not isinstance(index, Index):
        raise InputError(f"index: got {index!r}, and an Index is needed: una_fast.load_index(folder) opens a saved one")
    if index.n_terms < 2:
        raise InputError(
            f"the vocabulary has one term ({index.terms[0]!r}), and nothing to replace it by: give a larger corpus"
        )
