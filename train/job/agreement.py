"""Checks before the first step, on all machines: no rank has failed, and all have one job and one starting point."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch.distributed as dist

from train.job.load import Job
from train.loop.distributed import Ranks
from una_fast.errors import InputError

T = TypeVar("T")


def run_on_all_ranks(ranks: Ranks, action: Callable[[], T]) -> T:
    """Run `action` on every rank; if one raises InputError, raise it on all, so that none waits for another."""
    result, error = None, None
    try:
        result = action()
    except InputError as caught:
        error = str(caught)
    for message in filter(None, _of_all(ranks, error)):
        raise InputError(message)
    return cast(T, result)


def check_one_job(ranks: Ranks, identity: dict[str, dict[str, Any]]) -> None:
    """Refuse machines that would train on different sentences, from different weights, or with different settings."""
    found = _of_all(ranks, identity)
    for rank, other in enumerate(found):
        for group, values in found[0].items():
            for name, first in values.items():
                if (value := other[group][name]) != first:
                    raise InputError(_difference(rank, group, name, value, first))


def with_start_of_rank_0(ranks: Ranks, job: Job) -> Job:
    """The job with the progress and state of rank 0: a machine whose --output is not shared has no checkpoint."""
    starts = _of_all(ranks, job.progress)
    if all(start == starts[0] for start in starts):
        return job
    sent = [(job.progress, job.state) if ranks.first else None]
    dist.broadcast_object_list(sent, src=0)
    progress, state = cast(Any, sent[0])
    return dataclasses.replace(job, progress=progress, state=state)


def _of_all(ranks: Ranks, value: T) -> list[T]:
    """The value that each rank gives, by rank."""
    found: list[Any] = [None] * ranks.world
    dist.all_gather_object(found, value)
    return found


def _difference(rank: int, group: str, name: str, value: object, first: object) -> str:
    if group == "corpus":
        return (
            f"rank {rank} has the index of fingerprint {value}, and rank 0 that of {first}: "
            "copy one folder to all machines, or build it on each from the same corpus"
        )
    if group == "settings":
        option = f"--{name.replace('_', '-')}"
        return f"rank {rank} has {option} {value}, and rank 0 {first}: give all machines the same options"
    return f"rank {rank} has a {group} whose {name} is {value}, and rank 0 {first}: give all machines the same {group}"
