"""Carries out a run: prepares it, trains on all ranks of this machine, scores it and returns the exit code."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from train.config.run import Run
from train.demo.demo import prepare_demo, score_table
from train.launch.corpus import make_index
from train.launch.resolve import resolve_options
from train.launch.supervise import train_on_ranks
from train.loop.loop import Outcome
from train.record.card import write_card
from train.record.folder import BEST, LAST, RUN, OutputFolder, is_finished, is_own
from train.record.pointer import Progress, check_identity, has_checkpoint, read_pointer
from train.signals import Stopped, handled, raise_stopped, tell_user
from una_fast.errors import InputError, counted

EXIT_BAD_INPUT = 2
EXIT_DIED = 1
EXIT_NOT_PUSHED = 3  # the run is finished, and only its push failed


def launch(run: Run) -> int:
    """Prepare, train on run.nproc ranks, score best/ if --evaluate asks for it, and return the exit code."""
    try:
        with handled(raise_stopped):
            if run.resume and is_own(Path(run.output), RUN) and is_finished(Path(run.output)):
                run = resolve_options(run)
                output = Path(run.output)
                check_identity(output, read_pointer(output).identity, {"settings": run.identity()})
                tell_user(f"{run.output}: already finished")
            else:
                run = prepare(run, tell_user)
                outcome, number = train_on_ranks(run)
                if code := report(run, outcome):
                    return code
                if number:  # the signal came during the last step
                    raise Stopped(number)
            return finish(run)
    except Stopped as stopped:
        return report(run, Outcome("stopped", Progress(), code=stopped.number))


def finish(run: Run) -> int:
    """Score best/ of a finished run if --evaluate asks for it and it is not scored yet, write its card, push it.

    Returns the exit code: 0, or EXIT_NOT_PUSHED.
    """
    if run.evaluate:
        from train.launch.finish import is_scored, score_best  # scikit-learn takes a second

        if not is_scored(run):
            score_best(run, tell_user)
    write_card(Path(run.output))
    return _push(run) if run.push_to else 0


def _push(run: Run) -> int:
    """Push best/ and return the exit code; if the hub refuses it, report the error: the run itself stays finished."""
    from train.launch.finish import push_best  # imported late, because the hub's client imports slowly

    try:
        push_best(run, tell_user)
    except InputError as error:
        tell_user(f"error: {error}")
        return EXIT_NOT_PUSHED
    return 0


def prepare(run: Run, say: Callable[[str], None]) -> Run:
    """Check options, files and the output folder, and make the index; returns the run with all options resolved.

    This process holds the lock of the output folder meanwhile; afterwards rank 0 does.
    """
    run = resolve_options(run)
    with OutputFolder(Path(run.output), RUN, run.resume, vars(run)):
        prepare_demo(run)
        make_index(run, say)
    return run


def _saved_progress(run: Run) -> Progress:
    output = Path(run.output)
    return read_pointer(output).progress if has_checkpoint(output) else Progress()


def report(run: Run, outcome: Outcome) -> int:
    """Tell the user how the run ended; returns the exit code."""
    progress = outcome.progress
    if outcome.status == "finished":
        if progress.best_step == 0:
            scores = f"dev Spearman {progress.best_score:.4f}, after the last step {progress.last_score:.4f}"
            tell_user(
                f"no step was better than the start ({scores}): best/ is the model you gave, last/ the trained one"
            )
        elif progress.best_score is not None:
            start = "" if progress.start_score is None else f" (start {progress.start_score:.4f})"
            tell_user(f"best dev Spearman {progress.best_score:.4f} at step {progress.best_step}{start}")
        tell_user(f"finished after {counted(progress.step, 'step')}: {Path(run.output) / 'best'}")
        if run.demo:
            output = Path(run.output)
            tell_user(score_table({"before": Path(run.model), "best/": output / BEST, "last/": output / LAST}))
        return 0
    saved = _saved_progress(run).step
    advice = f"go on from step {saved} with --resume" if saved else "no checkpoint was saved yet"
    if outcome.status == "stopped":
        tell_user(f"stopped by {signal.Signals(outcome.code).name}: {advice}")
        return 128 + outcome.code
    tell_user(f"error: {outcome.message}{f' ({advice})' if outcome.status == 'died' or progress.step else ''}")
    return EXIT_BAD_INPUT if outcome.status == "failed" else EXIT_DIED
