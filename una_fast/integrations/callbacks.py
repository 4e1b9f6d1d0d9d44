"""What a Trainer of transformers, or of sentence-transformers, tells of its progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from una_fast.extras import naming_extras

with naming_extras("integrations"):
    from transformers import TrainerCallback


class EpochCallback(TrainerCallback):
    """Tells `set_epoch` the trainer's epoch before the trainer reads the epoch's first batch."""

    def __init__(self, set_epoch: Callable[[int], None]):
        self._set_epoch = set_epoch
        self._next = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A run that goes on inside an epoch goes on with that epoch's negatives."""
        self._next = int(state.epoch or 0)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Epochs are counted: for streamed data without a length `state.epoch` is a part of max_steps."""
        self._set_epoch(self._next)
        self._next += 1
