"""A training run: its options as one frozen dataclass, read from a command line and a YAML file, and checked.

A value comes from the command line, else from --config, else from the field's default. If learning rate, schedule or
augmentation is not given, `train.launch.start` chooses it. Beside each field stand its default, its help text, its
bounds, and its role where that is not "result" (`options.Role`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

from train.config.command import Command, complete, option, options_of
from train.encoder.pooling import AUTO, OF_TRAINING, POOLINGS, Head
from train.objective.registry import LOSSES, NOISE_VIEWS, NOISES
from una_fast.augment.radius import resolve_radius
from una_fast.augment.registry import HARD, POSITIVES, WITH_SYNONYMS
from una_fast.corpus.source import MAX_DOCUMENT_BYTES
from una_fast.errors import InputError

SAME = "same"  # positives that no augmentation makes
OWN = "one of your own, by its import path"
WITHOUT_NEGATIVES = tuple(name for name, row in LOSSES.items() if not row.negative_views)
# how the paper's code uses negatives; docs/will-it-help.md compares them with the defaults
PAPER_SETTINGS: dict[str, Any] = {"loss": "pairs", "alpha": 5, "beta": 0.5, "surface": "paper"}
# what taught near-misses to an encoder trained for similarity (docs/near-misses.md): about one word is replaced
NEAR_MISS_SETTINGS: dict[str, Any] = {"loss": "margin", "similarity_distillation": 10.0, "alpha": 1, "beta": 0.12}
NEAR_MISS_SETTINGS |= {"select": "random", "surface": "kept", "keep_punctuation": True}
PRESETS: dict[str, dict[str, Any]] = {  # options that stand for several others, by field name
    "paper": PAPER_SETTINGS,
    "near_misses": {
        "augment": "near-misses",
        "edits": "polarity:1,number:4",
        "loss": "margin",
        "margin_least": 0.3,
        "margin_most": 0.6,
        "learning_rate": 1e-4,
        "batch_size": 32,
        "max_steps": 160,
        "similarity_distillation": 10.0,
        "positives": "harmless",
        "positives_share": 0.5,
        "neighbours": True,
        "neighbour_distillation": 10.0,
    },
}

FILES = "How files are read"
WORDS = "Words"
ENCODER = "Encoder"
DRAWS = "How hard negatives are drawn"


@dataclass(frozen=True)
class Run:
    """Every option of `python -m train.ddp`."""

    config: str = option("", "Many options at once", metavar="FILE.yaml", role="call")
    """options in a file, by the names below; the command line wins"""
    paper: bool = option(False, role="call")
    """the paper's settings, where you give no others: --loss pairs --alpha 5 --beta 0.5 --surface paper"""
    near_misses: bool = option(False, role="call")
    """the recipe against near-misses for an encoder that was trained for similarity, where you give no others:
    --augment near-misses --loss margin --margin-least 0.3 --margin-most 0.6 --learning-rate 0.0001 --batch-size 32
    --max-steps 160 --similarity-distillation 10 --positives harmless --positives-share 0.5 --neighbours"""

    corpus: tuple[str, ...] = option((), "Data", required=True, metavar="FILE", role="source")
    """files of text to train on: .txt, .csv, .tsv, .jsonl, .json or .parquet, a sentence a line; folders and globs"""
    paraphrases: str = option("", metavar="FILE", role="source")
    """file, folder or glob whose line i is the positive of line i; default: the sentence itself"""
    index: str = option("", role="running", metavar="FOLDER")
    """folder of the index, which is built if it is not there; default OUTPUT/index"""

    column: str = option("text", FILES, metavar="NAME")
    """column of the sentences in all files but .txt"""
    quoting: bool | None = option(None)
    """a cell in quotation marks may hold line ends and delimiters; by default yes in .csv, and no in .tsv"""
    max_document_bytes: int = option(MAX_DOCUMENT_BYTES, least=0, role="running")
    """longest document, in bytes of UTF-8; 0: any length"""

    word_tokenizer: str = option("treebank", WORDS, metavar="NAME")
    """what splits a sentence into words: treebank, whitespace, rjieba (Chinese), fugashi (Japanese), pythainlp (Thai),
    or MODULE:FUNCTION, one of your own"""
    lowercase: bool = option(True)
    """lower-case sentences before they are split into words"""

    model: str = option("", ENCODER, role="source", required=True, metavar="NAME_OR_FOLDER")
    """Hugging Face encoder to start from: its name on the hub, or the folder that holds it"""
    pooling: str = option(
        AUTO,
        choices={AUTO: "as the model's modules.json says, cls for a model without that file"}
        | {name: POOLINGS[known] for name, known in OF_TRAINING.items()},
    )
    """how the vectors of a sentence's tokens become its embedding"""
    head: Head = option("auto")
    """layer on the embedding in training, which best/ leaves out: mlp: Linear + tanh; none: no layer; auto: mlp with
    --pooling cls, as in SimCSE, and none with any other pooling"""
    trust_remote_code: bool = option(False, role="running")
    """run Python code that the model brings along; without it, such a model is refused"""
    max_length: int = option(32, least=3)
    """sub-word tokens of a sentence, special tokens included; longer sentences are cut"""
    dropout: float = option(0.1, least=0, below=1)
    """probability of dropout in hidden states and attention"""

    positives: str = option(
        SAME,
        "Positives",
        choices={SAME: "the sentence itself, or its line of --paraphrases"} | POSITIVES | {"MODULE:CLASS": OWN},
    )
    """what the positive of a sentence is; all but the first are drawn anew in every epoch"""
    positives_strength: float = option(0.1, above=0, most=1)
    """share of a sentence's words that --positives changes"""
    positives_share: float = option(1.0, above=0, most=1)
    """share of the sentences whose positive is made by --positives; the others are their own positives"""
    synonyms: str = option("", metavar="FILE")
    """synonyms for eda-synonym and eda-insert: lines of a word and its synonyms, between tabs; default: WordNet"""

    augment: str | None = option(
        None, "Hard negatives", choices=HARD | {"none": "train without them", "MODULE:CLASS": OWN}
    )
    """what makes hard negatives, by default una, or none with a loss that takes none, as simcse"""
    edits: str = option("polarity:1,number:4", metavar="NAME:WEIGHT,...")
    """--augment near-misses: its edits, with weights: polarity, number, name, swap, word"""
    polarity: str = option("", metavar="FILE")
    """--augment near-misses: opposites and negations of another language, in a file like augment/english.txt"""
    alpha: int = option(1, least=0)
    """add negatives in the first of every ALPHA optimiser steps; 1: in every step; 0: never"""

    beta: float = option(0.3, DRAWS, least=0, most=1)
    """mean probability that a word of a negative is replaced"""
    radius: int | float | str | None = option(None, above=0, metavar="N_OR_SHARE")
    """how far from a word its replacement may be: a number of ranks, or a share of all words such as 1%; default:
    1%, or the paper's 4000 ranks where 1% is more"""
    select: Literal["tfidf", "random"] = option("tfidf")
    """words to replace: tfidf: the important ones more often; random: each with probability beta, and at least one"""
    replace: Literal["tfidf", "random"] = option("tfidf")
    """replacements: tfidf: words of like importance, by --radius; random: any word of the corpus"""
    variant: Literal["paper", "released"] = option("paper")
    """make negatives as the paper says, or as the code that its authors released does"""
    surface: Literal["kept", "paper"] = option("kept")
    """kept: a negative is the sentence as it is written, but for the words that are replaced; paper: it is words in
    lower case with spaces between, with NLTK's `` and '' for quotation marks"""
    keep_punctuation: bool = option(False)
    """words without a letter or digit are neither replaced nor drawn; not with --variant released"""
    keep_words: str = option("", metavar="FILE")
    """file with a word a line (names, product numbers, stop words): these too are neither replaced nor drawn"""
    same_script: bool = option(True)
    """with --surface kept: a word of a script without spaces (Chinese and Japanese, Thai, Lao, Burmese, Khmer) is
    replaced by words of that script alone, and no other word by such"""

    loss: str = option("triplet", "Objective", choices=LOSSES | {"MODULE:FUNCTION": OWN})
    """what the loss compares"""
    temperature: float = option(0.05, above=0)
    """number by which cosine similarities are divided"""
    margin_weight: float = option(1e-3, least=0)
    """weight of the margin of --loss soft, as in SNCSE"""
    margin_least: float = option(0.1, least=0, most=2)
    """--loss soft and margin: a negative's cosine is to be this much below the positive's"""
    margin_most: float = option(0.3, least=0, most=2)
    """--loss soft and margin: and at most this much below it"""
    similarity_distillation: float = option(0.0, least=0)
    """weight of the mean squared change, since before training, of cosines between a step's anchors"""
    neighbours: bool = option(False)
    """half of a step's sentences are random, the other half are the nearest sentence of each before training"""
    neighbours_pool: int = option(8000, least=2)
    """--neighbours: number of sentences of the corpus that are drawn for it"""
    neighbour_distillation: float = option(10.0, least=0)
    """--neighbours: weight of the mean squared change, since before training, of the cosines of neighbours"""
    mlm_weight: float = option(0.0, least=0)
    """weight of an added masked-language-model loss of the sentences; SimCSE takes 0.1"""

    noise: str = option("none", "Noise on embeddings", choices={"none": "they stay as they are"} | NOISES)
    """how embeddings are moved before the loss"""
    noise_strength: float = option(0.1, above=0, most=1)
    """how far --noise moves an embedding"""
    noise_view: str = option("positive", choices=tuple(NOISE_VIEWS))
    """whose embeddings --noise moves"""

    batch_size: int = option(64, "Optimisation", least=2)
    """number of sentences in a step, over all ranks together"""
    learning_rate: float | None = option(None, above=0, most=1)
    """learning rate of AdamW; default 3e-5, or 5e-6 for the RoBERTa family"""
    schedule: Literal["linear", "cosine", "constant"] | None = option(None)
    """learning rate after the warm-up: linear: it falls by the same amount in every step and ends at 0; cosine: it
    falls to 0 along half a cosine; constant: it stays; default linear, or constant for the RoBERTa family"""
    warmup_steps: float = option(0.0, least=0, metavar="N_OR_SHARE")
    """steps in which the learning rate rises from 0 at the beginning: a number, or a share of all steps below 1"""
    weight_decay: float = option(0.0, least=0)
    """AdamW's weight decay of all weights but biases and those of normalisations"""
    max_grad_norm: float = option(0.0, least=0)
    """scale the gradient of a step down to this norm where it is longer; 0: never"""
    epochs: int = option(1, least=1)
    """passes over the corpus"""
    max_steps: int | None = option(None, least=1)
    """stop after this many optimiser steps if the epochs have more"""
    seed: int = option(42, least=0)
    """seed of the order of the data, the head, dropout and the negatives"""
    seeds: tuple[int, ...] = option((), least=0, role="running", metavar="N,N,...")
    """train a run for each of these seeds, in a folder seed-N, and show mean and standard deviation of the scores"""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = option("auto")
    """number format of the encoder's arithmetic (autocast); weights stay in fp32; auto: bf16 where the device has it"""
    grad_cache: int = option(0, least=0)
    """texts of a rank that are encoded at a time, each twice, so that a large batch fits into memory; 0: all, once.
    Accumulating gradients is no option: of small batches it is another loss, with fewer negatives for a sentence"""

    dev: str = option("", "Evaluation", role="source", metavar="FILE")
    """scored pairs that choose best/: STS-B's csv, or lines of score<TAB>sentence<TAB>sentence"""
    early_stopping_patience: int = option(0, least=0)
    """stop after this many dev evaluations in a row of which none is the best so far; 0: never"""
    eval_every: int = option(100, least=1)
    """steps between two dev evaluations; one more evaluation follows the last step"""
    evaluate: str = option("", role="running", metavar="FOLDER")
    """folder of SentEval's data, on which best/ is scored after the last step, into OUTPUT/evaluation.json"""
    tasks: str = option("sts", role="running", metavar="NAMES")
    """tasks that --evaluate scores: sts, transfer, near-miss, full (sts and transfer), or names with commas between"""

    push_to: str = option("", "The hub", metavar="NAME", role="running")
    """repository on the hub that gets best/ and its card at the end; with --seeds NAME-seed-N"""
    push_private: bool = option(False, role="running")
    """make the repository of --push-to a private one"""

    output: str = option("", "Running", required=True, metavar="FOLDER", role="running")
    """folder of the run: best/, last/, run.json, metrics.jsonl"""
    nproc: int = option(1, least=1, role="running")
    """number of ranks on this machine: one for each GPU, or processes that share the CPU's cores"""
    device: Literal["auto", "cpu", "cuda"] = option("auto", role="running")
    """where to train; auto: on the GPUs if there are any"""
    compile: Literal["off", "on", "graphs"] | None = option(None, role="running")
    """graphs: whole steps as CUDA graphs, on one GPU; with --grad-cache, --mlm-weight or --noise steps stay eager; on:
    the encoder's layers by torch.compile, which takes half a minute before the first step; default: off"""
    deterministic: bool = option(True, role="running")
    """on a GPU, add in the same order every time, without which --resume ends with other bits"""
    save_every: int | None = option(None, least=1, role="running")
    """steps between two checkpoints; default: at each dev evaluation, on a GPU at each tenth"""
    report_to: str = option("tensorboard" if find_spec("tensorboard") else "none", metavar="NAMES", role="running")
    """what shows the figures of the run, with commas between: tensorboard (where it is installed, the default), wandb,
    trackio, mlflow, none, or MODULE:CLASS, one of your own"""
    resume: bool = option(False, role="call")
    """go on from the checkpoint in OUTPUT/last; with --seeds, do what is left"""
    demo: bool = option(False, role="call")
    """train offline: a packaged encoder, sentences of Python's documentation, a small dev set"""

    def identity(self) -> dict[str, Any]:
        """The settings that --resume must find unchanged, by option."""
        return {option.flag: getattr(self, name) for name, option in OPTIONS.items() if option.role == "result"}


OPTIONS = options_of(Run)
DEFAULTS = {name: option.default for name, option in OPTIONS.items()}  # also of runs from before an option existed


def compared(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that distinguish runs in a report: all but the seed and the options of where and how a run ran."""
    left_out = {name for name, option in OPTIONS.items() if option.role in ("running", "call")} | {"seed"}
    return {name: value for name, value in settings.items() if name not in left_out}


def make_parser(prog: str = "python -m train.ddp") -> Command:
    """The parser of the command; its result lacks options that were not given."""
    about = "Train a sentence encoder with UNA's hard negatives, on one rank or many."
    may_change = ", ".join(option.flag for option in OPTIONS.values() if option.role not in ("result", "call"))
    epilog = f"On --resume these may differ from what was given at the start: {may_change}."
    return Command(prog, about, OPTIONS, epilog=epilog, page="tutorial")


def parse(argv: Sequence[str] | None = None, prog: str = "python -m train.ddp") -> dict[str, Any]:
    """The option values that a command line, its --config file and a preset give, by field name.

    Raises:
        InputError: an unknown option or key, a value of the wrong kind.
    """
    given = make_parser(prog).given(argv)
    chosen = [name for name in PRESETS if given.pop(name, False)]
    if len(chosen) > 1:
        raise InputError("--paper and --near-misses together: give one of them")
    return (PRESETS[chosen[0]] if chosen else {}) | given


def make_run(values: Mapping[str, Any]) -> Run:
    """A checked Run of option values by field name.

    Raises:
        InputError: a required value is missing, a value is out of range, or values contradict each other.
    """
    if values.get("seeds") and "seed" in values:
        raise InputError("--seed and --seeds together: give --seeds alone, all seeds in it")
    run = Run(**complete(OPTIONS, values))
    resolve_radius(run.radius, 1)
    for message, is_so in conflicts(run).items():
        if is_so:
            raise InputError(message)
    return run


def conflicts(run: Run) -> dict[str, Any]:
    """Map each message about values that contradict each other to whether this run has the conflict."""
    has_negatives = run.augment != "none" and run.alpha and run.loss not in WITHOUT_NEGATIVES
    moves_negatives = run.noise != "none" and run.noise_view == "negative"
    return {
        "--seeds: give each seed once": len({*run.seeds}) < len(run.seeds),
        f"--batch-size {run.batch_size} is smaller than --nproc {run.nproc}": run.batch_size < run.nproc,
        f"--paraphrases: leave them out with --positives {run.positives}": run.paraphrases and run.positives != SAME,
        f"--synonyms: leave it out, or choose --positives {' or '.join(WITH_SYNONYMS)}, which use it": (
            run.synonyms and run.positives not in WITH_SYNONYMS
        ),
        "--keep-punctuation, --keep-words: the released code replaces all words: give --variant paper": (
            (run.keep_punctuation or run.keep_words) and run.variant == "released"
        ),
        "--mlm-weight encodes a step's sentences all at once: leave --grad-cache or it out": (
            run.mlm_weight and run.grad_cache
        ),
        "--push-private: nothing is pushed: give --push-to NAME too": run.push_private and not run.push_to,
        "--noise-view negative: this run has no negatives": moves_negatives and not has_negatives,
        f"--margin-least {run.margin_least:g} is above --margin-most": run.margin_least > run.margin_most,
        f"--neighbours: --batch-size {run.batch_size} is odd, and half of a step are neighbours": (
            run.neighbours and run.batch_size % 2
        ),
        "--positives-share: choose --positives too": run.positives_share < 1 and run.positives == SAME,
        "--loss margin needs negatives in every step: give --alpha 1 and an --augment": (
            run.loss == "margin" and (run.augment == "none" or run.alpha != 1)
        ),
        f"--warmup-steps {run.warmup_steps:g} is neither a whole number nor a share of all steps below 1": (
            run.warmup_steps > 1 and run.warmup_steps % 1
        ),
        "--early-stopping-patience counts dev scores: give --dev FILE too": run.early_stopping_patience and not run.dev,
    }


def reading_arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `build_index` that say how files are read, from option values by field name."""
    limit = settings["max_document_bytes"] or None
    return {"column": settings["column"], "quoting": settings["quoting"], "max_document_bytes": limit}
