"""What all integrations share: the epoch of the draws in all processes of a machine, and checks of settings."""

from __future__ import annotations

import os
import tempfile
import warnings
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from una_fast.augment.counter_rng import SampleKey
from una_fast.errors import InputError, InputWarning

if TYPE_CHECKING:
    from una_fast.integrations.callbacks import EpochCallback

PLACES = 256  # sentences that are remembered to notice a second pass over the data
FEWEST = 32  # remembered sentences; with fewer, looking twice at some rows would be taken for a pass


def negative_names(n: int) -> list[str]:
    """The names of the columns of `n` negatives, as sentence-transformers' losses expect them.

    Raises:
        InputError: `n` is not an integer of at least 1.
    """
    if not isinstance(n, int) or n < 1:
        raise InputError(f"n={n!r}: give the number of negatives a sentence, an integer of at least 1")
    return ["negative"] if n == 1 else [f"negative_{number}" for number in range(1, n + 1)]


def check_saved(augmenter: Any) -> None:
    """Raise for an augmenter that would be pickled with its whole corpus for every worker.

    Raises:
        InputError: its index has no folder.
    """
    if augmenter.index.path is None:
        raise InputError(
            "the index is not saved, and each worker would get a copy of the whole corpus: call index.save(FOLDER), "
            "and make the Augmenter from that index"
        )


class SharedEpoch:
    """An epoch number in a memory-mapped file of 4 KiB, which is removed with the object that made it.

    A copy that was forked, pickled or deep-copied reads what was written last, so the workers of a DataLoader see each
    new epoch, persistent workers too. A `multiprocessing.Value` cannot be used instead: it cannot be pickled outside of
    the start of a process, and datasets pickle their transform to compute its fingerprint.
    """

    def __init__(self, epoch: int = 0, path: Path | None = None):
        """With the `path` of another process's file, that epoch; a new one, `epoch`, where that process has ended."""
        is_new = path is None or not path.exists()
        if path is None or is_new:
            descriptor, name = tempfile.mkstemp(prefix="una_fast-epoch-")
            with os.fdopen(descriptor, "wb") as file:
                file.write(bytes(8 * (2 + 2 * PLACES)))
            path = Path(name)
            weakref.finalize(self, _remove, path, os.getpid())
        self._path = path
        self._memory = np.memmap(path, dtype=np.uint64, mode="r+", shape=(2 + 2 * PLACES,))
        if is_new:
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

    def is_second_pass(self, keys: Sequence[int] | np.ndarray) -> bool:
        """Whether most sentences come for the second time at an epoch that nobody moves; True once for all processes.

        keys: a 64-bit hash or number for each sentence that is drawn. PLACES of them are remembered, one for each
        remainder, so a corpus with some sentences twice is not taken for two passes.
        """
        if self._memory[1]:
            return False
        numbers = np.asarray(keys, dtype=np.uint64) + np.uint64(1)  # 0 is a free place
        places = (numbers % np.uint64(PLACES)).astype(np.int64)
        remembered, again = self._memory[2 : 2 + PLACES], self._memory[2 + PLACES :]
        again[places[remembered[places] == numbers]] = 1
        free = remembered[places] == 0
        remembered[places[free]] = numbers[free]
        if not 2 * int(again.sum()) > np.count_nonzero(remembered) >= FEWEST:
            return False
        self.expect_moves()
        return True

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedEpoch:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedEpoch, (self.value, self._path)


class DrawnByEpoch:
    """The base of transforms and collators that draw other negatives in each epoch; a trainer or a loop sets it."""

    def __init__(self) -> None:
        self.epoch = SharedEpoch()

    def set_epoch(self, epoch: int) -> None:
        """Draw the negatives of this epoch from now on, in all processes; for loops without a trainer.

        Call it before the epoch's first batch is asked for, since workers read ahead.
        """
        self.epoch.value = epoch
        self.epoch.expect_moves()

    def _note_drawn(self, keys: Sequence[int] | np.ndarray) -> None:
        """Warn where a second pass has the negatives of the first. keys: a 64-bit hash or number of each sentence."""
        if self.epoch.is_second_pass(keys):
            warnings.warn(
                "the same negatives are drawn a second time, because nothing moves the epoch: add "
                f"{type(self).__name__}.callback() to the trainer's callbacks, or call set_epoch(EPOCH) before each "
                "epoch",
                InputWarning,
                stacklevel=3,
            )

    def callback(self) -> EpochCallback:
        """A `TrainerCallback` that sets the epoch to the trainer's at the start of each."""
        from una_fast.integrations.callbacks import EpochCallback

        self.epoch.expect_moves()
        return EpochCallback(self.set_epoch)


def _remove(path: Path, process: int) -> None:
    if os.getpid() == process:  # a forked child leaves the file to its parent
        path.unlink(missing_ok=True)
