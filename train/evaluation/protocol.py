"""The settings of an evaluation: all that a score depends on besides the model and the files. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

MODES = ("dev", "test", "fasttest")
AGGREGATES = ("all", "mean", "wmean")
PRECISIONS = ("fp32", "bf16")


@dataclass(frozen=True)
class EvaluationProtocol:
    """How scores are computed. The fields are the options of `train.evaluate` of the same names, and --pairs."""

    mode: str = "test"  # test: test splits, full classifier; fasttest: test splits, fast one; dev: dev splits, fast one
    aggregate: str = "all"  # how the subsets of an STS task become one score
    pooling: str = "auto"  # the model's own, or a name of POOLINGS
    max_length: int | None = None  # tokens; None: as many as the model takes
    whiten: bool = False  # fitted on each task's own sentences
    precision: str = "fp32"
    keep_pairs: bool = False  # keep every pair's similarity and gold score
    held_out: bool = False  # near-misses without the images that "dev" scores

    @property
    def split(self) -> str:
        """The split that is scored, "dev" or "test"."""
        return "dev" if self.mode == "dev" else "test"
