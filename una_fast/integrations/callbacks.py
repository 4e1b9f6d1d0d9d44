"""A callback by which a Trainer of transformers or sentence-transformers sets the epoch of the draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from una_fast.imports import naming_extras

with naming_extras("integrations"):
    from transformers import TrainerCallback


class EpochCallback(TrainerCallback):
    """Calls `set_epoch` with the trainer's epoch, before the trainer reads the epoch's first batch."""

    def __init__(self, set_epoch: Callable[[int], None]):
        self._set_epoch = set_epoch
        self._next = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A run that is resumed inside an epoch continues with that epoch's negatives."""
        self._next = int(state.epoch or 0)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Epochs are counted here: for streamed data without a length `state.epoch` is the share of max_steps done."""
        self._set_epoch(self._next)
        self._next += 1
