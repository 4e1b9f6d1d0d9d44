"""Starts a run, in this process or on the ranks of --nproc: processes that get what torchrun would give them.

A rank's work is named by its import path, so that the launcher imports neither models nor the training.

torch's elastic agent is not used. After a signal it waits 30 s for its ranks and then kills them, while each rank waits
as long for the agent's permission to end, so a stop took 31 s. With the agent, a signal to the whole process group
would also end the fork server, and the launcher would learn nothing more about the ranks.
"""

from __future__ import annotations

import atexit
import dataclasses
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import connection, forkserver, resource_tracker
from pathlib import Path
from typing import Any, cast

from torch.distributed import TCPStore

from train.config.command import run_command
from train.config.run import Run
from train.record.folder import RUN, is_own, saved_step
from train.signals import Stopped, handled, held_back, raise_stopped, stop_then_end, tell_user
from una_fast.imports import import_object

WORK = "train.launch.run:carry_out"  # of a rank: (run, what it calls once it can save) -> its exit code
MODELS = "transformers.activations"  # brings most of a model's imports: 1.8 s of processor time
EXIT_DIED, EXIT_BAD_INPUT = 1, 2
HOST = "127.0.0.1"
WATCH_SECONDS = 0.5  # between two checks whether torchrun still runs
PACKAGES = Path(__file__).parents[2]  # the folder that holds the package `train`


class RankDiedError(Exception):
    """A rank ended by an exception or was killed; the message says which and how."""


def launch(run: Run) -> int:
    """Carry out a run, or the part of a rank that torchrun has started; returns the exit code."""
    if is_under_torchrun():
        end_with_launcher()
        again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0  # it starts all ranks again if one dies
        resume = run.resume or (again and is_own(Path(run.output), RUN))
        return import_object(WORK)(dataclasses.replace(run, nproc=int(os.environ["LOCAL_WORLD_SIZE"]), resume=resume))
    if run.nproc == 1:
        return import_object(WORK)(run)
    try:
        return work_on_ranks(run, WORK)
    except Stopped as stopped:
        tell_user(f"stopped by {stopped}: {next_start(Path(run.output))}")
        return 128 + stopped.number
    except RankDiedError as error:
        tell_user(f"error: {error}: {next_start(Path(run.output))}")
        return EXIT_DIED


def is_under_torchrun() -> bool:
    """True in a rank that torchrun has started."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def next_start(output: Path) -> str:
    """How to go on with a run that ended before its last step."""
    step = saved_step(output)
    return f"go on from step {step} with --resume" if step else "no checkpoint was saved yet"


def work_on_ranks(run: Run, work: str) -> int:
    """The highest exit code of `work`, as WORK, on run.nproc processes, each a rank.

    Raises:
        Stopped: a signal came before the ranks could save, after the last one had ended, or Ctrl-C a second time.
        RankDiedError: one of them died, and the others were killed.
    """
    start_fork_server([work.partition(":")[0], MODELS])
    store = TCPStore(HOST, 0, is_master=True, wait_for_workers=False)  # in this process, which outlives the ranks
    # what torchrun would set; the store is in the launcher, not in rank 0
    alike = {"MASTER_ADDR": HOST, "MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    alike |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(run.nproc))
    context = multiprocessing.get_context("forkserver")
    ready, theirs = context.Pipe(duplex=False)
    numbers = [{**alike, **dict.fromkeys(("RANK", "LOCAL_RANK"), str(rank))} for rank in range(run.nproc)]
    ranks = [context.Process(target=_run_rank, args=(work, run, of_rank, theirs)) for of_rank in numbers]
    asked: list[int] = []  # the first signal

    def pass_on(number: int) -> None:
        asked.append(number)
        if not ready.poll():  # there is nothing to save
            raise_stopped(number)
        for rank in ranks:
            with suppress(ProcessLookupError):
                os.kill(cast(int, rank.pid), number)  # it does no harm to a rank that has already received it

    try:
        with handled(raise_stopped):  # the first start waits for the fork server's imports; a stop does not
            for rank in ranks:
                rank.start()  # one that is not noted yet when a signal comes ends with this process
        theirs.close()
        with handled(stop_then_end(pass_on, raise_stopped)):
            _wait(ranks)
    except RankDiedError as error:
        if asked:
            raise Stopped(asked[0]) from error
        raise
    finally:
        for rank in filter(lambda rank: rank.pid, ranks):
            rank.kill()
            rank.join()
    code = max(cast(int, rank.exitcode) for rank in ranks)
    if asked and not code:
        raise Stopped(asked[0])
    return code


def _wait(ranks: Sequence[Any]) -> None:
    """Return once all ranks have ended. Raises RankDiedError if one died."""
    while running := [rank for rank in ranks if rank.exitcode is None]:
        connection.wait([rank.sentinel for rank in running])
        for number, rank in enumerate(ranks):
            if rank.exitcode is not None and (rank.exitcode < 0 or rank.exitcode == EXIT_DIED):
                raise RankDiedError(f"rank {number} died: exit code {rank.exitcode}")


def _run_rank(work: str, run: Run, environment: Mapping[str, str], ready: connection.Connection) -> None:
    end_with_launcher()
    os.environ.update(environment)
    raise SystemExit(run_command(lambda: import_object(work)(run, lambda: ready.send(True)), "train"))


def end_with_launcher() -> None:
    """End this process once its launcher is gone (kill -9), because nothing else would end it then."""
    launcher, parent = multiprocessing.parent_process(), os.getppid()

    def watch() -> None:
        if launcher is not None:  # the parent is the fork server, which outlives the launcher
            launcher.join()
        while launcher is None and os.getppid() == parent:  # torchrun is the parent
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="launcher watch").start()


def start_fork_server(modules: Sequence[str]) -> None:
    """Start the process that ranks are forked from: it imports all they need once (5 s), and has no threads.

    It starts with stop signals blocked, and so do the ranks until they handle them, so that a signal to the whole
    process group ends neither.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the ranks; `join_group` sets torch's own threads
    multiprocessing.set_forkserver_preload(list(modules))
    # The server looks for modules in its working directory first. In the user's it would take the user's own train.py
    # for our package: run it, and then find no module of ours. The ranks return to the user's directory.
    before = Path.cwd()
    os.chdir(PACKAGES)
    try:
        with held_back():
            resource_tracker.ensure_running()  # first, because it unblocks SIGINT and SIGTERM
            with held_back():
                forkserver.ensure_running()
    finally:
        os.chdir(before)
    atexit.register(_end_fork_server)


def _end_fork_server() -> None:
    """End the fork server at once; left alone, it would finish its imports and then spend seconds on unloading them."""
    server: Any = forkserver._forkserver
    with suppress(ProcessLookupError):
        os.kill(server._forkserver_pid, signal.SIGKILL)
