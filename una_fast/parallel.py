"""Counts cores and free memory, and runs work in threads. The kernels release the GIL, so threads run in parallel."""

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
    """Return `n_jobs` or, if it is None, the number of cores that this process may use."""
    if n_jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if (n := integer("n_jobs", n_jobs)) < 1:
        raise InputError(f"n_jobs={n}: must be at least 1, or None for all cores")
    return n


def free_memory() -> int | None:
    """Return how many bytes of memory are available without swapping, or None on systems other than Linux."""
    file = Path("/proc/meminfo")
    available = re.search(r"^MemAvailable:\s+(\d+) kB$", file.read_text() if file.exists() else "", re.MULTILINE)
    return int(available[1]) * 1024 if available else None


def map_ahead(
    submit: Callable[[Item], Future[Result]], items: Iterable[Item], ahead: int
) -> Generator[Result, None, None]:
    """Submit up to `ahead` items before waiting for the first result, and yield the results in order.

    The calling thread reads the items. If an item fails or the caller stops early, the running items are completed.
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
    """Call `function` on each item in `n_jobs` threads, and yield the results in order. n_jobs=1 starts no thread."""
    if (n_threads := n_cores(n_jobs)) == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield from map_ahead(lambda item: pool.submit(function, item), items, n_threads + 2)


def read_ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items in order. While the caller uses an item, a thread reads the next one. No item may be None."""
    iterator = iter(items)
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(next, iterator, None)
        while (item := future.result()) is not None:
            future = thread.submit(next, iterator, None)
            yield item


class RowThreads:
    """Threads that fill the rows of a batch together. They start when a batch first needs them."""

    def __init__(self, n_jobs: int):
        self._n_jobs = n_jobs
        self._pool: ThreadPoolExecutor | None = None
        self._pool_pid = 0  # the process that started the threads

    def run(self, fill: Callable[[slice], None], n_rows: int, least: int) -> None:
        """Divide the rows 0 to n_rows - 1 into at most one part per thread, and call `fill` for each part.

        Each part has at least `least` rows, unless `n_rows` is smaller.
        """
        n_parts = max(1, min(self._n_jobs, n_rows // least))
        bounds = [n_rows * i // n_parts for i in range(n_parts + 1)]
        first, *others = map(slice, bounds, bounds[1:])
        # The calling thread fills the first part. With two threads, each one fills the same half of the batch in
        # every call, and finds its cache lines in its core's cache.
        running = [self._threads().submit(fill, part) for part in others]
        try:
            fill(first)
        finally:
            if running:  # an empty wait takes 1 us
                wait(running)  # after an exception too, because the caller may reuse the batch
        for part in running:
            part.result()

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None or self._pool_pid != os.getpid():  # a forked process does not inherit threads
            self._pool = ThreadPoolExecutor(self._n_jobs - 1, thread_name_prefix="una_fast")
            self._pool_pid = os.getpid()
        return self._pool
