"""Stand-ins for a rank of a job that writes text: one dies, one finds bad input, one only loads."""

import os
import signal
import time

from train.signals import handled


def one_dies(rank, job, device, done, reply):
    """Rank 1 is killed; the others wait until they are asked to stop."""
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    _write_until_stopped(reply)


def one_refuses(rank, job, device, done, reply):
    """Rank 1 finds bad input; the others wait until they are asked to stop."""
    if rank == 1:
        reply.send("a file is cut short")
    else:
        _write_until_stopped(reply)


def one_loads(rank, job, device, done, reply):
    """Rank 1 never begins to write."""
    if rank == 1:
        time.sleep(600)
    _write_until_stopped(reply)


def _write_until_stopped(reply):
    asked = []
    with handled(asked.append):
        reply.send(3)
        while not asked:
            time.sleep(0.02)
