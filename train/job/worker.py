"""The work of one rank, from joining the group to its outcome; the same for ranks of `--nproc` and of torchrun."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from train.config.run import Run
from train.demo.demo import prepare_demo
from train.encoder.pretrained import quiet
from train.job.agreement import check_one_job, run_on_all_ranks, with_start_of_rank_0
from train.job.batch_maker import batch_maker
from train.job.load import Job
from train.job.material import make_index
from train.job.resolve import resolve_options
from train.job.summary import announce, summarise
from train.loop.distributed import Ranks, StopAgreement, end_with_launcher, join_group, leave_group
from train.loop.loop import Loop, Outcome, Saves, dev_score
from train.loop.telemetry import Telemetry
from train.loop.trainer import Trainer
from train.record.best import check_best
from train.record.folder import RUN, OutputFolder, is_own
from train.record.pointer import Progress
from una_fast.errors import InputError

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


def rank_process(run: Run, environment: dict[str, str], reply: Connection) -> None:
    """`work` in a process of its own, which sends its launcher TRAINING, then its outcome or the error that ends it."""
    end_with_launcher()
    os.environ.update(environment)
    try:
        reply.send(work(run, lambda: reply.send(TRAINING)))
    except Exception as error:
        reply.send(f"{type(error).__name__}: {error}".strip().splitlines()[-1])
        raise


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
    trainer, maker = Trainer(run, ranks, job.encoder, job.material.plan(run), job.state), batch_maker(job)
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
        check_best(Path(run.output))
        announce(job)
    return job
