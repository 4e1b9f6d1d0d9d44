"""The work of one rank, from joining the group to its outcome; the same for ranks of `--nproc` and of torchrun.

Before the first step the ranks of all machines make sure that none has failed, and that all have one job and one
starting point. Rank 0 writes run.json when the run starts and when it ends.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import torch.distributed as dist

from train.config.run import Run
from train.demo.demo import prepare_demo
from train.encoder.pretrained import quiet
from train.launch.corpus import make_index
from train.launch.job import Job, batch_maker
from train.launch.ranks import end_with_launcher
from train.launch.resolve import resolve_options
from train.loop.distributed import Ranks, StopAgreement, join_group, leave_group
from train.loop.loop import Loop, Outcome, Saves, dev_score
from train.loop.telemetry import Telemetry
from train.loop.trainer import Trainer
from train.record.best import NOTES, check_encoder
from train.record.folder import RUN, SUMMARY, OutputFolder, is_own, write_json
from train.record.machine import machine, peak_memory, versions
from train.record.pointer import Progress
from una_fast.augment.radius import resolve_radius
from una_fast.errors import InputError

T = TypeVar("T")
TRAINING = "training"  # the message of a rank to its launcher when it begins to take steps


def work(run: Run, started: Callable[[], None] = lambda: None) -> Outcome:
    """Train as one rank of the group that the environment describes. run: all options resolved, its index on the disk.

    started: called when this rank is ready to take steps; from then on it saves a checkpoint when a signal stops it.
    """
    quiet()
    ranks = join_group(run.device)
    try:
        with _own_folder(ranks, dataclasses.replace(run, resume=True)):  # the launcher has made it
            return _train(run, ranks, started)
    except InputError as error:  # returned, not raised: the launcher shows it as the user's error, not a rank's death
        return Outcome("failed", Progress(), message=str(error))
    finally:
        leave_group()


def rank_process(run: Run, send: Callable[[Any], None]) -> None:
    """`work` in a process of its own, which sends its launcher TRAINING and then its outcome."""
    send(work(run, lambda: send(TRAINING)))


def work_under_torchrun(run: Run) -> tuple[Run, Outcome]:
    """`work` in a process that torchrun started; the first rank of each machine makes the index for its ranks.

    Returns the run with all options resolved, and its outcome.
    """
    quiet()
    end_with_launcher()
    again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0  # torchrun starts all ranks again if one dies
    resume = run.resume or (again and is_own(Path(run.output), RUN))
    run = dataclasses.replace(resolve_options(run), nproc=int(os.environ["LOCAL_WORLD_SIZE"]), resume=resume)
    ranks = join_group(run.device)
    try:
        with _own_folder(ranks, run):
            run_on_all_ranks(ranks, lambda: _prepare(ranks, run))
            return run, _train(run, ranks, lambda: None)
    finally:
        leave_group()


def _own_folder(ranks: Ranks, run: Run) -> contextlib.AbstractContextManager[Any]:
    """The output folder, which rank 0 alone writes."""

    def own() -> contextlib.AbstractContextManager[Any]:
        if ranks.first:
            return OutputFolder(Path(run.output), RUN, run.resume, vars(run))
        return contextlib.nullcontext()

    return run_on_all_ranks(ranks, own)


def _prepare(ranks: Ranks, run: Run) -> None:
    if ranks.local_rank == 0:
        prepare_demo(run)
        make_index(run, print if ranks.first else lambda message: None)


def _train(run: Run, ranks: Ranks, started: Callable[[], None]) -> Outcome:
    job = run_on_all_ranks(ranks, lambda: _open(run, ranks))
    check_one_job(ranks, job.identity)
    job = with_start_of_rank_0(ranks, job)
    trainer, maker = Trainer(run, ranks, job.encoder, job.rows.plan(run), job.state), batch_maker(job)
    score = partial(dev_score, trainer, job.scorer, job.tokenizer) if job.scorer else None
    with contextlib.closing(StopAgreement(ranks)) as stop:
        telemetry = Telemetry(trainer, job.progress, stop)
        saves = Saves(trainer, job.tokenizer, job.identity, stop)
        loop = Loop(trainer, maker, job.progress, score, saves, telemetry, stop)
        started()
        outcome = loop.run()
    if ranks.first:
        summarise(job, outcome, telemetry)
    return outcome


def _open(run: Run, ranks: Ranks) -> Job:
    """Load the job of this rank; rank 0 then writes run.json with status "running"."""
    job = Job.load(run, ranks)
    if ranks.first:
        for name in NOTES:
            check_encoder(Path(run.output), name)
        announce(job)
    return job


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


def announce(job: Job) -> None:
    """Write the run.json of a run that begins, with status "running"."""
    write_json(Path(job.run.output) / SUMMARY, {"status": "running", **_about(job)})


def summarise(job: Job, outcome: Outcome, telemetry: Telemetry) -> None:
    """Write the run.json of a run that has ended; with --profile, also show where its time went."""
    progress, memory = outcome.progress, peak_memory()
    content = {
        "status": outcome.status,
        **_about(job),
        "progress": vars(progress),
        "scores": {"stsb_dev": progress.best_score, "stsb_dev_last": progress.last_score},
        "this_process": {**telemetry.times(), "peak_memory": memory},
    }
    write_json(Path(job.run.output) / SUMMARY, content)
    if job.run.profile:
        telemetry.say_profile()
        peak = ", ".join(f"{name} {size / 2**20:.0f} MiB" for name, size in memory.items())
        telemetry.say(f"peak memory of rank 0: {peak}")


def _about(job: Job) -> dict[str, Any]:
    """The content of run.json that does not depend on how the run ends."""
    return {
        "settings": vars(job.run),
        "resolved": {"radius": resolve_radius(job.run.radius, (job.other_index or job.index).n_terms, job.run.window)},
        "versions": versions(),
        "machine": machine(),
        "ranks": job.ranks.world,
        "corpus": {**job.rows.counts(), "sources": job.index.sources},
        **({"negatives_from": {"sources": job.other_index.sources}} if job.other_index else {}),
        "identity": job.identity,
    }
