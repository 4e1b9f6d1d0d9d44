"""The ranks of a training: how a process joins them, gathers embeddings, and stops after the same step as the others.

Every rank computes the loss of the whole step, and propagates it back to its own rows only. The sum of the ranks'
gradients is what one process would compute. DistributedDataParallel averages instead, so the trainer multiplies the
loss by the number of ranks.
"""

from __future__ import annotations

import contextlib
import os
import signal
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from train.config import Run
from train.signals import Stopped, tell_user
from una_fast.errors import InputError
from una_fast.parallel import n_cores

FAILED = 1000  # code of a rank that failed; smaller codes are signal numbers
# The longest waits are for rank 0: it saves (4 GB of BERT-large at 100 MB/s take 40 s), and under torchrun it indexes
# the corpus (35 minutes for 1,200 million sentences).
TIMEOUT = timedelta(hours=2)

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """One rank of `world`, and its device."""

    rank: int
    world: int
    local_rank: int  # its number on its machine
    device: torch.device

    @property
    def first(self) -> bool:
        """True on the one rank that writes files and shows progress."""
        return self.rank == 0


def join_group(device: str) -> Ranks:
    """Join the group of the launcher's environment variables: NCCL on GPUs, gloo on the CPU; one rank needs no group.

    device: "cuda" or "cpu". LOCAL_RANK numbers the visible GPUs; a rank chooses its own before it allocates anything.
    """
    rank, local = int(os.environ.get("RANK", 0)), int(os.environ.get("LOCAL_RANK", 0))
    world, local_world = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    ranks = Ranks(rank, world, local, torch.device("cuda", local) if device == "cuda" else torch.device("cpu"))
    if device == "cuda":
        torch.cuda.set_device(ranks.device)
    else:
        torch.set_num_threads(max(1, n_cores(None) // local_world))
    if world > 1:
        backend, gpu = ("cpu:gloo,cuda:nccl", ranks.device) if device == "cuda" else ("gloo", None)
        dist.init_process_group(backend, device_id=gpu, timeout=TIMEOUT)
    return ranks


def set_numerics(run: Run, device: torch.device) -> None:
    """Set how a GPU rounds in this process.

    With --deterministic it adds in the same order every time, so that --resume is bit-identical. Products that
    --precision bf16 or fp16 leaves in fp32 are TF32.
    """
    if device.type != "cuda":
        return
    if run.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # PyTorch asks for it; read at the first product
    torch.use_deterministic_algorithms(run.deterministic)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # not needed, and slow
    torch.set_float32_matmul_precision("highest" if run.precision == "fp32" else "high")  # high: TF32


def rank_share(n: int, rank: int, world: int) -> slice:
    """A rank's consecutive share of n rows; shares differ by one row at most, and may be empty."""
    return slice(n * rank // world, n * (rank + 1) // world)


def of_all_ranks(ranks: Ranks, value: T) -> list[T]:
    """The values of all ranks, by rank."""
    values: list[Any] = [value] * ranks.world
    if ranks.world > 1:
        dist.all_gather_object(values, value)
    return values


def gather(own: Tensor, n: int, ranks: Ranks) -> Tensor:
    """All n rows (n, ...) from the `rank_share` of each rank; gradients propagate into `own` only."""
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
    """`model`, with gradients averaged over the ranks if there are several."""
    if ranks.world == 1:
        return model
    device_ids = [ranks.local_rank] if ranks.device.type == "cuda" else None
    with warnings.catch_warnings():  # torch 2.13 renames broadcast_buffers, and torch 2.7 knows no other name
        warnings.simplefilter("ignore", FutureWarning)
        return DistributedDataParallel(
            model, device_ids=device_ids, broadcast_buffers=False, gradient_as_bucket_view=True
        )


class StopConsensus:
    """Lets all ranks stop after the same step when one of them gets a signal or fails.

    After each step the ranks exchange their codes over gloo, and the highest counts.
    error: the first error of this rank inside `guard`, or None.
    """

    def __init__(self, ranks: Ranks) -> None:
        self.error: InputError | None = None
        self._ranks, self._code = ranks, 0

    def note(self, number: int, frame: Any = None) -> None:
        """Handle a signal: stop all ranks with its number as code."""
        if self._ranks.first and not self._code:  # a signal to the process group comes twice
            tell_user(f"{signal.Signals(number).name}: the run stops after this step; Ctrl-C ends it at once")
        self._code = self._code or number

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """For work of only one rank, in any thread: store an error of the with block, and stop all ranks."""
        try:
            yield
        except (InputError, OSError) as error:
            self.error = self.error or InputError(str(error))
            self._code = FAILED

    def check(self) -> None:
        """Raise the same on all ranks: InputError if one of them failed, Stopped if one got a signal."""
        code = torch.tensor(self._code)
        if self._ranks.world > 1:
            dist.all_reduce(code, dist.ReduceOp.MAX)
        if code == FAILED:
            raise InputError(str(self.error or ""))
        if code:
            raise Stopped(int(code))
