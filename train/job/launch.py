"""A run from its options to an exit code: prepare, train on all ranks of this machine, score."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from train.config.run import Run
from train.demo.demo import score_table
from train.job.material import make_index
from train.job.output import check_output
from train.job.resolve import resolve_options
from train.job.supervise import Supervisor
from train.record.card import write_card
from train.record.files import FolderLock
from train.record.folder import BEST, is_finished, remove_own_files
from train.record.pointer import Progress, has_checkpoint, read_pointer
from train.steps.loop import Outcome
from train.steps.signals import Stopped, handled, raise_stopped, tell_user
from una_fast.errors import InputError, counted

EXIT_BAD_INPUT = 2
EXIT_DIED = 1
EXIT_NOT_PUSHED = 3  # all else is done


def launch(run: Run) -> int:
    """Prepare, train on run.nproc ranks, score what came of it if asked to, and return the exit code."""
    try:
        with handled(raise_stopped):
            if run.resume and is_finished(Path(run.output)):
                tell_user(f"{run.output}: already finished")
                run = resolve_options(run)
            else:
                run = prepare(run, tell_user)
                supervisor = Supervisor(run)
                if code := report(run, supervisor()):
                    return code
                if supervisor.number:  # while the last step was taken
                    raise Stopped(supervisor.number)
            return finish(run)
    except Stopped as stopped:
        return report(run, Outcome("stopped", Progress(), code=stopped.number))


def finish(run: Run) -> int:
    """Score best/ of a finished run where --evaluate asks for it and it is not done yet, write its card, push it.

    Returns the exit code: 0, or EXIT_NOT_PUSHED.
    """
    if run.evaluate:
        from train.job.score_best import is_scored, score_best  # scikit-learn takes a second

        if not is_scored(run):
            score_best(run, tell_user)
    write_card(Path(run.output))
    return _push(run) if run.push_to else 0


def _push(run: Run) -> int:
    """Push best/; a hub that does not take it is said, and costs the run nothing."""
    from train.job.push import push_best  # the hub's client takes a while

    try:
        push_best(run, tell_user)
    except InputError as error:
        tell_user(f"error: {error}")
        return EXIT_NOT_PUSHED
    return 0


def prepare(run: Run, say: Callable[[str], None]) -> Run:
    """Check everything there is to check and make the index; returns the run with all options resolved.

    The lock of the output folder is held meanwhile; after that rank 0 holds it.
    """
    run = resolve_options(run)
    lock = FolderLock(Path(run.output))
    try:
        check_output(run)
        make_index(run, say)
        if not run.resume:
            remove_own_files(Path(run.output))
    except InputError:
        lock.abandon()
        raise
    finally:
        lock.release()
    return run


def _saved_progress(run: Run) -> Progress:
    output = Path(run.output)
    return read_pointer(output).progress if has_checkpoint(output) else Progress()


def report(run: Run, outcome: Outcome) -> int:
    """Say how the run ended; returns the exit code."""
    progress = outcome.progress
    if outcome.status == "finished":
        if progress.best_step == 0:
            score = f"dev Spearman {progress.best_score:.4f}"
            tell_user(f"no step was better than the start ({score}): best/ is the model you gave")
        elif progress.best_score is not None:
            start = "" if progress.start_score is None else f" (start {progress.start_score:.4f})"
            tell_user(f"best dev Spearman {progress.best_score:.4f} at step {progress.best_step}{start}")
        tell_user(f"finished after {counted(progress.step, 'step')}: {Path(run.output) / 'best'}")
        if run.demo:
            tell_user(score_table({"before": Path(run.model), "after": Path(run.output) / BEST}))
        return 0
    saved = _saved_progress(run).step
    advice = f"go on from step {saved} with --resume" if saved else "no checkpoint was saved yet"
    if outcome.status == "stopped":
        tell_user(f"stopped by {signal.Signals(outcome.code).name}: {advice}")
        return 128 + outcome.code
    tell_user(f"error: {outcome.message}{f' ({advice})' if outcome.status == 'died' or progress.step else ''}")
    return EXIT_BAD_INPUT if outcome.status == "failed" else EXIT_DIED
