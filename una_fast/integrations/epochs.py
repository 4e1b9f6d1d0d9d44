"""What all integrations share: the epoch of the draws in all processes of a machine, and checks of settings."""

from __future__ import annotations

import os
import tempfile
import warnings
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from una_fast.augment.counter_rng import SampleKey
from una_fast.errors import InputError, InputWarning
from una_fast.imports import naming_extras

if TYPE_CHECKING:
    from transformers import TrainerCallback

PASSES = 1.5  # over as many sentences as the index has; a sampler may repeat some in a single pass


def negative_names(n: int) -> list[str]:
    """The names of the columns of `n` negatives, as sentence-transformers' losses expect them.

    Raises:
        InputError: `n` is not an integer of at least 1.
    """
    if not isinstance(n, int) or n < 1:
        raise InputError(f"n={n!r}: give the number of negatives a sentence, an integer of at least 1")
    return ["negative"] if n == 1 else [f"negative_{number}" for number in range(1, n + 1)]


class SharedEpoch:
    """An epoch number in a memory-mapped file, which is removed with the object that made it.

    A copy that was forked, pickled or deep-copied reads what was written last, so the workers of a DataLoader see each
    new epoch, persistent workers too. A `multiprocessing.Value` cannot be used instead: it cannot be pickled outside of
    the start of a process, and datasets pickle their transform to compute its fingerprint.
    """

    def __init__(self, epoch: int = 0, path: Path | None = None):
        """With the `path` of another process's file, that epoch; a new one, `epoch`, where that process has ended."""
        mode: Literal["r+", "w+"] = "r+" if path is not None and path.exists() else "w+"
        if path is None or mode == "w+":
            descriptor, name = tempfile.mkstemp(prefix="una_fast-epoch-")
            os.close(descriptor)
            path = Path(name)
            weakref.finalize(self, _remove, path, os.getpid())
        self._path = path
        self._memory = np.memmap(path, dtype=np.uint64, mode=mode, shape=(3,))  # epoch, whether it moves, draws
        if mode == "w+":
            self.value = epoch

    @property
    def value(self) -> int:
        """The epoch, from 0."""
        return int(self._memory[0])

    @value.setter
    def value(self, epoch: int) -> None:
        self._memory[0] = SampleKey(epoch).epoch

    def expect_moves(self) -> None:
        """From now on `is_second_pass` is False: somebody moves the epoch, or has been told that nobody does."""
        self._memory[1] = 1

    def is_second_pass(self, n: int, n_documents: int) -> bool:
        """Whether with `n` more sentences a pass over `n_documents` is surely done; True once for all processes."""
        self._memory[2] += np.uint64(n)
        if self._memory[1] or self._memory[2] <= PASSES * n_documents:
            return False
        self.expect_moves()
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedEpoch, (self.value, self._path)


def _remove(path: Path, process: int) -> None:
    if os.getpid() == process:  # a forked child leaves the file to its parent
        path.unlink(missing_ok=True)


class DrawnByEpoch:
    """The base of transforms and collators that draw other negatives in each epoch; a trainer or a loop sets it.

    Raises:
        InputError: the index of `augmenter` has no folder, so that it would be pickled whole for every worker.
    """

    def __init__(self, augmenter: Any) -> None:
        if augmenter.index.path is None:
            raise InputError(
                "the index is not saved, and each worker would get a copy of the whole corpus: call index.save(FOLDER),"
                " and make the Augmenter from that index"
            )
        self.augmenter, self.epoch = augmenter, SharedEpoch()

    def set_epoch(self, epoch: int) -> None:
        """Draw the negatives of this epoch from now on, in all processes; for loops without a trainer.

        Call it before the epoch's first batch is asked for, since workers read ahead.
        """
        self.epoch.value = epoch
        self.epoch.expect_moves()

    def callback(self) -> TrainerCallback:
        """A `TrainerCallback` that sets the epoch to the trainer's before the epoch's first batch is read."""
        with naming_extras("integrations"):
            from transformers import TrainerCallback

        set_epoch = self.set_epoch
        self.epoch.expect_moves()

        class EpochCallback(TrainerCallback):
            """Counts epochs: for streamed data without a length `state.epoch` is the share of max_steps done."""

            next_epoch = 0

            def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                """A run that is resumed inside an epoch continues with that epoch's negatives."""
                self.next_epoch = int(state.epoch or 0)

            def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                set_epoch(self.next_epoch)
                self.next_epoch += 1

        return EpochCallback()

    def _note_drawn(self, n: int) -> None:
        """Warn where a second pass has the negatives of the first. n: sentences that are drawn now."""
        if self.epoch.is_second_pass(n, self.augmenter.index.n_documents):
            warnings.warn(
                "more sentences are drawn than the index has, so a second pass gets the same negatives, because nothing"
                f" moves the epoch: add {type(self).__name__}.callback() to the trainer's callbacks, or call"
                " set_epoch(EPOCH) before each epoch",
                InputWarning,
                stacklevel=3,
            )
