"""Carries out a run: checks it, makes its index, trains on all ranks, scores best/ and returns the exit code.

`launch` is the command: one rank trains in its process, several in processes of their own. `join_torchrun` is the same
in a process that torchrun started. `train`, the work of a rank, is the same for all of them: it joins the group, opens
the job and takes the steps.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import torch
import torch.distributed as dist

from train.config.run import Run
from train.encoder.pretrained import quiet
from train.launch.finish import finish
from train.launch.job import Indexes, Job, make_indexes
from train.launch.memory import full_memory_named, warn_of_memory
from train.launch.ranks import RankDiedError, end_with_launcher, work_on_ranks
from train.launch.resolve import resolve_options
from train.loop.distributed import (
    FAILED,
    Ranks,
    StopConsensus,
    join_group,
    of_all_ranks,
    set_numerics,
)
from train.loop.loop import Loop, Outcome, Saves
from train.loop.telemetry import Telemetry
from train.loop.trainer import Trainer
from train.record.checkpoint import Progress, check_resumed, first_difference, flags_of
from train.record.folder import (
    BEST,
    DEV,
    DEV_LAST,
    POINTER,
    RUN,
    SUMMARY,
    dev_name,
    is_finished,
    is_own,
    old_names,
    output_folder,
    read_json,
    read_object,
)
from train.record.metrics import peak_memory
from train.signals import Stopped, end_at_once, handled, raise_stopped, stop_then_end, tell_stopping, tell_user
from una_fast.errors import InputError, counted

EXIT_BAD_INPUT = 2
EXIT_DIED = 1

T = TypeVar("T")


def launch(run: Run) -> int:
    """Carry out a run and return the exit code."""
    try:
        with handled(raise_stopped):
            run = resolve_options(run)
            with output_folder(Path(run.output), RUN, run.resume, vars(run)):
                return _train_here(run) or finish(run)
    except Stopped as stopped:
        return report(run, Outcome("stopped", Progress(), code=stopped.number))
    except RankDiedError as error:
        return report(run, Outcome("died", Progress(), message=str(error)))


def _train_here(run: Run) -> int:
    """Train on run.nproc ranks of this machine, unless the run is finished; returns the exit code."""
    output = Path(run.output)
    if run.resume and is_finished(output):
        check_resumed(output, read_json(output / SUMMARY)["resume_fingerprint"], flags_of(run.identity()))
        tell_user(f"{output}: already finished")
        return 0
    indexes = make_indexes(run)
    return work_on_ranks(run, train_as_rank) if run.nproc > 1 else report(run, train(run, lambda _: indexes))


def train_as_rank(run: Run, ready: Callable[[], object]) -> int:
    """`train` as one of several ranks, and the exit code of it."""
    return report(run, train(run, ready=ready))


def join_torchrun(run: Run) -> int:
    """Carry out the part of this process, a rank that torchrun started; returns the exit code.

    The first rank of each machine makes the index for its ranks, rank 0 alone writes the output folder.
    """
    if run.seeds:
        raise InputError(
            "--seeds starts the ranks of each seed itself, which torchrun forbids: give --nproc instead of torchrun, "
            "or call torchrun once a seed, with --seed and an --output for each"
        )
    end_with_launcher()
    again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0  # torchrun starts all ranks again if one dies
    resume = run.resume or (again and is_own(Path(run.output), RUN))
    run = dataclasses.replace(resolve_options(run), nproc=int(os.environ["LOCAL_WORLD_SIZE"]), resume=resume)
    with contextlib.ExitStack() as held:

        def prepare(ranks: Ranks) -> Indexes | None:
            folder = partial(output_folder, Path(run.output), RUN, run.resume, vars(run))
            run_on_all_ranks(ranks, lambda: ranks.first and held.enter_context(folder()))
            return run_on_all_ranks(ranks, lambda: None if ranks.local_rank else make_indexes(run))

        code = report(run, train(run, prepare))
        return code or (finish(run) if os.environ["RANK"] == "0" else 0)


def train(
    run: Run,
    prepare: Callable[[Ranks], Indexes | None] = lambda ranks: None,
    ready: Callable[[], object] = lambda: None,
) -> Outcome:
    """Train as the rank that the environment describes, or as the only one.

    Args:
        run: all options resolved.
        prepare: returns the indexes; None where another process has made and checked them.
        ready: called when the ranks can take steps: from then on a signal makes them save a checkpoint.
    """
    quiet()
    try:
        with full_memory_named(run):
            ranks = join_group(run.device)
            return _train(run, ranks, prepare(ranks), ready)
    except InputError as error:
        return Outcome("failed", Progress(), message=str(error))
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def _train(run: Run, ranks: Ranks, indexes: Indexes | None, ready: Callable[[], object]) -> Outcome:
    job = agreed(ranks, run_on_all_ranks(ranks, lambda: Job.load(run, ranks, indexes)))
    trainer, maker = Trainer(run, ranks, job.encoder, job.rows.plan(run), job.state), job.batch_maker()
    if ranks.device.type == "cuda":
        warn_of_memory(trainer, torch.cuda.mem_get_info(ranks.device)[0])
    stop = StopConsensus(ranks)

    def note_alone(number: int) -> None:
        tell_stopping(number)
        stop.note(number)

    # several ranks get a signal more than once, and their launcher counts it
    with handled(stop.note if ranks.world > 1 else stop_then_end(note_alone, end_at_once)):
        telemetry = run_on_all_ranks(ranks, lambda: Telemetry(trainer, job.progress, stop))
        saves = Saves(trainer, job.tokenizer, job.fingerprint, stop)
        ready()
        outcome = Loop(trainer, maker, job.progress, job.scorer, saves, telemetry, stop).run()
        if ranks.first:
            progress, used = outcome.progress, {**telemetry.times(), "peak_memory": peak_memory()}
            name = dev_name(run.dev)
            scores = old_names({DEV + name: progress.best_score, DEV_LAST + name: progress.last_score})
            job.write_summary(outcome.status, progress=vars(progress), scores=scores, this_process=used)
        late = stop.now()
    set_numerics(dataclasses.replace(run, precision="fp32", deterministic=False), ranks.device)  # for what comes next
    if outcome.status == "finished" and 0 < late < FAILED:  # the signal came after the last step
        return Outcome("stopped", outcome.progress, late)
    return outcome


def run_on_all_ranks(ranks: Ranks, action: Callable[[], T]) -> T:
    """Run `action` on every rank; if one raises InputError, raise it on all, so that none waits for another."""
    result, error = None, None
    try:
        result = action()
    except InputError as caught:
        error = str(caught)
    for message in filter(None, of_all_ranks(ranks, error)):
        raise InputError(message)
    return cast(T, result)


def agreed(ranks: Ranks, job: Job) -> Job:
    """The job with the progress and state of rank 0: a machine whose --output is not shared has no checkpoint.

    Raises:
        InputError: machines would train on different sentences, from different weights, or with different settings.
    """
    jobs = of_all_ranks(ranks, (job.fingerprint, job.progress))
    first, start = jobs[0]
    for rank, (other, _) in enumerate(jobs):
        if different := first_difference(first, other):
            what, of_first, value = different
            raise InputError(
                f"rank {rank} has {what} {value}, and rank 0 {of_first}: give all machines the same options, the same "
                "model, and the same index: copy one folder, or build it on each from the same corpus"
            )
    if all(progress == start for _, progress in jobs):
        return job
    sent = [(job.progress, job.state) if ranks.first else (Progress(), None)]
    dist.broadcast_object_list(sent, src=0)
    progress, state = sent[0]
    return dataclasses.replace(job, progress=progress, state=state)


def report(run: Run, outcome: Outcome) -> int:
    """The exit code of an outcome; rank 0 tells the user how the run ended."""
    codes = {"finished": 0, "stopped": 128 + outcome.code, "failed": EXIT_BAD_INPUT, "died": EXIT_DIED}
    if os.environ.get("RANK", "0") == "0":
        if outcome.status == "finished":
            _report_scores(Path(run.output), outcome.progress)
        else:
            _report_end(Path(run.output), outcome)
    return codes[outcome.status]


def _report_scores(output: Path, progress: Progress) -> None:
    if progress.best_step == 0:
        scores = f"dev Spearman {progress.best_score:.4f}, after the last step {progress.last_score:.4f}"
        tell_user(f"no step was better than the start ({scores}): best/ is the model you gave, last/ the trained one")
    elif progress.best_score is not None:
        start = "" if progress.start_score is None else f" (start {progress.start_score:.4f})"
        tell_user(f"best dev Spearman {progress.best_score:.4f} at step {progress.best_step}{start}")
    tell_user(f"finished after {counted(progress.step, 'step')}: {output / BEST}")


def _report_end(output: Path, outcome: Outcome) -> None:
    saved = read_object(output / POINTER).get("progress", {"step": 0})["step"]
    advice = f"go on from step {saved} with --resume" if saved else "no checkpoint was saved yet"
    if outcome.status == "stopped":
        tell_user(f"stopped by {signal.Signals(outcome.code).name}: {advice}")
    else:
        with_advice = outcome.status == "died" or outcome.progress.step
        tell_user(f"error: {outcome.message}{f' ({advice})' if with_advice else ''}")
