"""The measurements that need no training: sizes of test sets, and negatives of three sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import una_fast
from train.config.run import Run, arguments_of, reading_arguments
from train.evaluation.tasks.registry import read_task
from train.job.material import open_index, sources
from train.reproduction.setting import Setting
from train.tables.kind import Negative, TestSet


@dataclass(frozen=True)
class Counting:
    """The size of a test set."""

    setting: Setting
    source: TestSet
    models: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The task, as it is called in messages."""
        return self.source.task

    def done(self) -> bool:
        """True, because the pairs are counted each time."""
        return True

    def do(self) -> int:
        """Do nothing; returns exit code 0."""
        return 0

    def scores(self) -> dict[int, dict[str, Any]]:
        """The number of pairs of the test set, under the command's first seed."""
        task = read_task(self.setting.downstream, self.source.task)
        return {self.setting.seeds[0]: {"pairs": task.sizes["test"]}}

    def describe(self) -> str:
        """The work in words."""
        return f"count the pairs of {self.source.task}"


@dataclass(frozen=True)
class Drawing:
    """A negative of a sentence, for each seed."""

    setting: Setting
    source: Negative
    models: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The index, as it is called in messages."""
        return str(self.setting.index_of())

    def done(self) -> bool:
        """True if the index exists; the negatives are drawn each time, which takes no time."""
        return self.setting.index_of().exists()

    def do(self) -> int:
        """Build the index; returns exit code 0."""
        run = self._run(0)
        una_fast.build_index(
            sources(run),
            word_tokenizer=run.word_tokenizer,
            lowercase=run.lowercase,
            progress=True,
            **reading_arguments(vars(run)),
        ).save(run.index)
        return 0

    def scores(self) -> dict[int, dict[str, Any]]:
        """The negative of each seed; {} without an index."""
        return {seed: {"negative": self._negative(seed)} for seed in self.setting.seeds} if self.done() else {}

    def describe(self) -> str:
        """The work in words."""
        return f"build {self.name} of {', '.join(self.setting.corpus)}"

    def _negative(self, seed: int) -> str:
        run = self._run(seed)
        augmenter = una_fast.Augmenter(open_index(run, sources(run)), **arguments_of(una_fast.Augmenter, vars(run)))
        return augmenter.augment([self.source.sentence])[0]

    def _run(self, seed: int) -> Run:
        values = {**self.setting.base, "corpus": self.setting.corpus, "seed": seed, "seeds": ()}
        return Run(**values | {"index": str(self.setting.index_of())})
