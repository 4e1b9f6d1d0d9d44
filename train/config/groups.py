"""The options of a training run in groups. A group's docstring is its heading in --help.

Beside each field: its default, its help text, its limits, and its role where it is not "result" (`options.Role`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from train.config.data import Data, Files, Words
from train.config.hub import Hub
from train.config.options import option
from train.config.texts import NegativeDraws, Negatives, Positives
from train.encoder.pooling import AUTO, OF_TRAINING, POOLINGS, Head
from train.objective.registry import LOSSES, NOISE_VIEWS, NOISES

Schedule = Literal["linear", "constant"]
Compile = Literal["auto", "off", "graphs"]


@dataclass(frozen=True)
class Encoder:
    """Encoder."""

    model: str = option(
        "",
        "Hugging Face encoder to start from: its name on the hub, or the folder that holds it",
        role="source",
        metavar="NAME_OR_FOLDER",
    )
    pooling: str = option(
        AUTO,
        "how the vectors of a sentence's tokens become its embedding",
        choices={AUTO: "as the model's modules.json says, cls for a model without that file"}
        | {name: POOLINGS[known].meaning for name, known in OF_TRAINING.items()},
    )
    head: Head = option(
        "auto",
        "layer that training puts on the embedding, and that best/ leaves out: mlp: Linear + tanh; none: no layer; "
        "auto: mlp with --pooling cls, as in SimCSE, and none with any other pooling",
    )
    trust_remote_code: bool = option(
        False, "run Python code that the model brings along; without it, such a model is refused", role="running"
    )
    max_length: int = option(
        32, "sub-word tokens of a sentence, special tokens included; longer sentences are cut", least=3
    )
    dropout: float = option(0.1, "probability of dropout in hidden states and attention", least=0, below=1)


@dataclass(frozen=True)
class Objective:
    """Objective."""

    loss: str = option("pairs", "what the loss compares", choices={name: row.meaning for name, row in LOSSES.items()})
    temperature: float = option(0.05, "number by which cosine similarities are divided", above=0)
    mlm_weight: float = option(
        0.0,
        "weight of the masked-language-model loss on the sentences that is added, as in SimCSE, which takes 0.1; 0: no "
        "such loss",
        least=0,
    )


@dataclass(frozen=True)
class Noise:
    """Noise on embeddings."""

    noise: str = option(
        "none",
        "how embeddings are moved before the loss",
        choices={"none": "they stay as they are"} | {name: row.meaning for name, row in NOISES.items()},
    )
    noise_strength: float = option(0.1, "how far --noise moves an embedding", above=0, most=1)
    noise_view: str = option("positive", "whose embeddings --noise moves", choices=tuple(NOISE_VIEWS))


@dataclass(frozen=True)
class Optimisation:
    """Optimisation."""

    batch_size: int = option(64, "number of sentences in a step, over all ranks together", least=2)
    learning_rate: float | None = option(
        None, "learning rate of AdamW; default 3e-5, or 5e-6 for the RoBERTa family", above=0
    )
    schedule: Schedule | None = option(
        None,
        "linear: the learning rate falls by the same amount in every step and ends at 0; constant: it stays; default "
        "linear, or constant for the RoBERTa family",
    )
    epochs: int = option(1, "passes over the corpus", least=1)
    max_steps: int | None = option(None, "stop after this many optimiser steps if the epochs have more", least=1)
    seed: int = option(42, "seed of the order of the data, the head, dropout and the negatives", least=0)
    seeds: tuple[int, ...] = option(
        (),
        "train one run for each of these seeds, in OUTPUT/seed-N, and show the mean and the standard deviation of "
        "their scores",
        least=0,
        role="running",
        metavar="N,N,...",
    )
    precision: Literal["fp32", "bf16", "fp16"] = option(
        "fp32", "number format of the encoder's arithmetic (autocast); the weights stay in fp32"
    )
    grad_cache: int = option(
        0,
        "texts of a rank that are encoded at a time, so that the activations of a large batch fit into memory; each is "
        "encoded twice; 0: all at once, and each once",
        least=0,
    )


@dataclass(frozen=True)
class Evaluation:
    """Evaluation."""

    dev: str = option(
        "",
        "scored pairs that choose best/: STS-B's csv, or lines of score<TAB>sentence<TAB>sentence",
        role="source",
        metavar="FILE",
    )
    eval_every: int = option(
        100, "steps between two dev evaluations; one more evaluation follows the last step", least=1
    )
    evaluate: str = option(
        "",
        "folder of SentEval's data: best/ is scored on it after the last step; OUTPUT/evaluation.json has the scores",
        role="running",
        metavar="FOLDER",
    )
    tasks: str = option(
        "sts",
        "tasks that --evaluate scores: sts, transfer, full, or names with commas between",
        role="running",
        metavar="NAMES",
    )


@dataclass(frozen=True)
class Running:
    """Running.

    Where and how the run is carried out. --resume accepts other values of these.
    """

    output: str = option(
        "", "folder of the run: best/, last/, run.json, metrics.jsonl", role="running", metavar="FOLDER"
    )
    nproc: int = option(
        1,
        "number of ranks on this machine: one for each GPU, or processes that share the CPU's cores",
        least=1,
        role="running",
    )
    device: Literal["auto", "cpu", "cuda"] = option(
        "auto", "where to train; auto: on the GPUs if there are any", role="running"
    )
    compile: Compile = option(
        "auto",
        "how the encoder's kernels are started: off: one by one; graphs: replayed as CUDA graphs; auto: graphs on a "
        "GPU, else off",
        role="running",
    )
    save_every: int | None = option(
        None,
        "steps between two checkpoints in last/; default: a checkpoint at each dev evaluation, on a GPU at each tenth",
        least=1,
        role="running",
    )
    profile: bool = option(
        False, "show the shares of time that data, forward, backward, optimiser and evaluation take", role="running"
    )
    resume: bool = option(False, "go on from the checkpoint in OUTPUT/last; with --seeds, do what is left", role="call")
    demo: bool = option(
        False,
        "train offline, with a packaged encoder, sentences of Python's own documentation and a small dev set",
        role="call",
    )


GROUPS = (
    Data,
    Files,
    Words,
    Encoder,
    Positives,
    Negatives,
    NegativeDraws,
    Objective,
    Noise,
    Optimisation,
    Evaluation,
    Hub,
    Running,
)
