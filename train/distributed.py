"""What ranks exchange: embeddings, gradients, small objects, and the decision to stop after the same step.

Every rank computes the loss of the whole step, but backpropagates only to its own rows. The sum of the ranks' gradients
equals the gradient that one process would compute.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from train.messages import tell_user
from train.signals import Stopped
from una_fast.errors import InputError
from una_fast.parallel import n_cores

# The other ranks wait longest while rank 0 saves (40 s for the 4 GB of BERT-large at 100 MB/s) and, under torchrun,
# while it indexes the corpus (35 minutes for 1,200 million sentences).
TIMEOUT = timedelta(hours=2)

# makes a collective call of a step; while the step is captured as CUDA graphs, keeps the call for the replays instead
EXCHANGE: ContextVar[Callable[[Callable[[], Any]], Any]] = ContextVar("EXCHANGE", default=lambda call: call())

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """The place of this process among the ranks of a run."""

    rank: int
    world: int  # number of ranks on all machines
    local_rank: int  # index of this rank among the ranks of its machine
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which writes files and shows progress."""
        return self.rank == 0


def join_group(device: str) -> Ranks:
    """Join the process group that torchrun's environment variables describe. device: "cuda" or "cpu"."""
    rank, local = int(os.environ.get("RANK", 0)), int(os.environ.get("LOCAL_RANK", 0))
    world, local_world = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    ranks = Ranks(rank, world, local, torch.device("cuda", local) if device == "cuda" else torch.device("cpu"))
    if device == "cuda":
        torch.cuda.set_device(ranks.device)  # before anything is allocated
    else:
        torch.set_num_threads(max(1, n_cores(None) // local_world))
    if world > 1:
        backend, gpu = ("cpu:gloo,cuda:nccl", ranks.device) if device == "cuda" else ("gloo", None)
        dist.init_process_group(backend, device_id=gpu, timeout=TIMEOUT)
    return ranks


@contextmanager
def process_group(device: str) -> Iterator[Ranks]:
    """Join the process group for the with block. Stay in it after an error, as the other ranks may never leave it."""
    try:
        yield join_group(device)
    finally:
        if dist.is_initialized() and sys.exc_info()[0] in (None, Stopped):
            dist.destroy_process_group()
            torch.set_num_threads(n_cores(None))  # for rank 0, which continues after the others


def set_numerics(device: torch.device, precision: str, deterministic: bool) -> None:
    """Set the determinism and precision of a GPU's arithmetic in this process. precision: a value of --precision."""
    if device.type != "cuda":
        return
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # PyTorch requires it before the first product
    torch.use_deterministic_algorithms(deterministic)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # not needed, and slow
    torch.set_float32_matmul_precision("highest" if precision == "fp32" else "high")  # high: TF32 outside autocast


def rank_share(n: int, rank: int, world: int) -> slice:
    """Return the slice of n rows that a rank works on. The slices' lengths differ by at most one, and may be 0."""
    return slice(n * rank // world, n * (rank + 1) // world)


def from_first(ranks: Ranks, value: T) -> T:
    """Return the value of rank 0."""
    values = [value]
    if ranks.world > 1:
        dist.broadcast_object_list(values)
    return values[0]


def wait_for_all(ranks: Ranks) -> None:
    """Wait until every rank has called this function."""
    if ranks.world > 1:
        dist.all_reduce(torch.zeros(1))  # on the CPU, so that gloo sends it


def sum_over_ranks(tensor: Tensor) -> None:
    """Replace `tensor` by its sum over the ranks."""
    EXCHANGE.get()(partial(dist.all_reduce, tensor))


def gather(own: Tensor, n: int, ranks: Ranks) -> Tensor:
    """Concatenate the rows of all ranks, n in total, (n, ...). Gradients flow only into `own`, this rank's rows."""
    if ranks.world == 1:
        return own
    share = rank_share(n, ranks.rank, ranks.world)
    rows = own.new_zeros(n, *own.shape[1:])
    rows[share] = own.detach()
    sum_over_ranks(rows)  # exact, because all but one of the summed values are 0
    return torch.cat([rows[: share.start], own, rows[share.stop :]])


class GradientSum:
    """Sums the gradients of all ranks with one collective call, in a buffer that every step and every graph uses."""

    def __init__(self, model: nn.Module, ranks: Ranks) -> None:
        self._weights = [weight for weight in model.parameters() if weight.requires_grad and ranks.world > 1]
        sizes = [weight.numel() for weight in self._weights]
        self._buffer = torch.zeros(sum(sizes), device=ranks.device)
        self._sums = [part.view_as(w) for part, w in zip(self._buffer.split(sizes), self._weights, strict=True)]

    def __call__(self) -> None:
        """Replace the gradient of each weight by its sum over the ranks. Do nothing for a single rank."""
        if self._weights:
            torch._foreach_copy_(self._sums, [weight.grad for weight in self._weights])  # type: ignore[misc]
            sum_over_ranks(self._buffer)
            for weight, total in zip(self._weights, self._sums, strict=True):
                weight.grad = total


class StopConsensus:
    """Lets all ranks stop after the same step when one of them gets a signal. Keeps an error until then."""

    def __init__(self, ranks: Ranks) -> None:
        self.error: InputError | None = None  # the first one that was raised inside `guard` on this rank
        self._ranks, self._number = ranks, 0  # of a signal; all ranks act on the highest one

    def note(self, number: int, frame: Any = None) -> None:
        """Handle a signal by making all ranks stop at the next `check`."""
        if self._ranks.first and not self._number:  # a signal to the process group arrives twice
            tell_user(f"{signal.Signals(number).name}: the run stops after this step; Ctrl-C ends it at once")
        self._number = self._number or number

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Catch InputError and OSError in the with block. The next `check` on this rank raises the first one."""
        try:
            yield
        except (InputError, OSError) as error:
            self.error = self.error or InputError(str(error))

    def check(self) -> None:
        """Raise the error of `guard`, which ends this rank, or Stopped if any rank got a signal."""
        if self.error:
            raise self.error
        number = torch.tensor(self._number)  # on the CPU, so that gloo sends it and no GPU waits
        if self._ranks.world > 1:
            dist.all_reduce(number, dist.ReduceOp.MAX)
        if number:
            raise Stopped(int(number))
