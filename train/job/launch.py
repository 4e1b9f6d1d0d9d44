"""Start the ranks of this machine and turn how they ended into an exit code."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from train.config.run import Run
from train.demo.demo import score_table
from train.job.prepare import check_output, is_finished, make_index, settle
from train.job.worker import work_for_launcher
from train.record.checkpoint import Progress, has_checkpoint, read_pointer
from train.record.files import FolderLock
from train.steps.loop import Outcome

EXIT_BAD_INPUT = 2
EXIT_DIED = 1
# Ranks are forked from a server that has imported all they need (5 s once, not once a rank) and has neither threads
# nor CUDA yet; a child forked from here would inherit the threads that built the index.
START_METHOD = "forkserver"


def tell(message: str) -> None:
    """A line for the user."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


def launch(run: Run) -> int:
    """Prepare, train on run.nproc ranks, score what came of it if asked to, and return the exit code."""
    try:
        with signals_raised():
            if run.resume and is_finished(Path(run.output)):
                tell(f"{run.output}: already finished")
                run = settle(run)
            else:
                run = prepare(run, tell)
                if code := report(run, _start_ranks(run)):
                    return code
            return score(run)
    except SignalException as error:
        return report(run, Outcome("stopped", Progress(), code=int(error.sigval)))


@contextmanager
def signals_raised() -> Iterator[None]:
    """Within it SIGTERM and SIGINT raise SignalException in the main thread, as they do while torch runs the ranks."""

    def raise_it(number: int, frame: object) -> NoReturn:
        raise SignalException(signal.strsignal(number) or "", signal.Signals(number))

    before = {number: signal.signal(number, raise_it) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def score(run: Run) -> int:
    """Score best/ of a finished run where --evaluate asks for it and it is not done yet; returns the exit code, 0."""
    if run.evaluate:
        from train.job.score_best import is_scored, score_best  # scikit-learn takes a second

        if not is_scored(run):
            score_best(run, tell)
    return 0


def prepare(run: Run, say: Callable[[str], None]) -> Run:
    """Check everything there is to check and make the index; returns the settled run.

    The lock of the output folder is held meanwhile; after that rank 0 holds it.
    """
    run = settle(run)
    lock = FolderLock(Path(run.output))
    try:
        check_output(run)
        make_index(run, say)
    finally:
        lock.release()
    return run


def _start_ranks(run: Run) -> Outcome:
    """Run `work_for_launcher` in run.nproc processes; those that die are started again, from last/ if it is there."""
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=run.nproc,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        max_restarts=run.max_restarts,
        start_method=START_METHOD,
        logs_specs=DefaultLogsSpecs(),
    )
    # A store that outlives the ranks still holds the addresses of those that died: new ones may read them and wait for
    # ever (seen on a busy machine; pytorch/pytorch#135712). So rank 0 opens a new one each time.
    os.environ.setdefault("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the launcher's children; torch's own threads are set by `join`
    multiprocessing.set_forkserver_preload(["train.job.worker"])
    try:
        outcomes = elastic_launch(config, work_for_launcher)(run)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        cause = f"rank {rank} died (exit code {failure.exitcode}) for the {run.max_restarts + 1}. time"
        last_line = (
            failure.message.strip().splitlines()[-1] if isinstance(failure.message, str) else str(failure.message)
        )
        return Outcome("died", _saved_progress(run), message=f"{cause}: {last_line}")
    return worst(list(outcomes.values()))


def worst(outcomes: list[Outcome]) -> Outcome:
    """The outcome of a run from those of its ranks: the first failure with a message, if there is one."""
    return max(outcomes, key=lambda outcome: (outcome.status == "failed", bool(outcome.message)))


def _saved_progress(run: Run) -> Progress:
    output = Path(run.output)
    return Progress(**read_pointer(output)["progress"]) if has_checkpoint(output) else Progress()


def report(run: Run, outcome: Outcome) -> int:
    """Say how the run ended; returns the exit code."""
    progress = outcome.progress
    if outcome.status == "finished":
        if progress.best_score is not None:
            tell(f"best dev Spearman {progress.best_score:.4f} at step {progress.best_step}")
        tell(f"finished after {progress.step} steps: {Path(run.output) / 'best'}")
        if run.demo:
            tell(score_table({"before": Path(run.model), "after": Path(run.output) / "best"}))
        return 0
    saved = _saved_progress(run).step
    advice = f"go on from step {saved} with --resume" if saved else "no checkpoint was saved yet"
    if outcome.status == "stopped":
        tell(f"stopped by {signal.Signals(outcome.code).name}: {advice}")
        return 128 + outcome.code
    tell(f"error: {outcome.message}{f' ({advice})' if progress.step else ''}")
    return EXIT_BAD_INPUT if outcome.status == "failed" else EXIT_DIED
