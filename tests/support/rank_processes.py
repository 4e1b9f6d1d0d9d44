"""Work for the processes of ranks that is no training."""

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
    """Is never ready."""
    time.sleep(60)


def saves_for_long(run, ready):
    """Takes no notice of a signal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ready()
    time.sleep(60)
