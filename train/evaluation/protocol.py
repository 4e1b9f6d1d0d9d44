"""The settings of an evaluation: all that a score depends on besides the model and the files. Light to import."""

from __future__ import annotations

from dataclasses import dataclass

MODES = ("dev", "test", "fasttest")
AGGREGATES = ("all", "mean", "wmean")
PRECISIONS = ("fp32", "bf16")


@dataclass(frozen=True)
class Protocol:
    """How scores are made."""

    mode: str = "test"  # dev: dev splits, fast classifier; test; fasttest: test splits, fast classifier
    aggregate: str = "all"  # of an STS task's subsets
    pooling: str = "auto"  # the model's own, or a name of POOLINGS
    max_length: int | None = None  # tokens; None: as many as the model takes
    whiten: bool = False  # fitted on each task's own sentences
    precision: str = "fp32"
    keep_pairs: bool = False  # keep every pair's similarity and gold score

    @property
    def split(self) -> str:
        """The split that is scored, "dev" or "test"."""
        return "dev" if self.mode == "dev" else "test"
