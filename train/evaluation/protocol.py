"""The settings of an evaluation: all that a score depends on besides the model and the files. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from train.config.options import option
from train.encoder.pooling import AUTO, POOLINGS


@dataclass(frozen=True)
class EvaluationProtocol:
    """How scores are computed."""

    mode: str = option(
        "test",
        "as in SimCSE",
        choices={
            "test": "test splits, with the classifiers of transfer tasks trained in full",
            "fasttest": "test splits, with classifiers trained for a shorter time",
            "dev": "dev splits, with the same classifiers as fasttest",
        },
    )
    aggregate: str = option(
        "all",
        "how the subsets of an STS task become one score",
        choices={
            "all": "the correlation over the pairs of all subsets",
            "mean": "the mean of the subsets' correlations",
            "wmean": "that mean, weighted by numbers of pairs",
        },
    )
    pooling: str = option(
        AUTO,
        "how the vectors of a sentence's tokens become its embedding, by the names of SimCSE; auto: as the model's "
        "modules.json says, cls_before_pooler for a model without that file",
        choices=(AUTO, *POOLINGS, "mean"),
    )
    max_length: int | None = option(
        None,
        "tokens of a sentence, special tokens included; longer sentences are cut; default: the model's own limit",
        least=3,
    )
    held_out: bool = option(
        False, "near-miss: leave out the fifth of the images that --mode dev scores, for settings chosen on that fifth"
    )
    whiten: bool = option(False, "whiten embeddings on each task's own sentences")
    precision: Literal["fp32", "bf16"] = option("fp32", "number format of the encoder's arithmetic")

    @property
    def split(self) -> str:
        """The split that is scored, "dev" or "test"."""
        return "dev" if self.mode == "dev" else "test"
