"""Runs of `train.ddp` for the cells of a table, one seed after the other."""

from __future__ import annotations

import dataclasses
import json
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from train.config.run import Run, defaults, options
from train.job.resolve import resolve_options
from train.job.score_best import is_scored
from train.job.seeds import of_seed, train_seeds
from train.record.folder import is_finished, read_summary
from train.record.pointer import has_checkpoint
from train.report.records import STS_AVERAGE, read_run
from train.reproduction.setting import Setting
from train.tables.kind import AVERAGE, Trained


@dataclass(frozen=True)
class Training:
    """The runs of a source. scored: on the STS tasks too, not on the dev set alone."""

    setting: Setting
    source: Trained
    seeds: tuple[int, ...]
    scored: bool

    @cached_property
    def run(self) -> Run:
        """The run of all seeds, before its options are resolved."""
        return self.setting.run_of(self.source, self.seeds, self.scored)

    @property
    def models(self) -> list[str]:
        """The encoder, which must be on this machine."""
        return [self.run.model]

    @property
    def name(self) -> str:
        """The folder of the runs, as it is called in messages."""
        return str(Path(self.run.output).relative_to(self.setting.output))

    def done(self) -> bool:
        """True if every seed is trained with these settings and, if `scored`, scored."""
        return all(self.seed_done(seed) for seed in self.seeds)

    def seed_done(self, seed: int) -> bool:
        """True if the run of a seed with these settings is finished and, if `scored`, scored."""
        one = of_seed(self.run, seed)
        if not is_finished(Path(one.output)) or (self.scored and not is_scored(one)):
            return False
        saved = read_summary(Path(one.output))["settings"]
        wanted = _as_json(resolve_options(dataclasses.replace(one, dev="", evaluate="")).identity())
        return all(saved.get(name, defaults()[name]) == value for name, value in wanted.items())

    def check(self) -> None:
        """Check the options of the run, before runs of earlier rows take hours.

        Raises:
            InputError: as `resolve_options` raises it, for missing synonyms for instance.
        """
        resolve_options(dataclasses.replace(of_seed(self.run, self.seeds[0]), evaluate=""))

    def do(self) -> int:
        """Train and score what is left and return the exit code."""
        return train_seeds(dataclasses.replace(self.run, resume=any(map(self.begun, self.seeds))))

    def begun(self, seed: int) -> bool:
        """True if the run of a seed has a checkpoint to go on from."""
        return has_checkpoint(Path(of_seed(self.run, seed).output))

    def scores(self) -> dict[int, dict[str, Any]]:
        """The scores of every finished seed, as fractions."""
        folders = {seed: Path(of_seed(self.run, seed).output) for seed in self.seeds}
        found = {seed: read_run(folder).scores for seed, folder in folders.items() if is_finished(folder)}
        return {seed: {**scores, AVERAGE: scores.get(STS_AVERAGE)} for seed, scores in found.items()}

    def describe(self) -> str:
        """The command that makes the runs."""
        return f"python -m train.ddp {command_line(self.run)}"


def command_line(run: Run) -> str:
    """The options of a run that are not train.ddp's own defaults, as a shell takes them."""
    words = []
    for name, option in options().items():
        value = getattr(run, name)
        if value == option.default:
            continue
        if option.kinds == (bool,):
            words.append(option.flag if value else option.flag.replace("--", "--no-", 1))
        elif option.many and option.kinds == (int,):
            words += [option.flag, ",".join(map(str, value))]
        else:
            words += [option.flag, *map(str, value if option.many else [value])]
    return shlex.join(words)


def _as_json(values: dict[str, Any]) -> dict[str, Any]:
    """The values as a run.json holds them."""
    return json.loads(json.dumps(values, default=str))
