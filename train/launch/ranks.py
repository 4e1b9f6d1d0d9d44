"""Starts a run: in this process or, with --nproc, in one process per rank.

The processes get the environment variables of torchrun, but not its elastic agent, which takes 31 s to stop after a
signal, because the agent and the ranks wait for each other.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn, cast

from train.config import Run
from train.messages import tell_error, tell_user
from train.record.folder import RUN, is_own, resume_advice
from train.signals import Stopped, raise_stopped, signals_blocked, signals_handled, stop_then_end
from una_fast.command import run_command
from una_fast.errors import InputError

HOST = "127.0.0.1"
LAUNCHER = "UNA_FAST_LAUNCHER"  # environment variable: the process id of the launcher of --nproc
EXIT_DIED, EXIT_BAD_INPUT = 1, 2  # exit codes of a failed run; signal n gives 128 + n
WATCH_SECONDS = 0.1  # between checks that the ranks and the launcher are still running
# "" is removed from the path, because the working directory may contain the user's own train.py
RANK_PROGRAM = "import sys; sys.path[:] = filter(None, sys.path); from train.launch.ranks import be_rank; be_rank()"


def launch(run: Run) -> int:
    """Train in this process or in run.nproc new ones, and return the exit code. Tell the user why a run ends early."""
    try:
        if is_rank():
            end_with_launcher()
            run = _for_rank(run)
        elif run.nproc > 1:
            return start_ranks(run)
        from train.launch.run import run_rank  # imported here: a launcher needs neither models nor training code

        # one of several ranks may be waiting in C++, where no Python handler runs, so the signal kills it
        with signals_handled(raise_stopped if os.environ.get("WORLD_SIZE", "1") == "1" else signal.SIG_DFL):
            return run_rank(run)
    except Stopped as stopped:
        tell_user(f"stopped by {stopped}: {resume_advice(Path(run.output))}")
        return 128 + stopped.number
    except InputError as error:
        tell_error(f"error: {error}")
        return EXIT_BAD_INPUT


def is_rank() -> bool:
    """Return whether this process is a rank that torchrun or `start_ranks` started."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def _for_rank(run: Run) -> Run:
    """Return `run` with this machine's number of ranks as --nproc, and with --resume after a restart by torchrun."""
    restarted = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0  # torchrun restarts all ranks if one dies
    resume = run.resume or (restarted and is_own(Path(run.output), RUN))
    return dataclasses.replace(run, nproc=int(os.environ["LOCAL_WORLD_SIZE"]), resume=resume)


def start_ranks(run: Run) -> int:
    """Start run.nproc ranks and return their highest exit code. If one fails, kill the others and return its code."""
    from torch.distributed import TCPStore  # imported here, because a rank must handle signals before it imports torch

    store = TCPStore(HOST, 0, is_master=True, wait_for_workers=False)  # this process outlives the ranks
    ranks: list[subprocess.Popen[bytes]] = []
    signals: list[int] = []

    def pass_on(number: int) -> None:
        signals.append(number)
        for rank in ranks:
            rank.send_signal(number)  # harmless for a rank that has already received it

    try:
        with signals_handled(stop_then_end(pass_on, raise_stopped)):
            with signals_blocked():  # a rank starts with signals blocked, and unblocks them when it can handle them
                ranks += [_start(rank, store.port, run) for rank in range(run.nproc)]
            code, died = _wait(ranks)
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    if signals and (died or not code):
        raise Stopped(signals[0])
    if died:
        tell_user(f"error: {died}: {resume_advice(Path(run.output))}")
    return code


def _start(rank: int, port: int, run: Run) -> subprocess.Popen[bytes]:
    """Start the process of a rank, with the module search path of this process."""
    variables = {
        "MASTER_ADDR": HOST, "MASTER_PORT": port, "WORLD_SIZE": run.nproc, "LOCAL_WORLD_SIZE": run.nproc,
        "RANK": rank, "LOCAL_RANK": rank, "TORCHELASTIC_RUN_ID": "nproc", "TORCHELASTIC_USE_AGENT_STORE": True,
        LAUNCHER: os.getpid(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }  # fmt: skip
    threads = {"OMP_NUM_THREADS": "1"}  # unless the user sets it; `join_group` sets torch's own threads
    environment = threads | os.environ | {name: str(value) for name, value in variables.items()}
    process = subprocess.Popen([sys.executable, "-c", RANK_PROGRAM], env=environment, stdin=subprocess.PIPE)
    with suppress(BrokenPipeError), cast(IO[bytes], process.stdin) as pipe:  # the rank may have died
        pickle.dump(run, pipe)
    return process


def _wait(ranks: Sequence[subprocess.Popen[bytes]]) -> tuple[int, str]:
    """Wait until all ranks have ended or one has failed. Return the run's exit code, and which rank died, or ""."""
    codes: list[int | None] = [None]
    while None in codes:
        time.sleep(WATCH_SECONDS)
        codes = [rank.poll() for rank in ranks]
        if EXIT_BAD_INPUT in codes:  # that rank has told the user
            return EXIT_BAD_INPUT, ""
        for number, code in enumerate(codes):
            if code is not None and (code < 0 or code == EXIT_DIED):
                return EXIT_DIED, f"rank {number} died: exit code {code}"
    return max(filter(None, codes), default=0), ""


def be_rank() -> NoReturn:
    """Train as a rank, with the options that `start_ranks` writes to standard input, and exit."""
    with signals_handled(signal.SIG_DFL):
        run = pickle.load(sys.stdin.buffer)
        try:
            code = run_command(lambda: launch(run), "train")
        except Exception:
            tell_error(traceback.format_exc(), is_shared=True)  # such as a closed connection to a rank that ended
            code = EXIT_DIED
        os._exit(code)  # a normal exit unloads torch, which takes a second


def end_with_launcher() -> None:
    """Start a thread that ends this process when its launcher is gone, such as after kill -9."""
    # the environment names the launcher of --nproc, which may be gone already; torchrun is the parent process
    launcher = int(os.environ.get(LAUNCHER, os.getppid()))

    def watch() -> None:
        while os.getppid() == launcher:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="launcher watch").start()
