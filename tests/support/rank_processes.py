"""Functions that rank processes run in tests instead of training."""

import os
import signal
import sys
import time
from types import SimpleNamespace

import psutil

from train.launch.ranks import be_rank
from una_fast.errors import InputError

RUN_RANK = "train.launch.run"  # the module whose `run_rank` a rank executes; importing it takes seconds


def be_rank_that(name):
    """Be a rank that `start_ranks` started. It executes the function `name` of this module instead of training."""
    sys.modules[RUN_RANK] = SimpleNamespace(run_rank=globals()[name])
    be_rank()


def number(run):
    """Return 5 times the number of the rank."""
    return 5 * int(os.environ["RANK"])


def resumes(run):
    """Return 7 if the run continues from its checkpoint."""
    return 7 * run.resume


def divides(run):
    """Let rank 1 raise an exception while the others wait."""
    return 1 // (1 - int(os.environ["RANK"])) and time.sleep(60)


def is_killed(run):
    """Kill rank 1. Rank 0 then raises an error, as a collective call does."""
    if os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    while not any(rank.status() == "zombie" for rank in psutil.Process(os.getppid()).children()):
        time.sleep(0.01)
    raise RuntimeError("connection closed by peer")


def refuses(run):
    """Raise the same error on both ranks."""
    raise InputError("no such corpus")


def rank_1_refuses(run):
    """Let rank 1 raise an error while rank 0 waits."""
    if os.environ["RANK"] == "1":
        raise InputError("no such index")
    time.sleep(60)


def sleeps(run):
    """Send SIGTERM to the launcher and wait to be stopped."""
    to_launcher(signal.SIGTERM)
    time.sleep(60)


def saves_for_long(run):
    """Ignore SIGINT while the launcher gets it twice."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    to_launcher(signal.SIGINT)
    to_launcher(signal.SIGINT)
    time.sleep(60)


def to_launcher(number):
    """Send a signal to the launcher from rank 1, which it starts last."""
    time.sleep(0.5)
    if os.environ["RANK"] == "1":
        os.kill(os.getppid(), number)
