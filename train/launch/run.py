"""The part of one rank in a run, from its options to its exit code: the same for one process, --nproc and torchrun.

The first rank of each machine makes the index there. Rank 0 alone writes the output folder, loads a checkpoint and
sends it to the others, scores best/, and tells the user how the run ended.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from train.config.run import Run
from train.encoder.pretrained import load_tokenizer, quiet
from train.launch import prepare
from train.launch.ranks import next_start
from train.loop.data import Plan
from train.loop.distributed import Ranks, StopConsensus, join_group, of_all_ranks, set_numerics
from train.loop.loop import Loop, Saves
from train.loop.neighbours import Neighbours, load_neighbours
from train.loop.telemetry import Telemetry
from train.loop.trainer import Trainer, remedy
from train.record.checkpoint import Progress, check_resumed, first_difference, has_checkpoint, load_checkpoint
from train.record.folder import DEV, DEV_LAST, RUN, SUMMARY, dev_name, is_finished, output_folder, read_json, write_json
from train.record.metrics import peak_memory
from train.signals import STDERR, handled, is_first_rank, leave_at_once, stop_then_end, tell_user
from una_fast.errors import InputError, InputWarning, first_line
from una_fast.index.index import Index
from una_fast.parallel import n_cores
from una_fast.tokens.ids import TokenIds


def carry_out(run: Run) -> int:
    """Carry out the part of this process, which is a rank or all of the run; return the exit code.

    run: the options as they were given. Raises InputError and Stopped as `train` does.
    """
    quiet()
    if not is_first_rank():
        warnings.simplefilter("ignore", InputWarning)  # rank 0 shows them
    with ExitStack() as held:
        run = train(run, held)
        if not is_first_rank():
            return 0
        from train.launch.finish import finish  # imports the evaluation tasks and the hub's client

        return finish(run)


def train(run: Run, held: ExitStack) -> Run:
    """Train as the rank that the environment describes, or as the only one.

    Args:
        run: the options as they were given.
        held: what keeps the output folder locked until it is closed.

    Returns:
        The run with all options resolved.

    Raises:
        InputError: the run cannot begin, or cannot go on; the same on every rank.
        Stopped: a signal came, and a checkpoint is saved.
    """
    with joined(run) as ranks:
        with errors_of_all(ranks):
            run = prepare.resolve_options(run)
            if ranks.first:
                held.enter_context(output_folder(Path(run.output), RUN, run.resume, vars(run)))
        with errors_of_all(ranks):
            index = None if ranks.local_rank else prepare.make_index(run)
        _train(run, ranks, index)
        return run


@contextmanager
def joined(run: Run) -> Iterator[Ranks]:
    """Inside the with block this process is a rank of its group; a GPU whose memory is full ends it with a sentence."""
    try:
        yield join_group(prepare.device_of(run))
    except torch.OutOfMemoryError as error:
        sentence = f"the GPU's memory is full: {remedy(run)} ({first_line(error)})"
        if dist.is_initialized():  # the other ranks wait for this one in an exchange: the launcher ends them
            STDERR.write(f"error: rank {os.environ['RANK']}: {sentence}\n")
            os._exit(1)
        raise InputError(sentence) from error
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
            torch.set_num_threads(n_cores(None))  # for what rank 0 does when the others have ended


@contextmanager
def errors_of_all(ranks: Ranks) -> Iterator[None]:
    """An InputError of one rank in the with block is raised on all, so that none waits for another."""
    message = ""
    try:
        yield
    except (InputError, OSError) as error:
        message = str(error)
    for first in filter(None, of_all_ranks(ranks, message)):
        raise InputError(first)


def _train(run: Run, ranks: Ranks, index: Index | None) -> None:
    """`train` with resolved options. index: None if another process of this machine has made and checked it."""
    output = Path(run.output)
    with errors_of_all(ranks):
        index = index or prepare.open_index(run)
        tokenizer, encoder = load_tokenizer(run.model, run.trust_remote_code), prepare.encoder_of(run)
        rows, counts = prepare.training_rows(run, index)
        # before a use sets the tokenizer's padding
        fingerprint = prepare.resume_fingerprint(run, index, counts["sentences"], encoder, tokenizer)
        maker = prepare.batch_maker(run, ranks, index, tokenizer, counts["sentences"])
        own: Neighbours | None = None
        if run.neighbours and ranks.first:
            tokens = TokenIds(index, tokenizer)
            own = load_neighbours(run, index.fingerprint, tokens, rows, encoder, ranks.device)
        scorer, layout = None, encoder.layout
        if run.dev:
            from train.evaluation.model import PairScorer
            from train.evaluation.tasks.sts import load_dev

            limit = layout.longest(tokenizer, encoder.backbone.config)
            scorer = PairScorer(load_dev(run.dev), tokenizer, limit, ranks.device, layout.prepared)
    neighbours = of_all_ranks(ranks, own)[0]  # those of rank 0
    if neighbours:
        rows, fingerprint["neighbours"] = neighbours.rows, neighbours.digest()
    progress, state = beginning(run, ranks, fingerprint)
    if progress.step and state is None:
        tell_user(f"{output}: already finished")
        return
    about = prepare.summary_of(run, ranks, index, counts, fingerprint)
    nearest = neighbours.nearest if neighbours else None
    plan = Plan(rows, run.batch_size, run.seed, run.epochs, run.max_steps, nearest)
    trainer, stop = Trainer(run, ranks, encoder, plan, state), StopConsensus(ranks)
    if ranks.device.type == "cuda":
        trainer.try_memory()
        torch.cuda.reset_peak_memory_stats(ranks.device)  # which run.json reports

    # several ranks get a signal more than once, and their launcher counts it
    handler = stop.note if ranks.world > 1 else stop_then_end(stop.note, leave_at_once)
    with closing(trainer), handled(handler):
        with errors_of_all(ranks):
            if ranks.first:
                write_json(output / SUMMARY, {"status": "running", **about})
            telemetry = Telemetry(trainer, progress, stop)
        loop = Loop(trainer, maker, progress, scorer, Saves(trainer, tokenizer, stop), telemetry, stop)
        status = "failed"
        try:
            status = "finished" if loop.run() else "stopped"
        except InputError as error:
            raise InputError(f"{error}: {next_start(run)}") from error
        finally:
            if ranks.first:
                write_json(output / SUMMARY, {"status": status, **about, **ended(run, loop)})
        stop.check()  # also of a signal that came after the last step
    set_numerics(dataclasses.replace(run, precision="fp32", deterministic=False), ranks.device)  # for what comes next


def ended(run: Run, loop: Loop) -> dict[str, Any]:
    """What run.json holds of a run after its last step."""
    progress, name = loop.progress, dev_name(run.dev)
    return {
        "progress": vars(progress),
        "scores": {DEV + name: progress.best_score, DEV_LAST + name: progress.last_score},
        "this_process": {**loop.telemetry.times(), "peak_memory": peak_memory()},
    }


def beginning(run: Run, ranks: Ranks, fingerprint: dict[str, Any]) -> tuple[Progress, dict[str, Any] | None]:
    """Where the run begins, and the state of its checkpoint; None for a new run, and for one that is finished.

    Rank 0 reads them for all ranks: a machine whose --output is not shared has no checkpoint.

    Raises:
        InputError: the checkpoint is damaged or of another run, or machines would train on different sentences, from
            different weights, or with different settings.
    """
    output = Path(run.output)
    sent: list[Any] = [fingerprint, Progress(), None]
    with errors_of_all(ranks):
        # a run killed before its first step begins anew
        if ranks.first and run.resume and (is_finished(output) or has_checkpoint(output)):
            summary = read_json(output / SUMMARY)
            check_resumed(output, summary.get("resume_fingerprint", {}), fingerprint)
            sent[1:] = (Progress(**summary["progress"]), None) if is_finished(output) else load_checkpoint(output)
    if ranks.world > 1:
        dist.broadcast_object_list(sent)
    of_first, progress, state = sent
    with errors_of_all(ranks):
        if different := first_difference(of_first, fingerprint):
            what, first, value = different
            raise InputError(
                f"rank {ranks.rank} has {what} {value}, and rank 0 {first}: give all machines the same options, the "
                "same model, and the same index: copy one folder, or build it on each from the same corpus"
            )
    return progress, state
