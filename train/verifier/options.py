"""The options of `python -m train.verifier`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from una_fast.command import option
from una_fast.options import Files


@dataclass(frozen=True)
class VerifierOptions(Files):
    """The options of a verifier's training."""

    # fmt: off
    corpus: tuple[str, ...] = option("files of text like that which the verifier will judge: .txt, .csv, .tsv, .jsonl, "
                                     ".json or .parquet, one sentence per line; folders, globs", (), "Data",
                                     required=True, metavar="FILE", role="source")
    pairs: str = option("file of labelled pairs to train on too, .csv, .tsv or .parquet, with the columns sentence1, "
                        "sentence2, label (1: same meaning, 0: near-miss)", "", metavar="FILE", role="source")
    sentences: int = option("largest number of sentences of --corpus to make pairs from", 24_000, least=100)
    templates: int = option("number of pairs from sentence templates", 24_000, least=0)
    neighbours: float = option("smallest cosine of two sentences of --corpus with the same numbers, names and "
                               "negations that count as the same meaning; above 1: none", 0.85, least=0)
    wordnet: str = option("folder of WordNet's files, such as /usr/share/wordnet, for opposites and synonyms; without "
                          "it the pairs are made from word lists only", "", metavar="FOLDER")

    model: str = option("encoder whose token embeddings the verifier reads: hub name or folder", "", "Verifier",
                        role="source", required=True, metavar="NAME_OR_FOLDER")
    layers: int = option("transformer layers of the verifier", 3, least=1, most=24)
    width: int = option("width of the verifier, a multiple of 4", 128, least=4, most=4096)

    max_steps: int = option("optimiser steps", 1500, "Training", least=1)
    batch_size: int = option("pairs per step", 128, least=2)
    learning_rate: float = option("highest learning rate; it rises for 50 steps, then falls to 0", 1e-3, above=0)
    dropout: float = option("dropout of the verifier", 0.0, least=0, below=1)
    seed: int = option("seed of the pairs, the weights, the batches and the dropout", 42, least=0)

    output: str = option("folder of the verifier and of everything that --resume needs", "", "Running", required=True,
                         metavar="FOLDER", role="running")
    save_every: int = option("steps between two checkpoints", 100, least=1, role="running")
    device: Literal["auto", "cpu", "cuda"] = option("auto: a GPU if there is one", "auto", role="running")
    resume: bool = option("continue the run in --output; its options are the default", False, role="call")
    # fmt: on
