"""Trains as one rank, from loading the files to the model card.

The first rank of each machine builds the index there. Only rank 0 writes in --output and talks to the user.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from train.config import ResolvedRun, Run
from train.distributed import Ranks, StopConsensus, from_first, join_group, set_numerics
from train.encoder.pretrained import quiet
from train.launch.finish import finish
from train.launch.prepare import PreparedRun
from train.launch.resolve import device_of
from train.loop.loop import CheckpointWriter, Loop
from train.loop.telemetry import Telemetry
from train.loop.trainer import Trainer, remedy
from train.messages import is_first_rank, tell_user
from train.record.checkpoint import (
    Progress,
    check_encoder,
    check_resumed,
    first_difference,
    has_checkpoint,
    load_checkpoint,
)
from train.record.environment import peak_memory
from train.record.folder import BEST, RUN, SUMMARY, dev_name, is_finished, output_folder, resume_advice
from train.signals import Stopped, leave_at_once, signals_handled, stop_then_end
from una_fast.errors import InputError, InputWarning, first_line
from una_fast.parallel import n_cores
from una_fast.storage.files import read_json, write_json


def run_rank(run: Run) -> int:
    """Train as one rank, or as the only one, and return the exit code."""
    quiet()
    if not is_first_rank():
        warnings.simplefilter("ignore", InputWarning)  # only rank 0 shows them
    with ExitStack() as lock:
        run = train(run, lock)
        if is_first_rank():
            finish(run)
    return 0


def train(run: Run, lock: ExitStack) -> ResolvedRun:
    """Train, and return the resolved options. Rank 0 locks the output folder until the caller closes `lock`."""
    with process_group(run) as ranks:
        prepared = PreparedRun(run)
        if ranks.first:
            lock.enter_context(output_folder(Path(run.output), RUN, run.resume, vars(prepared.run)))
        if ranks.local_rank == 0:
            prepared.make_index()
        if ranks.world > 1:
            dist.all_reduce(torch.zeros(1))  # waits for all ranks, over gloo: they read the index of their machine
        prepared.neighbours = from_first(ranks, prepared.neighbours if ranks.first else None)
        progress, state = starting_point(prepared.run, ranks, prepared.fingerprint)
        if progress.step and state is None:
            tell_user(f"{run.output}: already finished")
        else:
            _take_steps(prepared, ranks, progress, state)
        return prepared.run


@contextmanager
def process_group(run: Run) -> Iterator[Ranks]:
    """Join the process group for the with block. Raises InputError if a file is not usable or the GPU's memory full."""
    try:
        yield join_group(device_of(run))
    except torch.OutOfMemoryError as error:
        raise InputError(f"the GPU's memory is full: {remedy(run)} ({first_line(error)})") from error
    except OSError as error:
        raise InputError(str(error)) from error
    finally:
        # not after an error, because the other ranks may never leave the group
        if dist.is_initialized() and sys.exc_info()[0] in (None, Stopped):
            dist.destroy_process_group()
            torch.set_num_threads(n_cores(None))  # for rank 0, which continues after the others


def starting_point(run: Run, ranks: Ranks, fingerprint: dict[str, Any]) -> tuple[Progress, dict[str, Any] | None]:
    """Return the progress to start from, and the checkpoint's state, which is None for a new or a finished run.

    Only rank 0 reads the checkpoint. Raises InputError if `fingerprint` differs from the saved one, or between ranks.
    """
    output, finished = Path(run.output), is_finished(Path(run.output))
    progress, state = Progress(), None
    # without a checkpoint the run was killed before its first step, and starts again
    if ranks.first and run.resume and (finished or has_checkpoint(output)):
        summary = read_json(output / SUMMARY)
        check_resumed(output, summary.get("resume_fingerprint", {}), fingerprint)
        check_encoder(output, BEST)
        progress, state = (Progress(**summary["progress"]), None) if finished else load_checkpoint(output)
    first_fingerprint, progress, state = from_first(ranks, (fingerprint, progress, state))
    if not ranks.first and (difference := first_difference(first_fingerprint, fingerprint)):
        what, first, value = difference
        raise InputError(
            f"rank {ranks.rank} has {what} {value}, and rank 0 {first}: give all machines the same options, the "
            "same model, and the same index: copy one folder, or build it on each from the same corpus"
        )
    return progress, state


def _take_steps(prepared: PreparedRun, ranks: Ranks, progress: Progress, state: dict[str, Any] | None) -> None:
    """Train from `progress` to the end of the run, and keep run.json up to date. state: None for a new run."""
    run, output, summary = prepared.run, Path(prepared.run.output), prepared.summary(ranks.world)
    maker, scorer = prepared.batch_maker(ranks), prepared.scorer(ranks.device)
    trainer, stop = Trainer(run, ranks, prepared.encoder, prepared.plan(), state), StopConsensus(ranks)
    if ranks.device.type == "cuda":
        trainer.try_memory()
        torch.cuda.reset_peak_memory_stats(ranks.device)  # run.json reports the peak of the steps only

    # with several ranks, a rank may get a signal more than once, so only the launcher counts signals
    handler = stop.note if ranks.world > 1 else stop_then_end(stop.note, leave_at_once)
    with closing(trainer), signals_handled(handler):
        if ranks.first:
            write_json(output / SUMMARY, {"status": "running", **summary})
        telemetry = Telemetry(trainer, progress, stop, prepared.trackers)
        writer = CheckpointWriter(trainer, prepared.tokenizer, stop)
        loop, status = Loop(trainer, maker, progress, scorer, writer, telemetry, stop), "failed"
        try:
            status = "finished" if loop.run() else "stopped"
        except InputError as error:
            raise InputError(f"{error}: {resume_advice(output)}") from error
        finally:
            if ranks.first:
                results = {
                    "progress": vars(loop.progress),
                    "scores": loop.progress.dev_scores(dev_name(run.dev)),
                    "this_process": {**telemetry.times(), "peak_memory": peak_memory()},
                }
                write_json(output / SUMMARY, {"status": status, **summary, **results})
        stop.check()  # a signal may have come after the last step
    set_numerics(ranks.device, "fp32", deterministic=False)  # for the evaluation
