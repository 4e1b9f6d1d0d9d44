"""The epoch of the draws, shared by all processes of a machine, however they were started."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from una_fast.augment.draw_set import DrawSet

if TYPE_CHECKING:
    from una_fast.integrations.callbacks import EpochCallback


class SharedEpoch:
    """An epoch number in a memory-mapped file of 8 bytes, which is removed with the object that made it.

    A copy that was forked, pickled or deep-copied reads what was written last, so the workers of a DataLoader see each
    new epoch, persistent workers too. A `multiprocessing.Value` cannot be used instead: it cannot be pickled outside of
    the start of a process, and datasets pickle their transform to compute its fingerprint.
    """

    def __init__(self, epoch: int = 0):
        descriptor, name = tempfile.mkstemp(prefix="una_fast-epoch-")
        with os.fdopen(descriptor, "wb") as file:
            file.write(bytes(8))
        self._open(Path(name))
        self.value = epoch
        weakref.finalize(self, _remove, Path(name), os.getpid())

    def _open(self, path: Path) -> None:
        self._path = path
        self._memory = np.memmap(path, dtype=np.uint64, mode="r+", shape=(1,))

    @property
    def value(self) -> int:
        """The epoch, from 0."""
        return int(self._memory[0])

    @value.setter
    def value(self, epoch: int) -> None:
        self._memory[0] = DrawSet(epoch).epoch

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedEpoch:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _attach, (self._path, self.value)


class DrawnByEpoch:
    """The base of transforms and collators that draw other negatives in each epoch; a trainer or a loop sets it."""

    def __init__(self) -> None:
        self.epoch = SharedEpoch()

    def set_epoch(self, epoch: int) -> None:
        """Draw the negatives of this epoch from now on, in all processes; for loops without a trainer.

        Call it before the epoch's first batch is asked for, since workers read ahead.
        """
        self.epoch.value = epoch

    def callback(self) -> EpochCallback:
        """A `TrainerCallback` that sets the epoch to the trainer's at the start of each."""
        from una_fast.integrations.callbacks import EpochCallback

        return EpochCallback(self.set_epoch)


def _attach(path: Path, epoch: int) -> SharedEpoch:
    """The epoch of another process, or where that one has ended, a new one that begins with `epoch`."""
    if not path.exists():
        return SharedEpoch(epoch)
    shared = SharedEpoch.__new__(SharedEpoch)
    shared._open(path)
    return shared


def _remove(path: Path, process: int) -> None:
    if os.getpid() == process:  # a forked child leaves the file to its parent
        path.unlink(missing_ok=True)
