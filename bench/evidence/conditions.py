"""What is compared, as data: encoders to start from, settings of `train.ddp` that differ, and stages of runs.

A condition is named "BASE: VARIATION[, OPTION VALUE ...]", as in "minilm-mlm: una, temperature 0.03". A grid is a list
of points, each with other values of some options. These names stand for the best point of a grid, by dev score:

    BASE: una, tuned                the best point of UNA's grid with 8,192 sentences (GRID_BASE)
    BASE: mined, tuned              mined negatives with the settings of that point
    BASE: una, tuned at its size    the best point of UNA's grid on BASE itself
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from train.config import CAPTION_SETTINGS, OPTIONS, PRESETS
from una_fast.errors import InputError

REFERENCE = "none"  # no hard negatives: the variation with which all others are compared
TUNED, TUNED_THERE = "tuned", "tuned at its size"
FRESH = (0, 1, 2, 3, 4)  # without 42, with which the settings were chosen
SEEDS = (42, 0, 1, 2, 3)
SIMILARITY: dict[str, Any] = {  # for an encoder that was trained for similarity; the released code's settings
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
LANGUAGE_MODEL: dict[str, Any] = {  # for a language model: `train.ddp`'s defaults, except steps and precision
    "batch_size": 64,
    "max_steps": 128,
    "max_length": 32,
    "learning_rate": 3e-5,
    "warmup_steps": 0,
    "temperature": 0.05,
    "loss": "triplet",
    "surface": "kept",
    "alpha": 1,
    "beta": 0.3,
    "radius": "1%",
    "eval_every": 128,
    "precision": "bf16",
}
NEAR_MISS: dict[str, Any] = {  # about one word per sentence is replaced; all other similarities are preserved
    **CAPTION_SETTINGS,
    "batch_size": 32,
    "max_steps": 160,
    "max_length": 32,
    "learning_rate": 2e-5,
    "radius": "1%",
    "precision": "fp32",
}
# the preset before it protected search; no run of the stage near has been repeated since
BEFORE_SEARCH: dict[str, Any] = {"max_steps": 640, "negative_distillation": 0.0, "blend": 1.0}
RECIPE: dict[str, Any] = {**PRESETS["near_misses"], **BEFORE_SEARCH, "max_length": 32, "precision": "bf16"}
CAPTIONS: dict[str, Any] = {  # the options of NEAR_MISS that differ from RECIPE
    **{name: NEAR_MISS[name] for name in ("select", "beta", "keep_punctuation", "radius", "learning_rate")},
    "augment": "una",
    "margin_least": 0.1,
    "margin_most": 0.3,
    "neighbours": False,
}
PAIRS: dict[str, Any] = {  # for labelled paraphrases: "none" is in-batch InfoNCE, also called MNRL
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
# options of negatives, which a condition without negatives does not have
OF_NEGATIVES = ("alpha", "beta", "radius", "surface", "keep_punctuation", "select")
# options that a condition without negatives can also have
OF_TRAINING = (
    *("temperature", "learning_rate", "warmup_steps", "batch_size", "max_steps", "eval_every"),
    *("positives", "positives_strength"),
)
CONTROLS = "bench.evidence.controls"

VARIATIONS: dict[str, dict[str, Any]] = {
    REFERENCE: {"augment": "none"},
    "una": {"augment": "una"},
    "una, words at random": {"augment": "una", "select": "random"},  # without step 2 of the paper
    "una, replacements at random": {"augment": "una", "replace": "random"},  # without step 3
    "una, both at random": {"augment": "una", "select": "random", "replace": "random"},
    "una, one word": {"augment": "una", "select": "random", "beta": 0.12},  # about one word of a sentence
    "random words": {"augment": "una", "select": "random", "beta": 0.12, "replace": "random"},
    "other sentences": {"augment": f"{CONTROLS}:OtherSentence"},  # as many texts per step, but none made by UNA
    "words deleted": {"augment": f"{CONTROLS}:Deleted"},
    "words masked": {"augment": f"{CONTROLS}:Masked"},
    "near-misses": {"augment": "near-misses"},
    "one word": {"augment": "near-misses", "edits": "word"},
    "captions": CAPTIONS,
    "same word class": {"augment": "bench.evidence.word_classes:SameClass"},
    "mined": {"augment": f"{CONTROLS}:Mined"},
    "mined, and una": {"augment": f"{CONTROLS}:MinedAndUna"},
}
STEPS = (  # variations that replace steps of UNA
    *("una, words at random", "una, replacements at random", "una, both at random", "other sentences"),
    *("words deleted", "words masked", "mined", "mined, and una"),
)


PACKAGED = "packaged"  # the packaged MiniLM
HALF = "minilm-half"  # the same with weights rounded to half precision, so that a copy has half the size
MLM = "mlm-1600"  # the packaged MiniLM, turned back into a language model
FROM_SCRATCH = "scratch"  # the model of `pretrain`, which never was a sentence encoder


@dataclass(frozen=True)
class Base:
    """An encoder to start from, and the settings that its conditions share."""

    title: str  # in tables
    shared: Mapping[str, Any]  # options of `train.ddp` that all conditions of the base have
    pooling: str = "auto"  # the option of `train.ddp`
    start: str = PACKAGED  # or the name of an encoder that `bases` makes
    words: tuple[int, int] | None = None  # least and most words of a training sentence, or None for all
    # whether the condition "none" is the encoder before training, because without negatives the loss has no term
    untrained: bool = False
    # the option of `train.evaluate`; near-misses are scored on the images that were not used for tuning
    tasks: str = "sts"
    pairs: bool = False  # whether to train on labelled paraphrases, the training parts of MRPC and STS-B
    corpus: str = ""  # a file in the data folder, all of whose sentences are used; "" means one of `corpora.CORPORA`

    @property
    def before(self) -> str:
        """The pooling of `train.evaluate` that gives the same embedding before training."""
        return {"cls": "cls_before_pooler", "mean": "avg"}.get(self.pooling, self.pooling)


MINILM, MLM_MINILM = "the packaged MiniLM", "MLM MiniLM"
QUESTIONS, SENTENCES = "minilm-questions", "minilm-sentences"  # bases of the recipe against near-misses
WIDE, LARGE = "minilm-mlm-102400", "minilm-mlm-409600"
SCALE = {"minilm-mlm-32768": 512, WIDE: 1600, LARGE: 6400}  # base: steps of 64 sentences
OF_SCRATCH = {**LANGUAGE_MODEL, "max_steps": 512, "eval_every": 128}
AS_PAPER = {name: SIMILARITY[name] for name in ("surface", "loss", "alpha", "beta")}  # `--paper`
WITH_NEAR_MISSES = "sts,near-miss"
CAPTION_WORDS = (6, 14)
AGAINST_NEAR_MISSES: dict[str, Any] = {"untrained": True, "tasks": WITH_NEAR_MISSES}
BASES = {
    "minilm-cls": Base(f"{MINILM}, [CLS]", SIMILARITY, "cls"),
    "minilm-near": Base(f"{MINILM}, near-misses", NEAR_MISS, words=CAPTION_WORDS, **AGAINST_NEAR_MISSES),
    QUESTIONS: Base(
        f"{MINILM}, near-misses of questions", RECIPE, start=HALF, corpus="near_miss/pairs/questions.txt",
        **AGAINST_NEAR_MISSES,
    ),
    SENTENCES: Base(
        f"{MINILM}, near-misses of Wikipedia", RECIPE, start=HALF, words=CAPTION_WORDS, **AGAINST_NEAR_MISSES
    ),
    "minilm-pairs": Base(f"{MINILM}, paraphrases", PAIRS, tasks="STSBenchmark,near-miss", pairs=True),
    "minilm-mlm": Base(MLM_MINILM, LANGUAGE_MODEL, "mean", MLM),
    "wiki-lm": Base("Scratch", OF_SCRATCH, "mean", FROM_SCRATCH),
    "wiki-lm-cls": Base("Scratch, [CLS]", OF_SCRATCH | AS_PAPER, "cls", FROM_SCRATCH),
}  # fmt: skip
for name, steps in SCALE.items():
    shared = {**LANGUAGE_MODEL, "max_steps": steps, "eval_every": steps // 4}
    BASES[name] = Base(MLM_MINILM, shared, "mean", MLM, tasks=WITH_NEAR_MISSES)
ARMS = (REFERENCE, "una")  # variations that are tuned
GRID_BASE = "minilm-mlm"  # base on which they are tuned
Options = Mapping[str, Sequence[Any]]
GRID: Options = {"temperature": (0.03, 0.05, 0.1), "learning_rate": (1e-5, 3e-5, 1e-4), "warmup_steps": (0, 0.1)}
WARM: Options = {"temperature": (0.05, 0.1, 0.2)}  # higher: the best point of GRID is at its maximum
SCRATCH_GRID: Options = {"temperature": (0.1, 0.05), "learning_rate": (1e-4, 3e-5, 3e-4)}
LARGER_BATCHES = "none, batch_size 128, max_steps 256, eval_every 64"  # the same sentences in larger batches
GRIDS: dict[str, dict[str, Options]] = {  # base: arm: options; all arms of a base have the same number of points
    GRID_BASE: dict.fromkeys(ARMS, GRID),
    WIDE: {
        "none": {**WARM, "learning_rate": (1e-5, 3e-5, 1e-4, 3e-4)},
        "una": {**WARM, "learning_rate": (3e-5, 1e-4), "alpha": (1, 5)},
    },
    "wiki-lm": dict.fromkeys((*ARMS, "mined", LARGER_BATCHES), SCRATCH_GRID),
    "wiki-lm-cls": dict.fromkeys(ARMS, SCRATCH_GRID),
}


@dataclass(frozen=True)
class Condition:
    """A base that is trained with the settings of a variation."""

    base: str
    variation: str

    @property
    def name(self) -> str:
        """The condition's key in evidence.json: "BASE: VARIATION[, OPTION VALUE ...]"."""
        return f"{self.base}: {self.variation}"

    @property
    def reference(self) -> Condition:
        """The condition to compare with: the same options OF_TRAINING, but no hard negatives, or no training."""
        stated = [] if BASES[self.base].untrained else _parts_of(self.variation)[1]
        same = [f"{option} {value}" for option, value in stated if option in OF_TRAINING]
        return Condition(self.base, ", ".join([REFERENCE, *same]))

    @property
    def is_untrained(self) -> bool:
        """Whether the scores of this condition are the scores of its base before training."""
        return BASES[self.base].untrained and self.variation == REFERENCE

    def settings(self) -> dict[str, Any]:
        """Return all options of `train.ddp` that determine the condition's scores, except the seed and the files.

        Raises ValueError for an unknown variation or option.
        """
        base = BASES[self.base]
        if self.is_untrained:
            return {"max_steps": 0}
        name, stated = _parts_of(self.variation)
        changed = {option: _value(text) for option, text in stated}
        if unknown := changed.keys() - OPTIONS:
            raise ValueError(unknown)
        found = {**base.shared, "pooling": base.pooling, **VARIATIONS[name], **changed}
        unused = OF_NEGATIVES if found["augment"] == "none" else ()
        return {name: value for name, value in found.items() if name not in unused}

    def n_sentences(self) -> int:
        """Return how many sentences a run of the condition trains on. Each sentence is used once."""
        settings = self.settings()
        return settings["batch_size"] * settings["max_steps"]


def _parts_of(variation: str) -> tuple[str, list[list[str]]]:
    """Split a variation into its name in VARIATIONS and a list of [option, value].

    Raises ValueError for an unknown name.
    """
    name = max((one for one in VARIATIONS if f"{variation}, ".startswith(f"{one}, ")), key=len)
    return name, [part.split(" ") for part in variation.removeprefix(name).split(", ")[1:]]


def _value(text: str) -> Any:
    try:
        return json.loads(text)  # a number, true or false
    except ValueError:
        return text


def grid(arm: str, base: str = GRID_BASE) -> list[Condition]:
    """Return one condition for each point of an arm's grid on a base.

    The name of a condition omits the values that the base has by default.
    """
    shared, options = BASES[base].shared, GRIDS[base][arm]
    points = [zip(options, values, strict=True) for values in itertools.product(*options.values())]
    stated = ([f"{name} {value:g}" for name, value in point if value != shared[name]] for point in points)
    return [Condition(base, ", ".join([arm, *one])) for one in stated]


def tuned(arm: str, results: Mapping[str, Any], base: str = GRID_BASE, whole: bool = True) -> str:
    """Return the variation of the best point of an arm's grid, by dev score with the first of SEEDS.

    Args:
        arm: a key of GRIDS[base].
        results: the entry "conditions" of evidence.json.
        base: the base on which the grid was run.
        whole: whether every point must have a dev score. If not, one point is enough.

    Raises:
        InputError: dev scores are missing.
    """
    scores, points = {}, grid(arm, base)
    for one in points:
        run = results.get(one.name, {}).get("runs", {}).get(str(SEEDS[0]), {})
        if run.get("dev"):
            scores[one.variation] = max(run["dev"].values())
    missing = len(points) - len(scores)
    if not scores or (whole and missing):
        raise InputError(f"{base}: {arm}, {TUNED}: {missing} points of the grid have no dev score: run them first")
    return max(scores, key=lambda name: scores[name])


def find_condition(name: str, results: Mapping[str, Any] | None = None, whole: bool = True) -> Condition:
    """Parse the name of a condition, "BASE: VARIATION[, OPTION VALUE ...]".

    Args:
        name: the name.
        results: the entry "conditions" of evidence.json. Required for names with "tuned".
        whole: as in `tuned`.

    Raises:
        InputError: an unknown base or variation, or a grid without dev scores.
    """
    base, _, variation = (part.strip() for part in name.partition(":"))
    for word, tuned_on in ((TUNED_THERE, base), (TUNED, GRID_BASE)):
        stem, chosen, more = variation.partition(f", {word}")
        if chosen and tuned_on in GRIDS:
            arm = stem if stem in GRIDS[tuned_on] else "una"
            variation = stem + tuned(arm, results or {}, tuned_on, whole).removeprefix(arm) + more
            break
    condition = Condition(base, variation)
    try:
        condition.settings()
    except (KeyError, ValueError):
        raise InputError(
            f"--conditions {name.strip()!r}: give BASE: VARIATION[, OPTION VALUE ...] with a base of "
            f"{', '.join(BASES)} and a variation of {'; '.join(VARIATIONS)}"
        ) from None
    return condition


@dataclass(frozen=True)
class Stage:
    """Conditions that are run together, seed by seed. scored: False if only STS-B dev is scored, not the tasks."""

    names: Sequence[str]
    seeds: Sequence[int] = FRESH
    scored: bool = True

    def conditions(self, results: Mapping[str, Any]) -> list[Condition]:
        """Return the conditions. Raises InputError if they depend on a grid without dev scores."""
        return [find_condition(name, results) for name in self.names]


FROM_SCRATCH_ARMS = [(base, arm) for base in ("wiki-lm", "wiki-lm-cls") for arm in GRIDS[base]]
TUNED_ARMS = tuple(f"{GRID_BASE}: {arm}, {TUNED}" for arm in ARMS)
WIDER = "batch_size 256, max_steps 400, eval_every 100"  # the sentences of WIDE in larger batches
NEAR = ("near-misses", "one word", "captions")
NEAR_ABLATIONS = (  # of "near-misses", most important first
    *("neighbours false", "edits polarity:4,number:16", "edits polarity:4,number:16,name:4", "learning_rate 0.0002"),
    *("max_steps 320", "max_steps 1280, epochs 2", "margin_least 0.2, margin_most 0.5"),
    *("margin_least 0.45, margin_most 0.75", "margin_most 2.0", "edits polarity", "edits number", "edits name"),
    *("edits polarity,number,name,swap,word", "neighbour_distillation 30.0"),
    *("similarity_distillation 30.0", "learning_rate 5e-05", "neighbours_pool 8000", "batch_size 64, epochs 2"),
    *("dropout 0.0", "precision fp32"),
)
STAGES = {
    "grid": Stage([one.name for arm in ARMS for one in grid(arm)], SEEDS[:1], scored=False),
    "arms": Stage([*TUNED_ARMS, *(f"{TUNED_ARMS[0]}, {more}" for more in ("max_steps 256", "batch_size 128"))]),
    "steps": Stage([f"{GRID_BASE}: {variation}, {TUNED}" for variation in ("una", *STEPS)]),
    "defaults": Stage([f"{GRID_BASE}: {arm}" for arm in ARMS]),
    "scale": Stage(
        [f"{base}: {arm}, {TUNED}" for base in SCALE if base != LARGE for arm in ARMS]
        + [f"{WIDE}: {arm}, {TUNED}, {WIDER}" for arm in ARMS],
        FRESH[:3],
    ),
    "wide-grid": Stage([one.name for arm in ARMS for one in grid(arm, WIDE)], SEEDS[:1], scored=False),
    "wide": Stage([f"{WIDE}: {arm}, {TUNED_THERE}" for arm in ARMS], FRESH[:3]),
    "classes": Stage([f"{GRID_BASE}: same word class, {TUNED}", "minilm-near: same word class"], FRESH[:3]),
    "near": Stage([f"{QUESTIONS}: {variation}" for variation in NEAR]),
    "near-ablations": Stage(
        [f"{SENTENCES}: near-misses", *(f"{QUESTIONS}: near-misses, {changed}" for changed in NEAR_ABLATIONS)],
        FRESH[:3],
    ),
    "wiki-grid": Stage(
        [one.name for base, arm in FROM_SCRATCH_ARMS for one in grid(arm, base)], SEEDS[:1], scored=False
    ),
    "wiki-arms": Stage([f"{base}: {arm}, {TUNED_THERE}" for base, arm in FROM_SCRATCH_ARMS]),
    "large": Stage([f"{LARGE}: {arm}, {TUNED}" for arm in ARMS], FRESH[:1]),
}
