"""What ranks exchange: embeddings, gradients, small objects, errors, and the decision to stop after the same step.

Every rank computes the loss of the whole step, but backpropagates only to its own rows. The sum of the ranks' gradients
equals the gradient that one process would compute. DistributedDataParallel averages instead, so the trainer multiplies
the loss by the number of ranks.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from train.signals import Stopped, tell_user
from una_fast.errors import InputError
from una_fast.parallel import n_cores

FAILED = 1000  # code of a rank that failed; smaller codes are signal numbers
# The other ranks wait longest while rank 0 saves (40 s for the 4 GB of BERT-large at 100 MB/s) and, under torchrun,
# while it indexes the corpus (35 minutes for 1,200 million sentences).
TIMEOUT = timedelta(hours=2)

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


def gather_objects(ranks: Ranks, value: T) -> list[T]:
    """Return the values of all ranks in rank order."""
    values: list[Any] = [value] * ranks.world
    if ranks.world > 1:
        dist.all_gather_object(values, value)
    return values


def from_first(ranks: Ranks, value: T) -> T:
    """Return the value of rank 0."""
    values = [value]
    if ranks.world > 1:
        dist.broadcast_object_list(values)
    return values[0]


@contextmanager
def raise_on_all_ranks(ranks: Ranks) -> Iterator[None]:
    """If a rank raises InputError or OSError in the with block, raise InputError on all ranks, so that none waits."""
    message = ""
    try:
        yield
    except (InputError, OSError) as error:
        message = str(error)
    if first := next(filter(None, gather_objects(ranks, message)), ""):
        raise InputError(first)


def gather(own: Tensor, n: int, ranks: Ranks) -> Tensor:
    """Concatenate the rows of all ranks, n in total, (n, ...). Gradients flow only into `own`, this rank's rows."""
    if ranks.world == 1:
        return own
    shares = [rank_share(n, rank, ranks.world) for rank in range(ranks.world)]
    sizes = [share.stop - share.start for share in shares]
    padded = own.new_zeros(max(sizes), *own.shape[1:])  # collectives need equal sizes
    padded[: len(own)] = own.detach()
    gathered = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(gathered, padded)
    rows = [part[:size] for part, size in zip(gathered, sizes, strict=True)]
    rows[ranks.rank] = own
    return torch.cat(rows)


def averaging_gradients(model: nn.Module, ranks: Ranks) -> nn.Module:
    """Wrap `model` so that several ranks average its gradients. Return it unchanged for a single rank."""
    if ranks.world == 1:
        return model
    device_ids = [ranks.local_rank] if ranks.device.type == "cuda" else None
    with warnings.catch_warnings():  # torch 2.13 renames broadcast_buffers; torch 2.7 lacks the new name
        warnings.simplefilter("ignore", FutureWarning)
        return DistributedDataParallel(
            model, device_ids=device_ids, broadcast_buffers=False, gradient_as_bucket_view=True
        )


class StopConsensus:
    """Lets all ranks stop after the same step when one of them gets a signal or fails."""

    def __init__(self, ranks: Ranks) -> None:
        self.error: InputError | None = None  # the first one that was raised inside `guard` on this rank
        self._ranks, self._code = ranks, 0  # 0, the number of a signal, or FAILED; all ranks act on the highest code

    def note(self, number: int, frame: Any = None) -> None:
        """Handle a signal by making all ranks stop at the next `check`."""
        if self._ranks.first and not self._code:  # a signal to the process group arrives twice
            tell_user(f"{signal.Signals(number).name}: the run stops after this step; Ctrl-C ends it at once")
        self._code = self._code or number

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Catch InputError and OSError in the with block, and make all ranks stop at the next `check`."""
        try:
            yield
        except (InputError, OSError) as error:
            self.error = self.error or InputError(str(error))
            self._code = FAILED

    def check(self) -> None:
        """Raise InputError on all ranks if one of them failed, or Stopped if one of them got a signal."""
        code = torch.tensor(self._code)  # on the CPU, so that gloo sends it and no GPU waits
        if self._ranks.world > 1:
            dist.all_reduce(code, dist.ReduceOp.MAX)
        if code == FAILED:
            raise InputError(str(self.error or ""))
        if code:
            raise Stopped(int(code))
