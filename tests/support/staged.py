"""Helpers for staged builds: small tasks, an executor without threads, and failing writes."""

import errno
import os
from concurrent.futures import Executor, Future

from una_fast.index.executors import Runner


class Calling(Executor):
    """An executor that runs a task immediately, in the calling thread."""

    _max_workers = 1

    def submit(self, function, /, *arguments, **named):
        future: Future = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


class Killed(BaseException):
    """Stands in for a killed process: no code catches it."""


def kill(*_):
    """Replaces a function, to simulate a kill just before it."""
    raise Killed


def cut(monkeypatch, split_bytes=40, n_partitions=3):
    """Set the split size in bytes and the number of hash ranges and rank ranges; switch off fsync."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    monkeypatch.setattr(Runner, "split_bytes", lambda self: split_bytes)
    monkeypatch.setattr(Runner, "n_partitions", lambda self, text_bytes: n_partitions)


def failing_syncs(monkeypatch, at, error):
    """Make call number `at` of fsync, which ends every write, raise `error`; returns a list that grows per call."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    return failing(monkeypatch, os, "fsync", at, error)


def failing(monkeypatch, owner, name, at, error):
    """Make call number `at` of a function raise `error` instead; returns a list that grows per call."""
    plain, calls = getattr(owner, name), []

    def call(*arguments, **named):
        calls.append(arguments)
        if len(calls) == at:
            raise error
        return plain(*arguments, **named)

    monkeypatch.setattr(owner, name, call)
    return calls


def flip(path, bit):
    """Flip a bit of a file; negative numbers count from its end."""
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def disk_full():
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
