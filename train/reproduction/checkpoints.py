"""Scores published encoders, and the user's own, on the STS tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train.evaluation.protocol import EvaluationProtocol
from train.evaluation.tasks.registry import task_names
from train.record.files import write_json
from train.record.folder import read_object
from train.report.records import STS_AVERAGE, read_evaluation
from train.reproduction.setting import Setting
from train.tables.kind import AVERAGE, Checkpoint


@dataclass(frozen=True)
class Scoring:
    """The scores of an encoder, kept in OUTPUT/checkpoints."""

    setting: Setting
    source: Checkpoint

    @property
    def _path(self) -> Path:
        one = self.source
        name = "_".join([*Path(one.model).parts[-2:], one.pooling, *["whitening"][: one.whiten]])
        return self.setting.output / "checkpoints" / f"{name}.json"

    @property
    def models(self) -> list[str]:
        """The encoder, which must be on this machine."""
        return [self.source.model]

    @property
    def name(self) -> str:
        """The encoder, as it is called in messages."""
        return self.source.model

    @property
    def _tasks(self) -> list[str]:
        return task_names(self.setting.request.given.get("tasks", "sts"))

    def done(self) -> bool:
        """True if all scores of the encoder are saved."""
        kept = read_object(self._path)
        return kept.get("model") == self.source.model and {*self._tasks} <= {*kept.get("sts", {})}

    def do(self) -> int:
        """Score the encoder and save the scores; returns exit code 0."""
        from train.evaluation.scoring import score_model  # scikit-learn takes a second

        given = self.setting.request.given
        protocol = EvaluationProtocol(pooling=self.source.pooling, whiten=self.source.whiten)
        trust, device = given.get("trust_remote_code", False), given.get("device", "auto")
        results = score_model(self.source.model, self.setting.downstream, self._tasks, protocol, device, trust=trust)
        write_json(self._path, results.to_json())
        return 0

    def scores(self) -> dict[int, dict[str, Any]]:
        """The scores as fractions, {} if there are none yet. They have no seed and stand under the command's first."""
        if not self._path.is_file():
            return {}
        scores, _ = read_evaluation(self._path, [])
        return {self.setting.seeds[0]: {**scores, AVERAGE: scores.get(STS_AVERAGE)}}

    def describe(self) -> str:
        """The command that scores the encoder."""
        whiten = " --whiten" if self.source.whiten else ""
        return f"python -m train.evaluate --model {self.source.model} --pooling {self.source.pooling}{whiten}"
