"""`--dry-run`: what would run, and about how long it would take here, from finished runs or from a few timed steps."""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from train.config.run import Run
from train.evaluation.tasks.registry import TASKS, suite
from train.evaluation.tasks.sts import load_dev
from train.generation.lines import is_blank, sentences
from train.job.launch import launch
from train.job.resolve import resolve_options
from train.job.seeds import of_seed
from train.record.folder import PAPER_RUNS, is_finished
from train.report.records import RunRecord, read_run
from train.reproduction.plan import Plan, Work, missing_models
from train.reproduction.training import Training
from train.steps.signals import tell_user
from una_fast.errors import InputError, counted

TIMED_STEPS = 6  # at alpha 5 the first and the last have negatives; the first is slow and not counted


def say_plan(plan: Plan) -> None:
    """Print which works are done, which would run, and how long that would take."""
    print(f"table {plan.setting.request.table.name}: {counted(len(plan.rows), 'row')}")
    for work in plan.works:
        print(f"{'there' if work.done() else 'to do'}  {work.describe()}")
    for note in plan.notes:
        print(f"note: {note}")
    left = [work for work in plan.works if not work.done()]
    ready = [work for work in left if _is_ready(plan, work)]
    if len(ready) < len(left):
        print(f"missing: {missing_models(left, plan.trust)}")
    print(_in_words(plan, left, [work for work in ready if isinstance(work, Training)]))


def _is_ready(plan: Plan, work: Work) -> bool:
    return missing_models([work], plan.trust) is None


def _in_words(plan: Plan, left: Sequence[Work], timed: Sequence[Training]) -> str:
    others = len(left) - len(timed)
    untimed = f"; {counted(others, 'line')} above not timed" if others else ""
    if not timed:
        return f"nothing that could be timed is left{untimed}" if left else "nothing is left to do"
    clock = Clock(plan)
    seconds = sum(clock.seconds(work) for work in timed)
    return f"about {_duration(seconds)} of training here ({clock.source}){untimed}"


def _duration(seconds: float) -> str:
    """A duration in words, in the largest unit of which it has at least one."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} seconds"


@dataclass(frozen=True)
class Speed:
    """Seconds per sentence on steps without and with negatives, and seconds of one evaluation on the dev pairs."""

    plain: float
    negatives: float
    evaluation: float


@dataclass
class Clock:
    """Estimates how long runs take on this machine. source: what the estimate is made from, for the user."""

    plan: Plan
    source: str = ""

    def __post_init__(self) -> None:
        self._speeds: dict[str, Speed] = {}  # by encoder

    def seconds(self, work: Training) -> float:
        """Seconds for the seeds of a work that are left."""
        left = [seed for seed in work.seeds if not work.seed_done(seed)]
        run = resolve_options(dataclasses.replace(of_seed(work.run, left[0]), evaluate=""))
        if run.model not in self._speeds:
            self._speeds[run.model] = self._found(run) or self._timed(run)
        speed = self._speeds[run.model]
        per_epoch = -(-self.n_sentences // run.batch_size)
        steps = min(per_epoch * run.epochs, run.max_steps or per_epoch * run.epochs)
        with_negatives = -(-steps // run.alpha) if run.augment != "none" and run.alpha else 0
        trained = run.batch_size * ((steps - with_negatives) * speed.plain + with_negatives * speed.negatives)
        evaluations = (
            1 + -(-steps // run.eval_every) + (self._test_pairs / len(load_dev(run.dev)) if work.scored else 0)
        )
        return len(left) * (trained + evaluations * speed.evaluation)

    @cached_property
    def n_sentences(self) -> int:
        """Sentences of the corpus that are not blank."""
        column = self.plan.setting.request.given.get("column", "text")
        return sum(not is_blank(text) for _, text in sentences(self.plan.setting.corpus, column))

    @property
    def _test_pairs(self) -> int:
        return sum(TASKS[name].sizes["test"] for name in suite("sts"))

    def _found(self, run: Run) -> Speed | None:
        """The speed of a finished run of the same encoder in the folder."""
        for path in sorted((self.plan.setting.output / PAPER_RUNS).glob("*/seed-*")):
            if is_finished(path) and (record := read_run(path)).settings.get("model") == run.model:
                self.source = f"by {path.relative_to(self.plan.setting.output)}, which is finished"
                return speed_of(record)
        return None

    def _timed(self, run: Run) -> Speed:
        """The speed of TIMED_STEPS steps on the first sentences of the corpus, in a temporary folder."""
        self.source = f"by {TIMED_STEPS} timed steps of each encoder"
        column = self.plan.setting.request.given.get("column", "text")
        texts = (text for _, text in sentences(self.plan.setting.corpus, column) if not is_blank(text))
        with tempfile.TemporaryDirectory() as name:
            corpus = Path(name) / "corpus.txt"
            corpus.write_text("\n".join(islice(texts, TIMED_STEPS * run.batch_size)) + "\n", encoding="utf-8")
            changes: dict[str, Any] = {
                **{"corpus": (str(corpus),), "paraphrases": "", "index": "", "output": f"{name}/run", "evaluate": ""},
                **{"augment": "una", "alpha": TIMED_STEPS - 1, "noise": "none", "positives": "same", "synonyms": ""},
                **{"max_steps": TIMED_STEPS, "epochs": TIMED_STEPS, "resume": False},
            }
            trial = dataclasses.replace(run, **changes)
            tell_user(f"timing {TIMED_STEPS} steps of {run.model}")
            if launch(trial):
                raise InputError(f"the timed steps of {run.model} failed: train.ddp says more")
            return speed_of(read_run(Path(name) / "run"))


def speed_of(record: RunRecord) -> Speed:
    """The speed of a run, without its first step unless that is the only one."""
    steps = record.steps[1:] or record.steps
    plain = [1 / step.sentences_per_second for step in steps if not step.negatives]
    doubled = [1 / step.sentences_per_second for step in steps if step.negatives]
    process = record.summary.get("this_process", {})
    seconds = process.get("seconds", 0.0) * process.get("share_of_time", {}).get("evaluation", 0.0)
    usual = statistics.median(plain or doubled)
    return Speed(usual, statistics.median(doubled) if doubled else 1.5 * usual, seconds / max(1, len(record.dev)))
