"""The options of a training run: one frozen dataclass, from which the command line is made.

The comment on a field's line is its help text. A value comes from the command line, else from --config, else from
the field's default; learning rate, schedule and augmentation that nobody gave are settled by `train.job.prepare`.
"""

from __future__ import annotations

import argparse
import functools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

from train.config.options import Option, Parser, add_options, options_of, read_file, unknown_name
from una_fast.errors import InputError

Loss = Literal["pairs", "triplet", "simcse", "decoupled"]
Schedule = Literal["linear", "constant"]
Compile = Literal["auto", "off", "graphs", "layers", "both"]


@dataclass(frozen=True)
class Run:
    """Every option of `python -m train.ddp`."""

    corpus: tuple[str, ...] = ()  # text to train on: .txt, .txt.gz, .csv, .tsv, .jsonl or .parquet, a sentence a line
    model: str = ""  # Hugging Face encoder to start from: name on the hub, or folder
    output: str = ""  # folder of the run: best/, last/, run.json, metrics.jsonl
    nproc: int = 1  # ranks on this machine: one a GPU, or processes that share the CPU's cores
    device: Literal["auto", "cpu", "cuda"] = "auto"  # where to train; auto: GPUs if there are any
    index: str = ""  # folder of the index, built there if it is not there yet; default OUTPUT/index
    column: str = "text"  # column of the sentences in .csv, .tsv, .jsonl and .parquet files
    paraphrases: str = ""  # text aligned with the corpus line by line, whose sentences are the positives
    augment: Literal["una", "none"] | None = None  # hard negatives; default una, or none for --loss simcse
    alpha: int = 5  # negatives on the optimiser steps that alpha divides, counted from 0; 0: never
    beta: float = 0.5  # mean probability that a word of a negative is replaced, 0 to 1
    radius: int = 4000  # ranks below and above a word that its replacement comes from
    select: Literal["tfidf", "random"] = "tfidf"  # words to replace: by tf-idf, or each with probability beta
    replace: Literal["tfidf", "random"] = "tfidf"  # replacements: by window, or uniform over the vocabulary
    variant: Literal["paper", "released"] = "paper"  # law of the negatives: the paper's or the released code's
    batch_size: int = 64  # sentences of a step, over all ranks
    max_length: int = 32  # sub-word tokens of a sentence, special ones included; longer ones are cut
    loss: Loss = "pairs"  # pairs: all rows against all; triplet, simcse: anchors against others; decoupled: equation 1
    temperature: float = 0.05  # divides the cosine similarities
    dropout: float = 0.1  # probability, in hidden states and attention
    learning_rate: float | None = None  # of AdamW; default 3e-5, or 5e-6 for the RoBERTa family
    schedule: Schedule | None = None  # learning rate to 0, or constant; default linear, or constant for RoBERTa
    epochs: int = 1  # passes over the corpus
    max_steps: int | None = None  # stop after so many optimiser steps, if the epochs have more
    seed: int = 42  # of the data order, the head, dropout and the negatives
    seeds: tuple[int, ...] = ()  # several, as 42,0,1: a run each in OUTPUT/seed-N, then mean and deviation
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"  # of the encoder's arithmetic (autocast); weights stay fp32
    compile: Compile = "auto"  # graphs: CUDA graphs; layers: torch.compile of each; auto: graphs on a GPU, else off
    grad_cache: int = 0  # rows encoded at a time with gradients, so that a large batch fits; 0: all at once
    dev: str = ""  # scored pairs that choose best/: STS-B's csv, or lines of score<TAB>sentence<TAB>sentence
    eval_every: int = 100  # steps between dev evaluations; one more follows the last step
    save_every: int | None = None  # steps between checkpoints in last/; default: every evaluation, on a GPU every tenth
    evaluate: str = ""  # folder of SentEval's data: best/ is scored on it at the end, in OUTPUT/evaluation.json
    tasks: str = "sts"  # of --evaluate: sts, transfer, full, or names with commas between
    resume: bool = False  # go on from OUTPUT/last; of several seeds, with what is left to do
    max_restarts: int = 3  # times the ranks are started again from last/ when one of them dies
    profile: bool = False  # report the share of time of data, forward, backward, optimiser and evaluation
    demo: bool = False  # the whole job offline: packaged encoder, Python's own texts, a small dev set


HIDDEN_FROM_FILE = ("resume", "demo")  # what one call does, not what a run is


@functools.cache
def options() -> dict[str, Option]:
    """The options by field name, in order."""
    return options_of(Run)


def make_parser() -> argparse.ArgumentParser:
    """The parser of `python -m train.ddp`; a field that was not given stays absent."""
    parser = Parser(
        prog="python -m train.ddp",
        description="Train a sentence encoder with UNA's hard negatives, on one rank or many.",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--config", metavar="FILE.yaml", help="options in a file, by the names below; the command line wins"
    )
    add_options(parser, options().values())
    return parser


def parse(argv: Sequence[str] | None = None) -> Run:
    """The run that a command line describes, checked as far as the options themselves go.

    Raises:
        InputError: an unknown option or key, a value of the wrong kind or out of range, a required one missing.
    """
    parser = make_parser()
    namespace, unknown = parser.parse_known_args(argv)
    if unknown:
        raise InputError(unknown_name("option", unknown[0].split("=")[0], [o.flag for o in options().values()]))
    given = vars(namespace)
    known = {name: option for name, option in options().items() if name not in HIDDEN_FROM_FILE}
    values = read_file(Path(given.pop("config")), known) if "config" in given else {}
    return make_run({**values, **given})


def make_run(values: dict[str, Any]) -> Run:
    """A checked Run of option values by field name; --demo fills in what is not among them."""
    if values.get("demo"):
        from train.demo.demo import demo_settings

        values = {**demo_settings(Path(values.get("output") or "runs/demo")), **values}
    if values.get("seeds") and "seed" in values:
        raise InputError("--seed and --seeds together: give --seeds alone, all seeds in it")
    if isinstance(values.get("corpus"), (str, list)):
        corpus = values["corpus"]
        values["corpus"] = (corpus,) if isinstance(corpus, str) else tuple(corpus)
    run = Run(**values)
    check(run)
    return run


AT_LEAST = {
    "nproc": 1, "alpha": 0, "radius": 1, "batch_size": 2, "max_length": 3, "epochs": 1, "max_steps": 1,
    "eval_every": 1, "save_every": 1, "seed": 0, "grad_cache": 0, "max_restarts": 0,
}  # fmt: skip
BETWEEN = {  # smallest and largest value; and whether the bounds themselves are allowed
    "beta": (0.0, 1.0, True, True),
    "dropout": (0.0, 1.0, True, False),
    "temperature": (0.0, math.inf, False, False),
    "learning_rate": (0.0, math.inf, False, False),
}


def check(run: Run) -> None:
    """Refuse missing and impossible values, and combinations that contradict each other."""
    for name in ("corpus", "model", "output"):
        if not getattr(run, name):
            raise InputError(f"{options()[name].flag} is missing: give the {options()[name].help.split(':')[0]}")
    for name, least in AT_LEAST.items():
        value = getattr(run, name)
        if value is not None and value < least:
            raise InputError(f"{options()[name].flag} is {value}: it must be at least {least}")
    for name, bounds in BETWEEN.items():
        _check_between(name, getattr(run, name), *bounds)
    _check_seeds(run.seeds)
    if run.batch_size < run.nproc:
        raise InputError(
            f"--batch-size {run.batch_size} is smaller than --nproc {run.nproc}: every rank needs a sentence of it"
        )
    if run.augment == "una" and run.loss == "simcse":
        raise InputError("--loss simcse has no place for negatives: choose --augment none, or --loss triplet or pairs")


def _check_seeds(seeds: tuple[int, ...]) -> None:
    for seed in seeds:
        if seed < 0 or seeds.count(seed) > 1:
            wrong = "is below 0" if seed < 0 else "is named twice"
            raise InputError(f"--seeds: {seed} {wrong}: give each seed once, as a whole number from 0")


def _check_between(name: str, value: float | None, low: float, high: float, low_in: bool, high_in: bool) -> None:
    if value is None:
        return
    above = value >= low if low_in else value > low
    below = value <= high if high_in else value < high
    if not (above and below):  # NaN fails both
        bounds = f"{'from' if low_in else 'above'} {low:g}"
        bounds += "" if high == math.inf else f" {'up to' if high_in else 'and below'} {high:g}"
        raise InputError(f"{options()[name].flag} is {value}: it must be a number {bounds}")


def fail(error: InputError) -> NoReturn:
    """Leave as a command line does after bad input: the sentence on stderr, exit code 2."""
    sys.stderr.write(f"error: {error}\n")
    sys.exit(2)
