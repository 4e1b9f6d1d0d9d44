"""How all ranks stop after the same step: at a signal, or because one of them cannot go on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from train.steps.ranks import Ranks
from train.steps.signals import handled
from una_fast.errors import InputError

FAILED = 1000  # stop code of a rank that cannot go on; smaller codes are signal numbers


class StopAgreement:
    """Lets all ranks stop after the same step, whichever of them got a signal or failed.

    At each step every rank contributes its code, and all get the highest. On a CPU they get it at once, since the ranks
    wait for each other at the end of a step anyway. On a GPU they get that of the step before: the reduction runs on
    the CPU while the step computes, so no rank waits for it.

    error: the first error of this rank inside `guard`, or None.
    """

    def __init__(self, ranks: Ranks) -> None:
        self.error: InputError | None = None
        self._code = 0
        self._world, self._late = ranks.world, ranks.device.type == "cuda"
        self._pending: tuple[Any, Tensor] | None = None
        self._handlers = contextlib.ExitStack()
        self._handlers.enter_context(handled(self._note))

    def _note(self, number: int) -> None:
        self._code = self._code or number

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """For work of rank 0 alone: an error in the with block is kept and stops all ranks, so none waits for it."""
        try:
            yield
        except (InputError, OSError) as error:
            self.error = self.error or InputError(str(error))
            self._code = FAILED

    def after_step(self) -> int:
        """The code that all ranks agreed on: 0 to go on, a signal's number, or FAILED."""
        if self._world == 1 or not self._late:
            return self.now()
        agreed = 0
        if self._pending:
            work, codes = self._pending
            work.wait()
            agreed = int(codes)
        codes = torch.tensor(self._code)
        self._pending = dist.all_reduce(codes, dist.ReduceOp.MAX, async_op=True), codes
        return agreed

    def now(self) -> int:
        """The highest code of all ranks at this moment."""
        codes = torch.tensor(self._code)
        if self._world > 1:
            dist.all_reduce(codes, dist.ReduceOp.MAX)
        return int(codes)

    def close(self) -> None:
        """Restore the previous signal handlers."""
        self._handlers.close()
