"""Trains as one rank, from loading the files to the model card.

The first rank of each machine builds the index there. Only rank 0 writes in --output and talks to the user.
"""

from __future__ import annotations

import warnings
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import torch

from train.config import Run
from train.distributed import Ranks, StopConsensus, from_first, process_group, set_numerics, wait_for_all
from train.encoder.pretrained import quiet
from train.launch.finish import finish
from train.launch.prepare import PreparedRun
from train.loop.loop import CheckpointWriter, Loop
from train.loop.telemetry import Telemetry
from train.loop.trainer import Trainer, remedy
from train.messages import is_first_rank, tell_user
from train.record.checkpoint import Progress, first_difference, load_run
from train.record.environment import peak_memory
from train.record.folder import RUN, SUMMARY, dev_name, output_folder, resume_advice
from train.signals import leave_at_once, signals_handled, stop_then_end
from una_fast.errors import InputError, InputWarning, first_line
from una_fast.storage.files import write_json


def run_rank(run: Run) -> int:
    """Train as one rank, or as the only one, and return the exit code 0. Rank 0 locks the output folder.

    Raises InputError if the input is wrong, a file is not usable, or the GPU's memory is full.
    """
    quiet()
    if not is_first_rank():
        warnings.simplefilter("ignore", InputWarning)  # only rank 0 shows them
    try:
        prepared = PreparedRun(run)
        settings = vars(prepared.run)
        with output_folder(Path(run.output), RUN, run.resume, settings) if is_first_rank() else nullcontext():
            with process_group(prepared.run.device) as ranks:
                train(prepared, ranks)
            if ranks.first:
                finish(prepared.run)
        return 0
    except torch.OutOfMemoryError as error:
        raise InputError(f"the GPU's memory is full: {remedy(run)} ({first_line(error)})") from error
    except OSError as error:
        raise InputError(str(error)) from error


def train(prepared: PreparedRun, ranks: Ranks) -> None:
    """Make the index and what else the ranks share, and take the steps that are left."""
    if ranks.local_rank == 0:
        prepared.corpus.make_index()
    wait_for_all(ranks)  # they read the index of their machine
    prepared.neighbours = from_first(ranks, prepared.neighbours if ranks.first else None)
    progress, state = starting_point(prepared.run, ranks, prepared.fingerprint)
    if progress.step and state is None:
        tell_user(f"{prepared.run.output}: already finished")
    else:
        take_steps(prepared, ranks, progress, state)


def starting_point(run: Run, ranks: Ranks, fingerprint: dict[str, Any]) -> tuple[Progress, dict[str, Any] | None]:
    """Return the progress to start from, and the checkpoint's state, which is None for a new or a finished run.

    Only rank 0 reads the checkpoint. Raises InputError if `fingerprint` differs from the saved one, or between ranks.
    """
    progress, state = Progress(), None
    if ranks.first and run.resume:
        progress, state = load_run(Path(run.output), fingerprint)
    first_fingerprint, progress, state = from_first(ranks, (fingerprint, progress, state))
    if not ranks.first and (difference := first_difference(first_fingerprint, fingerprint)):
        what, first, value = difference
        raise InputError(
            f"rank {ranks.rank} has {what} {value}, and rank 0 {first}: give all machines the same options, the "
            "same model, and the same index: copy one folder, or build it on each from the same corpus"
        )
    return progress, state


def take_steps(prepared: PreparedRun, ranks: Ranks, progress: Progress, state: dict[str, Any] | None) -> None:
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
