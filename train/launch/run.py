"""Carries out a run: prepares it, trains on all ranks of this machine, scores it and returns the exit code.

The launcher starts the ranks, passes signals on and collects their outcomes; a rank that dies ends all.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from pathlib import Path

from torch.distributed import TCPStore

from train.config.run import Run
from train.demo.demo import show_results
from train.launch.corpus import make_index
from train.launch.finish import finish
from train.launch.ranks import MODELS, RankProcesses, start_fork_server
from train.launch.resolve import resolve_options
from train.launch.worker import fingerprint_of, work, work_under_torchrun
from train.loop.loop import Outcome
from train.record.checkpoint import Progress, check_resumed, flags_of
from train.record.folder import (
    BEST,
    POINTER,
    RUN,
    OutputFolder,
    is_finished,
    is_own,
    read_object,
    read_summary,
)
from train.report.__main__ import main as write_report
from train.signals import Stopped, handled, raise_stopped, tell_user
from una_fast.errors import InputError, counted

EXIT_BAD_INPUT = 2
EXIT_DIED = 1


def launch(run: Run) -> int:
    """Prepare, train on run.nproc ranks, score best/ if --evaluate asks for it, and return the exit code."""
    output = Path(run.output)
    try:
        with handled(raise_stopped):
            if run.resume and is_own(output, RUN) and is_finished(output):
                run = resolve_options(run)
                check_resumed(output, read_summary(output)["resume_fingerprint"], flags_of(run.identity()))
                tell_user(f"{output}: already finished")
            else:
                run, checked = prepare(run)
                outcome, number = train_on_ranks(run, checked)
                if code := report(run, outcome):
                    return code
                if number:  # the signal came during the last step
                    raise Stopped(number)
            return finish(run)
    except Stopped as stopped:
        return report(run, Outcome("stopped", Progress(), code=stopped.number))


def join_torchrun(run: Run) -> int:
    """Carry out the part of this process, a rank that torchrun started; returns the exit code."""
    if run.seeds:
        raise InputError(
            "--seeds starts the ranks of each seed itself, which torchrun forbids: give --nproc instead of torchrun, "
            "or call torchrun once a seed, with --seed and an --output for each"
        )
    run, outcome = work_under_torchrun(run)
    code = report(run, outcome)
    return finish(run) if not code and os.environ["RANK"] == "0" else code


def prepare(run: Run) -> tuple[Run, str]:
    """Check options, files and the output folder, and make the index.

    Returns the run as its ranks go on with it, and the fingerprint of what they train on.
    This process holds the lock of the output folder meanwhile; afterwards rank 0 does.
    """
    run = resolve_options(run)
    with OutputFolder(Path(run.output), RUN, run.resume, vars(run)):
        checked = fingerprint_of(make_index(run))
    return dataclasses.replace(run, resume=True), checked


def report(run: Run, outcome: Outcome) -> int:
    """Tell the user how the run ended; returns the exit code."""
    progress, output = outcome.progress, Path(run.output)
    if outcome.status == "finished":
        if progress.best_step == 0:
            scores = f"dev Spearman {progress.best_score:.4f}, after the last step {progress.last_score:.4f}"
            tell_user(
                f"no step was better than the start ({scores}): best/ is the model you gave, last/ the trained one"
            )
        elif progress.best_score is not None:
            start = "" if progress.start_score is None else f" (start {progress.start_score:.4f})"
            tell_user(f"best dev Spearman {progress.best_score:.4f} at step {progress.best_step}{start}")
        tell_user(f"finished after {counted(progress.step, 'step')}: {output / BEST}")
        if run.demo:
            show_results(run)
            write_report([str(output), "--output", str(output / "report.html")])
        return 0
    saved = read_object(output / POINTER).get("progress", {"step": 0})["step"]
    advice = f"go on from step {saved} with --resume" if saved else "no checkpoint was saved yet"
    if outcome.status == "stopped":
        tell_user(f"stopped by {signal.Signals(outcome.code).name}: {advice}")
        return 128 + outcome.code
    tell_user(f"error: {outcome.message}{f' ({advice})' if outcome.status == 'died' or progress.step else ''}")
    return EXIT_BAD_INPUT if outcome.status == "failed" else EXIT_DIED


HOST = "127.0.0.1"
ONE_PRESS = 0.2  # signals within so many seconds count as one, because `timeout` sends its signal twice


def train_on_ranks(run: Run, checked: str) -> tuple[Outcome, int]:
    """The outcome of a run that `prepare` returned, and the stop signal that came, or 0.

    Raises:
        Stopped: a signal came before the ranks trained.
    """
    start_fork_server([work.__module__, MODELS])
    signals: list[tuple[int, float]] = []  # the stop signals that came, and when
    store = TCPStore(HOST, 0, is_master=True, wait_for_workers=False)  # in this process, which outlives the ranks
    # what torchrun would set; the store is in the launcher, not in rank 0
    alike = {"MASTER_ADDR": HOST, "MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    alike |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(run.nproc))
    environments = [{**alike, **dict.fromkeys(("RANK", "LOCAL_RANK"), str(rank))} for rank in range(run.nproc)]
    ranks = RankProcesses(work, [(run, checked)] * run.nproc, environments)
    with handled(lambda number: signals.append((number, time.monotonic()))):
        outcome = _watch(ranks, run.nproc, signals)
    return outcome, signals[0][0] if signals else 0


def _watch(ranks: RankProcesses, world: int, signals: list[tuple[int, float]]) -> Outcome:
    """The outcome of the run, once all ranks have ended or been killed. signals: grows while they come."""
    asked = False
    while ranks.running:
        ranks.receive()
        first, at = signals[0] if signals else (0, 0.0)
        stopped = Outcome("stopped", Progress(), first)
        if death := ranks.dead():
            ranks.kill()
            rank, why = death
            return stopped if first else Outcome("died", Progress(), message=f"rank {rank} died: {why}")
        if first and not asked:
            if len(ranks.ready) < world:
                ranks.kill()
                raise Stopped(first)  # there is nothing to save
            ranks.signal(first)
            tell_user(f"{signal.Signals(first).name}: the run stops after this step; Ctrl-C ends it at once")
            asked = True
        if any(number == signal.SIGINT and then > at + ONE_PRESS for number, then in signals):
            ranks.kill()
            return stopped
    outcomes = [outcome for _, outcome in sorted(ranks.results.items())]
    return max(outcomes, key=lambda outcome: (outcome.status == "failed", bool(outcome.message)))  # the first failure
