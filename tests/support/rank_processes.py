"""Functions for processes of ranks that only send or end."""

import os
import signal

from una_fast.errors import InputError


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
