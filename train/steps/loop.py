"""The training loop of one rank: the order of steps, evaluations and saves, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass

from train.record.pointer import Progress
from train.steps.batches import BatchMaker
from train.steps.evaluations import Evaluations
from train.steps.prefetch import Prefetcher
from train.steps.saves import Saves
from train.steps.stop import FAILED, StopAgreement
from train.steps.telemetry import Telemetry
from train.steps.trainer import Trainer
from una_fast.errors import InputError


@dataclass(frozen=True)
class Outcome:
    """How the loop ended: "finished", "stopped" by signal `code`, or "failed" with a message."""

    status: str
    progress: Progress
    code: int = 0
    message: str = ""


@dataclass(frozen=True)
class Loop:
    """Takes the steps of a run from `progress` on. All ranks make the same calls in the same order."""

    trainer: Trainer
    make: BatchMaker
    progress: Progress
    evaluations: Evaluations
    saves: Saves
    telemetry: Telemetry
    stop: StopAgreement

    def __call__(self) -> Outcome:
        """Train until the end of the run, a signal or an error."""
        self.telemetry.begin()
        try:
            return self._train()
        except InputError as error:  # a NaN loss: every rank sees it at the same step
            return Outcome("failed", self.progress, message=str(error))
        finally:
            self.telemetry.close()
            self.saves.wait()

    def _train(self) -> Outcome:
        code = self._start_and_steps()
        if not code and self.evaluations.owed():
            self._evaluate()
        if code != FAILED:
            self._save(finished=not code)
        self.saves.wait()
        if code == FAILED or self.stop.now() == FAILED:
            return Outcome("failed", self.progress, message=str(self.stop.error or ""))
        return Outcome("stopped" if code else "finished", self.progress, code)

    def _start_and_steps(self) -> int:
        """Evaluate before the first step, while batches are made, and take the steps; returns the code of `_steps`."""
        batches = Prefetcher(self.trainer.plan, self.make, self.progress.step)
        try:
            if self.progress.step == 0 and self.evaluations.due():
                self._evaluate()  # the score that later ones are compared with
            return self._steps(batches)
        finally:
            batches.close()
            self.telemetry.batches_busy = batches.busy

    def _steps(self, batches: Prefetcher) -> int:
        """Take steps; returns 0 at the end of the run, or the code by which all ranks agreed to stop."""
        for batch in self.telemetry.timed(batches):
            loss = self.trainer.step(batch.to(self.trainer.ranks.device))
            self.progress.step = batch.step + 1
            self.telemetry.step(batch, loss, self.trainer.cosines)
            if self.evaluations.due():
                self._evaluate()
            if self.saves.due():
                self._save()
            self.saves.notice_failure()
            if code := self.stop.after_step():
                return code
        return 0

    def _evaluate(self) -> None:
        """Score the encoder, and keep it if it is the best so far."""
        self.telemetry.catch_up()
        evaluation = self.evaluations.take()
        if evaluation.best:
            self.saves.best({"step": evaluation.step, "stsb_dev": evaluation.score})
        self.telemetry.evaluation(evaluation)

    def _save(self, finished: bool = False) -> None:
        """Write last/; without dev pairs the newest encoder also counts as the best."""
        self.telemetry.catch_up()
        if not self.evaluations.wanted:
            self.saves.best({"step": self.progress.step})
        self.telemetry.flush()
        self.saves.last(finished)
