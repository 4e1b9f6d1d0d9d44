"""The machine's cores and free memory, and threads. Kernels release the GIL, so each thread uses a core."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import TypeVar

from una_fast.errors import InputError, integer

Item = TypeVar("Item")
Result = TypeVar("Result")


def n_cores(n_jobs: int | None) -> int:
    """Return `n_jobs`, or for None the number of cores that this process may use.

    Raises:
        InputError: `n_jobs` is not an integer of at least 1.
    """
    if n_jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if (n := integer("n_jobs", n_jobs)) < 1:
        raise InputError(f"n_jobs={n}: must be at least 1, or None for all cores")
    return n


def free_memory() -> int | None:
    """Return the bytes that programs can take without swapping, or None where the system does not say (Linux does)."""
    file = Path("/proc/meminfo")
    available = re.search(r"^MemAvailable:\s+(\d+) kB$", file.read_text() if file.exists() else "", re.MULTILINE)
    return int(available[1]) * 1024 if available else None


def map_ahead(
    submit: Callable[[Item], Future[Result]], items: Iterable[Item], ahead: int
) -> Generator[Result, None, None]:
    """Yield the result of each item, in order.

    The calling thread reads `items`, and submits `ahead` of them before it waits for the first. So no worker waits for
    the caller, and a stream of items is never in memory as a whole. If an item fails or the caller leaves, items that
    run are waited for.
    """
    futures, waiting = map(submit, items), deque[Future[Result]]()
    try:
        waiting.extend(islice(futures, ahead))
        while waiting:
            yield waiting[0].result()
            waiting.popleft()
            waiting.extend(islice(futures, 1))
    finally:
        for future in waiting:
            future.cancel()
        wait(waiting)


def map_threads(
    function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None
) -> Generator[Result, None, None]:
    """Yield the result of each item, in order, by `n_jobs` threads; with one job by the calling thread."""
    if (n_threads := n_cores(n_jobs)) == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield from map_ahead(lambda item: pool.submit(function, item), items, n_threads + 2)


def read_ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items in order; while the caller works on one, a thread reads the next. No item may be None."""
    iterator = iter(items)
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(next, iterator, None)
        while (item := future.result()) is not None:
            future = thread.submit(next, iterator, None)
            yield item


class RowThreads:
    """Threads that share the rows of a batch. They start with the first large batch."""

    def __init__(self, n_jobs: int):
        self._n_jobs = n_jobs
        self._pool: ThreadPoolExecutor | None = None
        self._pool_of = 0  # id of the process that made the threads

    def run(self, fill: Callable[[slice], None], n_rows: int, least: int) -> None:
        """Call `fill` for parts of the rows 0 .. n_rows - 1, at most one per thread, of at least `least` rows each."""
        n_parts = max(1, min(self._n_jobs, n_rows // least))
        bounds = [n_rows * i // n_parts for i in range(n_parts + 1)]
        first, *others = map(slice, bounds, bounds[1:])
        # The calling thread takes the first part. So with two threads each writes the same half of the batch in every
        # call, and its cache lines are still in its cache.
        running = [self._threads().submit(fill, part) for part in others]
        try:
            fill(first)
        finally:
            if running:  # wait takes 1 us for none
                wait(running)  # after an exception too: the caller may use the batch again
        for part in running:
            part.result()

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None or self._pool_of != os.getpid():  # a forked process does not have these threads
            self._pool = ThreadPoolExecutor(self._n_jobs - 1, thread_name_prefix="una_fast")
            self._pool_of = os.getpid()
        return self._pool
