"""What all integrations share: the names of the views, and the epoch of the draws in all processes of a machine."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

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


class DrawnByEpoch:
    """The base of transforms and collators that draw other negatives in each epoch; a trainer or a loop sets it.

    has_positive: whether there is a view "positive"; n: negatives a sentence. views: the names of all views, in order.

    Raises:
        InputError: the index of `augmenter` has no folder, so that it would be pickled whole for every worker, or `n`
            is below 1.
    """

    def __init__(self, augmenter: Any, has_positive: bool, n: int) -> None:
        with naming_extras("integrations"):
            import torch

        if augmenter.index.path is None:
            raise InputError(
                "the index is not saved, and each worker would get a copy of the whole corpus: call index.save(FOLDER),"
                " and make the Augmenter from that index"
            )
        self.augmenter, self.negatives = augmenter, negative_names(n)
        self.views = ["anchor", *["positive"] * has_positive, *self.negatives]
        # The epoch, 1 if somebody moves it, and the sentences drawn so far. It is shared with the workers of a
        # DataLoader, forked or spawned, so that persistent ones see each new epoch.
        self._shared = torch.zeros(3, dtype=torch.int64).share_memory_()

    def __repr__(self) -> str:
        name = f"{type(self).__module__}.{type(self).__name__}"
        return f"<{name} of {self.augmenter!r}: views {', '.join(self.views)}, epoch={self.epoch}>"

    @property
    def epoch(self) -> int:
        """The epoch of the draws, from 0."""
        return int(self._shared[0])

    def set_epoch(self, epoch: int) -> None:
        """Draw the negatives of this epoch from now on, in all workers; for loops without a trainer.

        Call it before the epoch's first batch is asked for, since workers read ahead.
        """
        self._shared[0] = SampleKey(epoch).epoch
        self._shared[1] = 1

    def callback(self) -> TrainerCallback:
        """A `TrainerCallback` that sets the epoch to the trainer's before the epoch's first batch is read."""
        with naming_extras("integrations"):
            from transformers import TrainerCallback

        set_epoch = self.set_epoch
        set_epoch(self.epoch)

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

    def _draws(self, view: str) -> dict[str, int]:
        """The arguments of the augmenter that draw this view, a negative."""
        return {"epoch": self.epoch, "sample_index": self.negatives.index(view)}

    def _note_drawn(self, n: int) -> None:
        """Warn, once, where a second pass has the negatives of the first. n: sentences that are drawn now."""
        self._shared[2] += n
        if not self._shared[1] and self._shared[2] > PASSES * self.augmenter.index.n_documents:
            self._shared[1] = 1
            warnings.warn(
                "more sentences are drawn than the index has, so a second pass gets the same negatives, because nothing"
                f" moves the epoch: add {type(self).__name__}.callback() to the trainer's callbacks, or call"
                " set_epoch(EPOCH) before each epoch",
                InputWarning,
                stacklevel=3,
            )
