"""Threads: how many, and their results in the order of the work. Kernels release the GIL, so threads are cores."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, Protocol, TypeVar

from una_fast.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")


def n_cores(n_jobs: int | None) -> int:
    """`n_jobs`, or the number of cores this process may use."""
    if n_jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs < 1:
        raise InputError(f"n_jobs is {n_jobs}: give at least 1, or None for all cores")
    return n_jobs


class Mapper(Protocol):
    """What applies a function to items: `Workers`, or the `CallingThread`."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Each item with its result, in order."""


class CallingThread:
    """Does at once what `Workers` hands to threads."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Each item with its result, in order."""
        return ((item, function(item)) for item in items)


class Workers:
    """A pool of threads, to be used in a with statement."""

    def __init__(self, n_jobs: int | None):
        self.n_jobs = n_cores(n_jobs)
        self._pool = ThreadPoolExecutor(self.n_jobs)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result]]:
        """Each item with its result, in order.

        `items` is read by the calling thread, two items further than there are threads: so no thread waits for the
        caller, and a stream of items is never held as a whole.
        """
        waiting: deque[tuple[Item, Future[Result]]] = deque()
        iterator = iter(items)
        while True:
            for item in islice(iterator, self.n_jobs + 2 - len(waiting)):
                waiting.append((item, self._pool.submit(function, item)))
            if not waiting:
                return
            item, future = waiting.popleft()
            yield item, future.result()

    def read_ahead(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items, none of them None, in order; while the caller works on one, a thread reads the next."""
        iterator = iter(items)
        future = self._pool.submit(next, iterator, None)
        while (item := future.result()) is not None:
            future = self._pool.submit(next, iterator, None)
            yield item
