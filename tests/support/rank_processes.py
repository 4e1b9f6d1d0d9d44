"""Work for the processes of ranks that is no training."""

import multiprocessing
import os
import signal
import time


def number(run, ready):
    """Returns the number of the rank."""
    return 5 * int(os.environ["RANK"])


def divides(run, ready):
    """Rank 1 dies, while the others wait."""
    return 1 // (1 - int(os.environ["RANK"])) and time.sleep(60)


def is_killed(run, ready):
    """Rank 1 is killed, while the others wait."""
    if os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def sleeps(run, ready):
    """Is never ready; its launcher gets a SIGTERM."""
    to_launcher(signal.SIGTERM)
    time.sleep(60)


def saves_for_long(run, ready):
    """Takes no notice of a signal; its launcher gets Ctrl-C twice."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ready()
    to_launcher(signal.SIGINT)
    to_launcher(signal.SIGINT)
    time.sleep(60)


def to_launcher(number):
    """Send a signal to the launcher from rank 1, the last that it starts."""
    time.sleep(0.5)
    if os.environ["RANK"] == "1":
        os.kill(multiprocessing.parent_process().pid, number)
