"""The epoch and the draw set of a call. The seed belongs to the augmentation, the row to the text."""

from __future__ import annotations

import operator
from dataclasses import dataclass

from una_fast.errors import InputError

LIMIT = 2**64


@dataclass(frozen=True)
class DrawSet:
    """Draw set `number` of an epoch; both are integers from 0 to 2**64 - 1.

    Raises:
        InputError: another value.

    """

    epoch: int = 0
    number: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epoch", _checked("epoch", self.epoch, "epochs"))
        object.__setattr__(self, "number", _checked("draw_set", self.number, "sets of draws"))


def _checked(name: str, value: int, what: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name}={value!r}: give an integer") from None
    if not 0 <= number < LIMIT:
        raise InputError(f"{name}={value}: {what} count from 0 to 2**64 - 1")
    return number
