"""A training run: its options as one frozen dataclass, read from a command line and a YAML file, and checked.

A value comes from the command line, else from --config, else from the field's default. If learning rate, schedule or
augmentation is not given, `train.job.resolve` chooses it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train.config.data import Data, Files, Words
from train.config.groups import (
    GROUPS,
    Encoder,
    Evaluation,
    Noise,
    Objective,
    Optimisation,
    Running,
)
from train.config.hub import Hub
from train.config.options import Option, options_of
from train.config.parser import Parser, file_values, given_values, option_parser
from train.config.texts import SAME, WITH_SYNONYMS, WITHOUT_NEGATIVES, NegativeDraws, Negatives, Positives
from train.objective.registry import LOSSES
from una_fast.errors import InputError


@dataclass(frozen=True)
class Run(
    Running,
    Hub,
    Evaluation,
    Optimisation,
    Noise,
    Objective,
    NegativeDraws,
    Negatives,
    Positives,
    Encoder,
    Words,
    Files,
    Data,
):
    """Every option of `python -m train.ddp`. Bases are in reverse order: fields of the last base come first."""

    def identity(self) -> dict[str, Any]:
        """The settings that --resume must find unchanged, by name."""
        return {name: getattr(self, name) for name, option in options().items() if option.role == "result"}


@functools.cache
def options() -> dict[str, Option]:
    """The options by field name, in order."""
    return options_of(Run)


def defaults() -> dict[str, Any]:
    """The default of every option by field name; a run that was saved before an option existed used its default."""
    return {name: option.default for name, option in options().items()}


def compared(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that distinguish runs in a report: all but the seed and the options of where and how a run ran."""
    left_out = {name for name, option in options().items() if option.role in ("running", "call")} | {"seed"}
    return {name: value for name, value in settings.items() if name not in left_out}


def arguments_of(maker: Callable[..., Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are also arguments of `maker`, by name.

    `index` and `tokenizer` are left out: as settings they are names of folders, and `maker` takes the loaded objects.
    """
    taken = inspect.signature(maker).parameters.keys() - {"index", "tokenizer"}
    return {name: value for name, value in settings.items() if name in taken}


def make_parser(prog: str = "python -m train.ddp") -> Parser:
    """The parser of the command; its result lacks options that were not given."""
    parser = option_parser(prog, "Train a sentence encoder with UNA's hard negatives, on one rank or many.", GROUPS)
    may_change = ", ".join(option.flag for option in options().values() if option.role != "result")
    parser.epilog = f"On --resume these may differ from what was given at the start: {may_change}."
    parser.add_argument(
        "--config", metavar="FILE.yaml", help="options in a file, by the names below; the command line wins"
    )
    return parser


def parse(argv: Sequence[str] | None = None, prog: str = "python -m train.ddp") -> dict[str, Any]:
    """The option values that a command line and its --config file give, by field name.

    Raises:
        InputError: an unknown option or key, a value of the wrong kind.
    """
    parser = make_parser(prog)
    given = given_values(parser, argv)
    config = given.pop("config", None)
    known = {name: option for name, option in options().items() if option.role != "call"}
    return {**(file_values(parser, Path(config), known) if config else {}), **given}


def make_run(values: Mapping[str, Any]) -> Run:
    """A checked Run of option values by field name.

    Raises:
        InputError: a required value is missing, a value is out of range, or values contradict each other.
    """
    values = dict(values)
    if values.get("seeds") and "seed" in values:
        raise InputError("--seed and --seeds together: give --seeds alone, all seeds in it")
    if isinstance(values.get("corpus"), (str, list)):
        corpus = values["corpus"]
        values["corpus"] = (corpus,) if isinstance(corpus, str) else tuple(corpus)
    run = Run(**values)
    check(run)
    return run


def check(run: Run) -> None:
    """Refuse missing and impossible values."""
    for name in ("corpus", "model", "output"):
        if not getattr(run, name):
            raise InputError(f"{options()[name].flag} is missing: give the {options()[name].help.split(':')[0]}")
    for name, option in options().items():
        option.check(getattr(run, name))
    run.check_radius()
    run.check_augment()
    for seed in run.seeds:
        if run.seeds.count(seed) > 1:
            raise InputError(f"--seeds: {seed} is named twice: give each seed once")
    check_together(run)


def check_together(run: Run) -> None:
    """Refuse values that contradict each other."""
    if run.batch_size < run.nproc:
        raise InputError(
            f"--batch-size {run.batch_size} is smaller than --nproc {run.nproc}: every rank needs a sentence of it"
        )
    if run.augment not in (None, "none") and run.loss in WITHOUT_NEGATIVES:
        others = ", ".join(name for name in LOSSES if name not in WITHOUT_NEGATIVES)
        raise InputError(f"--loss {run.loss} has no place for negatives: choose --augment none, or one of {others}")
    if run.positives != SAME and run.paraphrases:
        raise InputError(f"--paraphrases and --positives {run.positives} both name the positives: give one of them")
    if run.synonyms and not run.needs_synonyms:
        raise InputError(f"--synonyms: leave it out, or choose --positives {' or '.join(WITH_SYNONYMS)}, which use it")
    without_negatives = run.augment == "none" or run.loss in WITHOUT_NEGATIVES or run.alpha == 0
    if run.mlm_weight and run.grad_cache:
        raise InputError(
            "--mlm-weight and --grad-cache: the masked sentences of a step are encoded all at once, which --grad-cache "
            "is there to avoid: leave one of them out"
        )
    if run.push_private and not run.push_to:
        raise InputError("--push-private: nothing is pushed: give --push-to NAME too")
    if run.noise != "none" and run.noise_view == "negative" and without_negatives:
        raise InputError("--noise-view negative: this run has no negatives: choose positive, anchor or all")
