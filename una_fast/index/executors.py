"""Runs the tasks of a staged build in threads, another executor or a Dask cluster, within a memory limit."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from una_fast.errors import InputError
from una_fast.parallel import map_ahead, n_cores
from una_fast.version import VERSION

logger = logging.getLogger(__name__)
SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d+)?)\s*([KMGT]?)(I?)B?\s*", re.IGNORECASE)
BASE = 300 << 20  # bytes of a process in addition to its tasks: numpy, pyarrow and the building process's tables
LEAST_MEMORY = 512 << 20  # bytes: the smallest accepted limit
TEXT_FACTOR = 10  # scanning a split takes this many bytes of memory per byte of text (measured)
SMALLEST_SPLIT, LARGEST_SPLIT = 1 << 20, 16 << 20  # bytes of text per split; larger splits save no time
N_BUCKETS = 4096  # string hashes are divided into these buckets; a hash range is one or more consecutive buckets


def memory_bytes(memory: str | int | None) -> int:
    """Convert a size such as "2GB" or "512MiB" to bytes. None is half of this machine's memory, or 2 GiB if unknown."""
    if memory is None:
        try:
            return max(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2, LEAST_MEMORY)
        except (AttributeError, ValueError, OSError):
            return 2 << 30
    match = SIZE.fullmatch(str(memory))
    if not match:
        raise InputError(f"memory={memory!r}: must be a size such as '2GB' or '512MiB'")
    number, prefix, binary = match.groups()
    n_bytes = int(float(number) * (1024 if binary else 1000) ** " KMGT".index(prefix.upper() or " "))
    if n_bytes < LEAST_MEMORY:
        raise InputError(f"memory={memory!r}: must be at least {LEAST_MEMORY >> 20}MiB")
    return n_bytes


def task_memory(memory: int, processes: int, threads_per_process: int) -> int:
    """Divide `memory` bytes among the threads of all processes. Return the bytes for one task."""
    slots = processes * threads_per_process
    task = (memory - processes * BASE) // (slots + 1)  # the building process also has a split in memory
    if task < TEXT_FACTOR * SMALLEST_SPLIT:
        least = processes * BASE + (slots + 1) * TEXT_FACTOR * SMALLEST_SPLIT
        raise InputError(
            f"memory: {slots} concurrent tasks need at least {least >> 20:,} MiB: give more memory, or fewer workers"
        )
    return task


@dataclass(frozen=True)
class Runner:
    """An executor, and the limits of the tasks that a staged build runs in it."""

    executor: Executor
    slots: int  # tasks that run at the same time
    task_bytes: int  # the memory limit of a task
    progress: bool  # whether to show a progress bar

    @classmethod
    def on(cls, executor: Any, work: Path, memory: str | int | None, progress: bool) -> Runner:
        """Make a runner for an executor of concurrent.futures or for a Dask client, and check Dask's workers.

        All workers must have access to the folder `work`. `memory` limits all workers of an executor together, or each
        worker process of a cluster.
        """
        if hasattr(executor, "get_executor"):
            n_threads = _checked_workers(executor, work)
            task_bytes = task_memory(memory_bytes(memory), 1, max(n_threads))
            return cls(executor.get_executor(pure=False, retries=3), sum(n_threads), task_bytes, progress)
        if not isinstance(executor, Executor):
            kind = type(executor).__name__
            raise InputError(f"executor: is {kind}, must be an executor of concurrent.futures or a Dask client")
        slots = getattr(executor, "_max_workers", None) or n_cores(None)
        processes = 1 if isinstance(executor, ThreadPoolExecutor) else slots
        return cls(executor, slots, task_memory(memory_bytes(memory), processes, slots // processes), progress)

    def split_bytes(self) -> int:
        """Return how many bytes of text one task should scan."""
        return min(max(self.task_bytes // TEXT_FACTOR, SMALLEST_SPLIT), LARGEST_SPLIT)

    def n_partitions(self, text_bytes: int) -> int:
        """Return n for a corpus of this size: there are n hash ranges and n rank ranges. A task processes one range."""
        return min(max(-(-text_bytes // (self.task_bytes // 2)), self.slots), N_BUCKETS)

    def run(self, stage: str, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Let the executor call ``function(*task)`` for each task, and return the results in order.

        If a task or a worker fails, `run` waits for the running tasks and then raises.
        """
        logger.info("stage %s", stage)
        ended = map_ahead(lambda task: self.executor.submit(function, *task), tasks, self.slots + 2)
        try:
            with closing(ended), tqdm(ended, desc=stage, unit=" tasks", disable=not self.progress) as bar:
                return list(bar)
        except Exception as error:
            if not isinstance(error, (BrokenExecutor, CancelledError)) and "distributed." not in type(error).__module__:
                raise
            raise InputError(
                f"stage {stage}: a worker process was lost ({error or type(error).__name__}), perhaps because memory "
                "ran out; finished files are kept: start the build again; if this recurs, use a smaller `memory`"
            ) from None


def _checked_workers(client: Any, work: Path) -> list[int]:
    """Return the number of threads of each worker of a Dask cluster.

    Raises InputError without a worker, or if a worker has another version of una_fast or no access to `work`.
    """
    n_threads = list(client.nthreads().values())
    if not n_threads:
        raise InputError("the cluster has no worker: start some, then build again")
    try:
        answers = client.run(worker_answer, work, on_error="return")
    except Exception as error:  # Dask raises various types if workers cannot load the function
        answers = {"of the cluster": error}
    expected = (VERSION, True)
    for worker, answer in answers.items():
        if answer != expected:
            raise InputError(
                f"worker {worker} answers {answer!r}, not {expected}: it must have una_fast {VERSION}, with the "
                f"same Python and packages, and access to {work}, on a disk that all machines share"
            )
    return n_threads


def worker_answer(work: Path) -> tuple[str, bool]:
    """Return this worker's version of una_fast, and whether it has access to `work`. Runs on each Dask worker."""
    return VERSION, work.exists()
