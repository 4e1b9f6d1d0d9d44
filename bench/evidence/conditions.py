"""What is compared: encoders to start from, and settings of `train.ddp` that differ from the shared ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from train.config.run import NEAR_MISS_SETTINGS
from una_fast.errors import InputError

REFERENCE = "none"  # the variation that every other one is compared with: no hard negatives
SEEDS = (42, 0, 1, 2, 3)
SIMILARITY: dict[str, Any] = {  # from an encoder that was trained for sentence similarity; the released code's way
    "batch_size": 64,
    "max_steps": 320,
    "max_length": 32,
    "learning_rate": 3e-5,
    "loss": "pairs",
    "surface": "paper",
    "alpha": 5,
    "beta": 0.5,
    "radius": "1%",
    "eval_every": 80,
    "precision": "fp32",
}
LANGUAGE_MODEL: dict[str, Any] = {  # from a language model, as in the paper; a negative of every anchor in every step
    **SIMILARITY,
    "max_steps": 128,
    "loss": "triplet",
    "alpha": 1,
    "beta": 0.3,
    "eval_every": 128,
    "precision": "bf16",
}
NEAR_MISS: dict[str, Any] = {  # about one word of a sentence replaced; all other similarities stay
    **NEAR_MISS_SETTINGS,
    "batch_size": 32,
    "max_steps": 160,
    "max_length": 32,
    "learning_rate": 2e-5,
    "radius": "1%",
    "precision": "bf16",
}
PAIRS: dict[str, Any] = {  # from labelled paraphrases: "none" is in-batch InfoNCE, which others call MNRL
    "batch_size": 32,
    "epochs": 2,
    "max_steps": 120,
    "max_length": 64,
    "learning_rate": 2e-5,
    "loss": "triplet",
    "alpha": 1,
    "beta": 0.5,
    "radius": "1%",
    "surface": "kept",
    "keep_punctuation": True,
    "precision": "bf16",
}
ONE_WORD: dict[str, Any] = {"select": "random", "beta": 0.12}  # about one word of a sentence is replaced
OTHER_SENTENCE = "bench.evidence.controls:OtherSentence"

VARIATIONS: dict[str, dict[str, Any]] = {
    REFERENCE: {"augment": "none"},
    "none, twice the steps": {"augment": "none", "max_steps": 256},  # the time that a step with negatives takes
    "none, pairs": {"augment": "none", "loss": "pairs"},
    "other sentences": {"augment": OTHER_SENTENCE},  # as many texts in a step, none of them made by UNA
    "una": {"augment": "una"},
    "una, words at random": {"augment": "una", "select": "random"},  # without step 2 of the paper
    "una, replacements at random": {"augment": "una", "replace": "random"},  # without step 3
    "una, both at random": {"augment": "una", "select": "random", "replace": "random"},
    "una, pairs": {"augment": "una", "loss": "pairs"},
    "una, pairs, alpha 5, beta 0.5": {"augment": "una", "loss": "pairs", "alpha": 5, "beta": 0.5},
    "una, alpha 1": {"augment": "una", "alpha": 1},
    "una, alpha 2": {"augment": "una", "alpha": 2},
    "una, alpha 5": {"augment": "una", "alpha": 5},
    "una, alpha 9": {"augment": "una", "alpha": 9},
    "una, beta 0.1": {"augment": "una", "beta": 0.1},
    "una, beta 0.2": {"augment": "una", "beta": 0.2},
    "una, beta 0.3": {"augment": "una", "beta": 0.3},
    "una, beta 0.5": {"augment": "una", "beta": 0.5},
    "una, beta 0.9": {"augment": "una", "beta": 0.9},
    "una, radius 0.1%": {"augment": "una", "radius": "0.1%"},
    "una, radius 10%": {"augment": "una", "radius": "10%"},
    "una, triplet, alpha 1, beta 0.3": {"augment": "una", "loss": "triplet", "alpha": 1, "beta": 0.3},
    "una, released": {"augment": "una", "variant": "released"},
    "una, surface kept": {"augment": "una", "surface": "kept"},
    "una, soft": {"augment": "una", "loss": "soft", "margin_weight": 1.0, **ONE_WORD},
    "una, gated": {"augment": "una", "loss": "gated"},
    "una, tied": {"augment": "una", "tie_weight": 1.0},
    "random words": {"augment": "una", "replace": "random", **ONE_WORD},
    "una, the most important word": {"augment": "una", "select": "tfidf", "beta": 0},
}


@dataclass(frozen=True)
class Base:
    """An encoder to start from, and the settings that its conditions share.

    pooling: of `train.ddp`; before: the pooling of `train.evaluate` that reads the same embedding before training.
    mlm_steps: steps of masked words that make the packaged MiniLM a language model again, before all else.
    words: fewest and most words of the sentences to train on, or None for all sentences.
    untrained: the variation "none" is the encoder before training, because the loss has no other term.
    pairs: trained on labelled paraphrases, MRPC's and STS-B's for training, in place of sentences.
    tasks: of `train.evaluate`; near-misses are scored on the images that are not for tuning.
    """

    title: str
    pooling: str
    before: str
    shared: Mapping[str, Any]
    mlm_steps: int = 0
    words: tuple[int, int] | None = None
    untrained: bool = False
    tasks: str = "sts"
    pairs: bool = False


BASES = {
    "minilm-cls": Base("the packaged MiniLM, [CLS]", "cls", "cls_before_pooler", SIMILARITY),
    "minilm-mean": Base("the packaged MiniLM, its own mean pooling", "auto", "auto", SIMILARITY),
    "minilm-near": Base(
        "the packaged MiniLM, near-misses", "auto", "auto", NEAR_MISS, 0, (6, 14), True, "sts,near-miss"
    ),
    "minilm-pairs": Base(
        "the packaged MiniLM, paraphrases", "auto", "auto", PAIRS, tasks="STSBenchmark,near-miss", pairs=True
    ),
    "minilm-mlm": Base("a language model, mean pooling", "mean", "avg", LANGUAGE_MODEL, 1600),
    "minilm-mlm-cls": Base("a language model, [CLS] and a head", "cls", "cls_before_pooler", LANGUAGE_MODEL, 1600),
    "minilm-mlm-256": Base(
        "a language model, batches of 256", "mean", "avg", {**LANGUAGE_MODEL, "batch_size": 256}, 1600
    ),
    "minilm-mlm-100k": Base(
        "a language model, 102,400 sentences",
        "mean",
        "avg",
        {**LANGUAGE_MODEL, "max_steps": 1600, "eval_every": 400},
        1600,
    ),
}


@dataclass(frozen=True)
class Condition:
    """A base under a variation; its name is "BASE: VARIATION"."""

    base: str
    variation: str

    @property
    def name(self) -> str:
        """Its key in evidence.json."""
        return f"{self.base}: {self.variation}"

    @property
    def reference(self) -> Condition:
        """The condition that it is compared with."""
        return Condition(self.base, REFERENCE)

    @property
    def is_untrained(self) -> bool:
        """Whether its scores are the base's before training."""
        return BASES[self.base].untrained and self.variation == REFERENCE

    def settings(self) -> dict[str, Any]:
        """All options of `train.ddp` that decide its scores, the seed and the files apart."""
        base = BASES[self.base]
        if self.is_untrained:
            return {"max_steps": 0}
        return {**base.shared, "pooling": base.pooling, **VARIATIONS[self.variation]}

    def n_sentences(self) -> int:
        """How many sentences it trains on, each of them once."""
        settings = self.settings()
        return settings["batch_size"] * settings["max_steps"]


def find_conditions(names: str) -> list[Condition]:
    """The conditions of "BASE: VARIATION; ...", in that order.

    Raises:
        InputError: an unknown base or variation.
    """
    found = []
    for name in names.split(";"):
        base, _, variation = (part.strip() for part in name.partition(":"))
        if base not in BASES or variation not in VARIATIONS:
            raise InputError(
                f"--conditions {name.strip()!r}: give BASE: VARIATION with a base of {', '.join(BASES)} and a "
                f"variation of {'; '.join(VARIATIONS)}"
            )
        found.append(Condition(base, variation))
    return found
