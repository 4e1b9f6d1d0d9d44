"""What is compared: encoders to start from, and settings of `train.ddp` that differ from the shared ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from una_fast.errors import InputError

REFERENCE = "none"  # the variation that every other one is compared with: no hard negatives
SEEDS = (42, 0, 1, 2, 3)
SHARED: dict[str, Any] = {
    "batch_size": 64,
    "max_steps": 320,
    "max_length": 32,
    "learning_rate": 3e-5,
    "alpha": 5,
    "beta": 0.5,
    "radius": "1%",
    "eval_every": 80,
    "precision": "fp32",
}
SENTENCES = SHARED["batch_size"] * SHARED["max_steps"]  # the first lines of wiki_large: one epoch

VARIATIONS: dict[str, dict[str, Any]] = {
    REFERENCE: {"augment": "none"},
    "una": {"augment": "una"},
    "una, words at random": {"augment": "una", "select": "random"},  # without step 2 of the paper
    "una, replacements at random": {"augment": "una", "replace": "random"},  # without step 3
    "una, alpha 1": {"augment": "una", "alpha": 1},
    "una, alpha 9": {"augment": "una", "alpha": 9},
    "una, beta 0.1": {"augment": "una", "beta": 0.1},
    "una, beta 0.9": {"augment": "una", "beta": 0.9},
    "una, radius 0.1%": {"augment": "una", "radius": "0.1%"},
    "una, radius 10%": {"augment": "una", "radius": "10%"},
    "una, triplet": {"augment": "una", "loss": "triplet"},
    "una, released": {"augment": "una", "variant": "released"},
    "una, surface kept": {"augment": "una", "surface": "kept"},
}


@dataclass(frozen=True)
class Base:
    """An encoder to start from.

    pooling: of `train.ddp`; before: the pooling of `train.evaluate` that reads the same embedding before training.
    """

    title: str
    pooling: str
    before: str
    mlm_steps: int = 0


BASES = {
    "minilm-cls": Base("the packaged MiniLM, [CLS]", "cls", "cls_before_pooler"),
    "minilm-mean": Base("the packaged MiniLM, its own mean pooling", "auto", "auto"),
    "minilm-mlm": Base(
        "the packaged MiniLM after 2,000 steps of masked-language modelling, [CLS]", "cls", "cls_before_pooler", 2000
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

    def settings(self) -> dict[str, Any]:
        """All options of `train.ddp` that decide its scores, the seed and the files apart."""
        return {**SHARED, "pooling": BASES[self.base].pooling, **VARIATIONS[self.variation]}


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
