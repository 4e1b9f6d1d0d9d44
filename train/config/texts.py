"""The options of positives and negatives, in groups like those of `train.config.groups`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from train.config.options import option
from train.objective.registry import LOSSES
from una_fast.augment.radius import resolve_radius
from una_fast.augment.registry import AUGMENTATIONS
from una_fast.errors import InputError

SAME = "same"  # positives that no augmentation makes
POSITIVES = {name: row for name, row in AUGMENTATIONS.items() if row.positive}
WITH_SYNONYMS = tuple(name for name, row in POSITIVES.items() if row.needs_synonyms)
WITHOUT_NEGATIVES = tuple(name for name, row in LOSSES.items() if not row.negative_views)


@dataclass(frozen=True)
class Positives:
    """Positives."""

    positives: str = option(
        SAME,
        "what the positive of a sentence is; all but the first are drawn anew in every epoch",
        choices={SAME: "the sentence itself, or its line of --paraphrases"}
        | {name: row.meaning for name, row in POSITIVES.items()},
    )
    positives_strength: float = option(0.1, "share of a sentence's words that --positives changes", above=0, most=1)
    synonyms: str = option(
        "",
        f"synonyms for {', '.join(WITH_SYNONYMS)}: each line is a word and its synonyms, with tabs between them; "
        "WordNet gives the synonyms if no file is given",
        metavar="FILE",
    )

    @property
    def needs_synonyms(self) -> bool:
        """Whether the positives are made with synonyms."""
        return self.positives in WITH_SYNONYMS


@dataclass(frozen=True)
class Negatives:
    """Hard negatives."""

    augment: str | None = option(
        None,
        "una: add hard negatives; none: train without them; MODULE:CLASS: a text augmentation of your own makes the "
        f"negatives; default una, or none with a loss that takes no negatives ({', '.join(WITHOUT_NEGATIVES)})",
        metavar="NAME",
    )
    alpha: int = option(5, "add negatives in the first of every ALPHA optimiser steps; 0: never", least=0)

    def check_augment(self) -> None:
        """Refuse a name of --augment that is none of its values."""
        if self.augment not in (None, "una", "none") and ":" not in self.augment:
            raise InputError(f"--augment {self.augment}: choose una or none, or name a class as MODULE:CLASS")


@dataclass(frozen=True)
class NegativeDraws:
    """How hard negatives are drawn."""

    beta: float = option(0.5, "mean probability that a word of a negative is replaced", least=0, most=1)
    radius: int | float | str | None = option(
        None,
        "how far from a word its replacement may be: a number of ranks, a share of all words such as 1%, or a score "
        "with --window score; default: 1%, or the paper's 4000 ranks where 1% is more",
        above=0,
        metavar="N_OR_X",
    )
    window: Literal["rank", "score"] = option(
        "rank", "what --radius counts: places in the ranking of words by highest tf-idf, or that score itself"
    )
    select: Literal["tfidf", "random"] = option(
        "tfidf", "words to replace: tfidf: the important ones more often; random: each with probability beta"
    )
    replace: Literal["tfidf", "random"] = option(
        "tfidf", "replacements: tfidf: words of like importance, by --radius; random: any word of the corpus"
    )
    variant: Literal["paper", "released"] = option(
        "paper", "make negatives as the paper says, or as the code that its authors released does"
    )
    surface: Literal["lower", "kept"] = option(
        "lower",
        "lower: a negative is words in lower case with spaces between; kept: it is the sentence as it is written, but "
        "for the words that are replaced",
    )

    def check_radius(self) -> None:
        """Refuse a radius that does not fit `window`; the InputError says which values do."""
        if self.window == "score" and self.radius is None:
            raise InputError("--window score: give --radius too, as a distance in highest tf-idf, such as 0.5")
        if self.window == "rank" and isinstance(self.radius, float) and self.radius % 1:
            raise InputError(
                f"--radius is {self.radius}: a number of ranks must be whole; --window score takes a distance"
            )
        try:
            resolve_radius(self.radius, 1, self.window)
        except InputError as error:
            raise InputError(f"--{error}") from None
