"""What a run saves: last/ to go on from, best/ to use; rank 0 writes both in the background."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from train.record.best import save_best
from train.record.checkpoint import CheckpointWriter
from train.record.pointer import Progress
from train.steps.stop import StopAgreement
from train.steps.trainer import Trainer


class Saves:
    """Saves the encoder and the state of a trainer; on ranks other than the first it writes nothing.

    A write that fails is an error of `stop`, after which all ranks stop.
    """

    def __init__(
        self, trainer: Trainer, progress: Progress, tokenizer: Any, identity: dict[str, Any], stop: StopAgreement
    ) -> None:
        self._trainer, self._progress, self._tokenizer, self._stop = trainer, progress, tokenizer, stop
        self._output = Path(trainer.run.output)
        first = trainer.ranks.first
        self._writer = CheckpointWriter(self._output, vars(trainer.run), identity) if first else None

    def due(self) -> bool:
        """True if last/ is to be written after the present step; after the last step, the end of the run writes it."""
        save_every = self._trainer.run.save_every
        assert save_every is not None
        step = self._progress.step
        return step % save_every == 0 and step != self._trainer.plan.n_steps

    def best(self, note: dict[str, Any]) -> None:
        """Write the encoder into best/, and `note`, which says where it comes from, into best/best.json."""
        if self._writer:
            encoder = self._trainer.encoder
            write = partial(save_best, self._output, encoder, self._tokenizer, note)
            with self._trainer.watch.phase("saving"), self._stop.guard():
                self._writer.save_best(encoder.backbone, write)

    def last(self, finished: bool = False) -> None:
        """Write last/; for a finished run without the optimiser's state, two thirds of it, because no step follows."""
        if self._writer:
            with self._trainer.watch.phase("saving"), self._stop.guard():
                state = self._trainer.state()
                if finished:
                    del state["optimizer"]
                self._writer.save(self._progress, state, "weights" if finished else "state")

    def notice_failure(self) -> None:
        """Stop all ranks if a write has failed meanwhile; does not wait for a write that is not finished."""
        if self._writer and self._writer.failed():
            self.wait()

    def wait(self) -> None:
        """Wait until all writes are on the disk."""
        if self._writer:
            with self._stop.guard():
                self._writer.wait()
