"""Functions for processes of ranks: stand-ins for ranks that write text, and short ones that only send."""

import os
import signal
import time

from una_fast.errors import InputError


def one_dies(job, rank, device, done, send):
    """Rank 1 is killed; the others never end."""
    if rank == 1:
        killed(send)
    none_ends(job, rank, device, done, send)


def one_refuses(job, rank, device, done, send):
    """Rank 1 finds bad input; the others never end."""
    if rank == 1:
        refuses("a file is cut short", send)
    none_ends(job, rank, device, done, send)


def none_ends(job, rank, device, done, send):
    """No rank ends by itself."""
    send(3)
    time.sleep(600)


def tells(word, send):
    """Sends its argument and its environment variable OWN."""
    send((word, os.environ["OWN"]))


def refuses(message, send):
    """Finds bad input."""
    raise InputError(message)


def divides(number, send):
    """Dies if the number is 0."""
    send(1 / number)


def killed(send):
    """Is killed."""
    os.kill(os.getpid(), signal.SIGKILL)
