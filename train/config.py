"""The options of a training run, as one frozen dataclass, and the checks of their values.

The command line overrides the --config file, the file overrides a preset such as --paper, and the preset overrides the
defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

from train.encoder.pooling import AUTO, OF_TRAINING, POOLINGS, Head
from train.losses import LOSSES
from una_fast.augment.registry import HARD, POSITIVES, WITH_SYNONYMS
from una_fast.command import make_options, option, options_of
from una_fast.errors import InputError
from una_fast.options import Draws, Edits, Files, Words

Schedule = Literal["linear", "cosine", "constant"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]
Compile = Literal["off", "on", "graphs"]
SAME = "same"  # value of --positives that applies no augmentation
OWN = "your own, by its import path"
# how the paper's code uses negatives
PAPER_SETTINGS: dict[str, Any] = {"loss": "pairs", "alpha": 5, "beta": 0.5, "surface": "paper"}
CAPTION_SETTINGS: dict[str, Any] = {  # against near-misses among captions (docs/near-misses.md#captions)
    "loss": "margin", "similarity_distillation": 10.0, "alpha": 1, "beta": 0.12, "select": "random",
    "surface": "kept", "keep_punctuation": True,
}  # fmt: skip
PRESETS: dict[str, dict[str, Any]] = {  # preset option -> the options that it sets, all by field name
    "paper": PAPER_SETTINGS,
    "near_misses": {
        "augment": "near-misses", "edits": "polarity:4,number:16,name:1", "loss": "margin", "margin_least": 0.3,
        "margin_most": 0.6, "learning_rate": 1e-4, "batch_size": 32, "max_steps": 320, "similarity_distillation": 10.0,
        "negative_distillation": 10.0, "blend": 0.75, "neighbours": True, "neighbours_pool": 24000,
        "neighbour_distillation": 10.0,
    },
}  # fmt: skip


def _as_arguments(preset: str) -> str:
    """Return the command-line arguments that have the effect of a preset."""
    options = ((f"--{name.replace('_', '-')}", value) for name, value in PRESETS[preset].items())
    return " ".join(flag if value is True else f"{flag} {value}" for flag, value in options)


@dataclass(frozen=True)
class Run(Files, Words, Draws, Edits):
    """Every option of `python -m train.ddp`."""

    # fmt: off
    config: str = option("YAML file of options; the command line overrides it", "", "Many options at once",
                         metavar="FILE.yaml", role="call")
    paper: bool = option(f"settings of the paper: {_as_arguments('paper')}", False, role="call")
    near_misses: bool = option("recipe against near-misses, for an encoder trained for similarity: "
                               f"{_as_arguments('near_misses')}", False, role="call")

    corpus: tuple[str, ...] = option("files of text to train on: .txt, .csv, .tsv, .jsonl, .json or .parquet, one "
                                     "sentence per line; folders, globs", (), "Data", required=True, metavar="FILE",
                                     role="source")
    paraphrases: str = option("file, folder or glob of paraphrases; line i is the positive of sentence i", "",
                              metavar="FILE", role="source")
    index: str = option("folder of the index, built if missing; default OUTPUT/index", "", metavar="FOLDER",
                        role="running")

    model: str = option("Hugging Face encoder to start from: hub name or folder", "", "Encoder", role="source",
                        required=True, metavar="NAME_OR_FOLDER")
    pooling: str = option("how token vectors become an embedding", AUTO,
                          choices={AUTO: "as in the model's modules.json, or cls without that file"}
                          | {name: POOLINGS[known] for name, known in OF_TRAINING.items()})
    head: Head = option("layer for training only: mlp: Linear + tanh; auto: mlp if --pooling cls, as in SimCSE", "auto")
    trust_remote_code: bool = option("run Python code that comes with the model", False, role="running")
    max_length: int = option("maximum tokens per sentence, special tokens included; longer sentences are truncated", 32,
                             least=3)
    dropout: float = option("dropout of hidden states and attention", 0.1, least=0, below=1)

    positives: str = option("what the positive of a sentence is; every epoch draws new positives", SAME, "Positives",
                            choices={SAME: "the sentence itself, or its line of --paraphrases"} | POSITIVES
                            | {"MODULE:CLASS": OWN})
    positives_strength: float = option("share of a sentence's words that --positives changes", 0.1, above=0, most=1)
    positives_share: float = option("share of sentences that get a positive by --positives; the others are their own "
                                    "positives", 1.0, above=0, most=1)
    synonyms: str = option("TSV file with a word and its synonyms per line, for eda-*; default: WordNet", "",
                           metavar="FILE")

    augment: str | None = option("what makes hard negatives; default una, or none if the loss uses no negatives", None,
                                 "Hard negatives", choices=HARD | {"none": "train without them", "MODULE:CLASS": OWN})
    alpha: int = option("add negatives in every ALPHA-th step, beginning with the first; 0: never", 1, least=0)

    loss: str = option("what the loss compares", "triplet", "Objective", choices=LOSSES | {"MODULE:FUNCTION": OWN})
    temperature: float = option("divide cosine similarities by this", 0.05, above=0)
    margin_weight: float = option("weight of the margin in --loss soft, as in SNCSE", 1e-3, least=0)
    margin_least: float = option("least allowed margin: cosine of anchor and positive minus cosine of anchor and "
                                 "negative", 0.1, least=0, most=2)
    margin_most: float = option("largest allowed margin; beyond it, the loss pulls the negative closer to the anchor",
                                0.3, least=0, most=2)
    similarity_distillation: float = option("weight of a penalty on changed similarities: the mean of (c - c0)^2 over "
                                            "all pairs of a step's anchors, where c is their cosine and c0 their "
                                            "cosine by the initial encoder", 0.0, least=0)
    negative_distillation: float = option("weight of the penalty of --similarity-distillation on the cosines of "
                                          "negatives with the step's unrelated sentences, for an encoder that also "
                                          "searches", 0.0, least=0)
    neighbours: bool = option("fill half of each step with the nearest neighbours of the other half", False)
    neighbours_pool: int = option("sentences to sample, among which --neighbours looks for neighbours", 8000, least=2)
    neighbour_distillation: float = option("with --neighbours, weight of the penalty of --similarity-distillation on "
                                           "the pairs of sentence and neighbour", 10.0, least=0)

    batch_size: int = option("sentences per step, over all ranks together", 64, "Optimisation", least=2)
    learning_rate: float | None = option("learning rate of AdamW; default 3e-5, or 5e-6 for the RoBERTa family", None,
                                         above=0, most=1)
    schedule: Schedule | None = option("learning rate after the warm-up: linear and cosine decay to 0; default linear, "
                                       "or constant for the RoBERTa family", None)
    warmup_steps: float = option("steps of linear warm-up from 0; a value below 1 is a share of all steps", 0.0,
                                 least=0, metavar="N_OR_SHARE")
    weight_decay: float = option("weight decay of AdamW, of all weights except biases and normalisations", 0.0, least=0)
    max_grad_norm: float = option("clip the norm of the gradient at this value; 0: never", 0.0, least=0)
    epochs: int = option("passes over the corpus", 1, least=1)
    max_steps: int | None = option("stop after this many steps", None, least=1)
    seed: int = option("seed of data order, head, dropout and negatives", 42, least=0)
    seeds: tuple[int, ...] = option("train once per seed, in OUTPUT/seed-N; show mean and deviation of the scores", (),
                                    least=0, role="running", metavar="N,N,...")
    blend: float = option("weights of best/: this share of the way from the initial encoder's to the trained ones", 1.0,
                          above=0, most=1)
    precision: Precision = option("autocast of the encoder; weights stay in fp32; auto: bf16 if the device supports it",
                                  "auto")
    grad_cache: int = option("encode this many texts per rank at a time, each twice, to save memory; 0: all", 0,
                             least=0)

    dev: str = option("what chooses best/: scored pairs (STS-B's csv, or lines of score<TAB>sentence<TAB>sentence), or "
                      "a folder of retrieval sets in BEIR's format", "", "Evaluation", role="source",
                      metavar="FILE_OR_FOLDER")
    early_stopping_patience: int = option("stop after this many dev scores in a row without a new best; 0: never", 0,
                                          least=0)
    eval_every: int = option("steps between dev scores; the last step is always scored", 100, least=1)
    evaluate: str = option("folder of SentEval's data; best/ is scored on it at the end (OUTPUT/evaluation.json)", "",
                           role="running", metavar="FOLDER")
    tasks: str = option("tasks of --evaluate: sts, transfer, near-miss, full (sts and transfer), or NAME,NAME", "sts",
                        role="running", metavar="NAMES")

    output: str = option("folder of the run: best/, last/, run.json, metrics.jsonl", "", "Running", required=True,
                         metavar="FOLDER", role="running")
    nproc: int = option("ranks on this machine: one per GPU, or processes that share the CPU", 1, least=1,
                        role="running")
    device: Literal["auto", "cpu", "cuda"] = option("auto: GPUs if there are any", "auto", role="running")
    compile: Compile | None = option("graphs: whole steps as CUDA graphs, the default on GPUs without --grad-cache or "
                                     "a custom loss; on: the same, with layers that torch.compile compiles in half a "
                                     "minute; off: the default in all other cases", None, role="running")
    deterministic: bool = option("deterministic kernels on a GPU, for a bit-identical --resume", True, role="running")
    save_every: int | None = option("steps between checkpoints; default: at every dev score (every tenth on a GPU)",
                                    None, least=1, role="running")
    report_to: str = option("comma-separated trackers: tensorboard (default if installed), wandb, trackio, mlflow, "
                            "none, or your own MODULE:CLASS", "tensorboard" if find_spec("tensorboard") else "none",
                            metavar="NAMES", role="running")
    resume: bool = option("continue from the checkpoint in OUTPUT/last; with --seeds, train the remaining seeds too",
                          False, role="call")
    demo: bool = option("train a packaged encoder offline, on Python's documentation", False, role="call")
    # fmt: on

    def identity(self) -> dict[str, Any]:
        """Return {flag: value} of all options that affect what a run computes. --resume must not change them."""
        return {option.flag: getattr(self, name) for name, option in OPTIONS.items() if option.role == "result"}


class ResolvedRun(Run):
    """The options of a run after `train.launch.resolve` has chosen each one that was missing or "auto"."""

    augment: str  # "none" for a run without negatives
    learning_rate: float
    schedule: Schedule
    compile: Compile
    save_every: int


OPTIONS = options_of(Run)
DEFAULTS = {name: option.default for name, option in OPTIONS.items()}  # a run older than an option used its default


def compared_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Select the settings that all runs of a group share: those that affect the result, except the seed."""
    left_out = {name for name, option in OPTIONS.items() if option.role in ("running", "call")} | {"seed"}
    return {name: value for name, value in settings.items() if name not in left_out}


def make_run(values: Mapping[str, Any]) -> Run:
    """Make a Run from values by field name. Raises InputError if one is missing or wrong, or two are in conflict."""
    if values.get("seeds") and "seed" in values:
        raise InputError("--seed and --seeds together: give only --seeds, with all seeds")
    run = make_options(Run, values)
    from una_fast.augment.sampler import resolve_radius  # imports pyarrow, which --help does not need

    resolve_radius(run.radius, 1)
    for message, applies in conflicts(run).items():
        if applies:
            raise InputError(message)
    return run


def conflicts(run: Run) -> dict[str, Any]:
    """Check for conflicts between options. Return {error message: whether `run` has this conflict}."""
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
        f"--margin-least {run.margin_least:g} is above --margin-most": run.margin_least > run.margin_most,
        f"--neighbours: --batch-size {run.batch_size} is odd: give an even number, as half are neighbours": (
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
