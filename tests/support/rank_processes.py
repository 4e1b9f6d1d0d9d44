"""Stand-ins for a rank of a job that writes text: one dies, one finds bad input, and the others never end."""

import os
import signal
import time


def one_dies(rank, job, device, done, reply):
    """Rank 1 is killed."""
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    _write_and_wait(reply)


def one_refuses(rank, job, device, done, reply):
    """Rank 1 finds bad input."""
    if rank == 1:
        reply.send("a file is cut short")
    _write_and_wait(reply)


def none_ends(rank, job, device, done, reply):
    """No rank ends by itself."""
    _write_and_wait(reply)


def _write_and_wait(reply):
    reply.send(3)
    time.sleep(600)
