"""Runs the tasks of a stage within a memory: by threads, an executor of concurrent.futures, or a Dask cluster."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from una_fast.errors import InputError
from una_fast.parallel import n_cores
from una_fast.version import VERSION

logger = logging.getLogger(__name__)
RETRIES = 3  # by Dask, of a task whose worker died
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d+)?)\s*([KMGT]I?|)B?\s*", re.IGNORECASE)
BASE = 300 << 20  # bytes: a process with numpy and pyarrow imported, and the tables of the coordinator
LEAST = 512 << 20
TEXT_FACTOR = 10  # bytes that scanning a split takes for each byte of its text (measured by bench.scale.staged)
RANK_FACTOR = 4  # bytes that sorting a range of ranks takes for each byte of its strings and scores
SMALLEST, LARGEST = 1 << 20, 16 << 20  # bytes of text of a split: larger ones save nothing more
N_BUCKETS = 4096  # of hashes of strings; a hash range is some of them


def memory_bytes(memory: str | int | None) -> int:
    """Bytes of "2GB", "512MiB" or a number; of None half of this machine's memory, 2 GiB where the system is silent.

    Raises InputError for anything else, and below 512 MiB.
    """
    if memory is None:
        try:
            return max(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2, LEAST)
        except (AttributeError, ValueError, OSError):
            return 2 << 30
    match = SIZE.fullmatch(str(memory))
    if not match:
        raise InputError(f"memory is {memory!r}: give a size, as '2GB' or '512MiB'")
    n_bytes = int(float(match[1]) * UNITS[match[2].upper()])
    if n_bytes < LEAST:
        raise InputError(f"memory is {memory!r}: a build takes at least {LEAST >> 20} MiB; give that or more")
    return n_bytes


@dataclass(frozen=True)
class Budget:
    """What the tasks of a build may take.

    Attributes:
        task: Bytes of memory of one task.
        slots: How many tasks run at once.
    """

    task: int
    slots: int

    @classmethod
    def of(cls, memory: int, processes: int, threads: int) -> Budget:
        """The budget of `processes` processes, of `threads` threads each, that share `memory` bytes.

        Raises InputError if that is not enough for the smallest splits.
        """
        slots = processes * threads
        task = (memory - processes * BASE) // (slots + 1)  # the process that builds holds a split too
        if task < TEXT_FACTOR * SMALLEST:
            least = processes * BASE + (slots + 1) * TEXT_FACTOR * SMALLEST
            raise InputError(
                f"memory: {slots} tasks at once take at least {least >> 20:,} MiB: give more memory, or fewer workers"
            )
        return cls(task, slots)

    def split_bytes(self) -> int:
        """Bytes of the text of a split."""
        return min(max(self.task // TEXT_FACTOR, SMALLEST), LARGEST)

    def n_partitions(self, text_bytes: int) -> int:
        """How many hash ranges: a task holds the distinct strings of one, and their numbers in all splits."""
        return min(max(-(-text_bytes // (self.task // 2)), 1), N_BUCKETS)

    def n_ranges(self, n_bytes: int) -> int:
        """How many ranges of ranks, for `n_bytes` bytes of distinct strings and scores."""
        return max(-(-RANK_FACTOR * n_bytes // self.task), 1)


@dataclass(frozen=True)
class Runner:
    """Runs the tasks of a stage. budget: the memory of each, and how many the executor runs at once."""

    executor: Executor
    budget: Budget
    progress: bool

    def run(self, stage: str, function: Callable[..., None], tasks: Iterable[tuple[Any, ...]]) -> None:
        """Call ``function(*task)``, a function of a module, for each task; a few more are asked for than run at once.

        Raises:
            InputError: a worker was lost, or a task raised it; the running tasks have then ended.
        """
        logger.info("stage %s", stage)
        running: set[Future[None]] = set()
        with tqdm(desc=stage, unit=" tasks", disable=not self.progress) as bar:
            try:
                for task in tasks:
                    running.add(self.executor.submit(function, *task))
                    while len(running) > self.budget.slots + 1:
                        running = self._ended(running, bar)
                while running:
                    running = self._ended(running, bar)
            except BaseException as error:
                for future in running:
                    future.cancel()
                wait(running)
                raise _lost_worker(stage, error) if _is_loss(error) else error from None

    @staticmethod
    def _ended(running: set[Future[None]], bar: Any) -> set[Future[None]]:
        """The tasks that still run when at least one has ended."""
        ended, running_on = wait(running, return_when=FIRST_COMPLETED)
        for future in ended:
            future.result()
        bar.update(len(ended))
        return running_on


@contextmanager
def open_runner(executor: Any, n_jobs: int | None, memory: str | int | None, progress: bool) -> Iterator[Runner]:
    """The runner of tasks on an executor: None for threads; an Executor; or a Dask client, which has `get_executor`.

    memory: for all workers of an Executor together, or for each worker process of a cluster; see `memory_bytes`.
    """
    n_bytes = memory_bytes(memory)
    if executor is None:
        with ThreadPoolExecutor(n_cores(n_jobs)) as pool:
            yield Runner(pool, Budget.of(n_bytes, 1, n_cores(n_jobs)), progress)
    elif is_cluster(executor):
        threads_of: dict[str, int] = executor.nthreads()
        if not threads_of:
            raise InputError("the cluster has no worker: start some, then build again")
        budget = replace(Budget.of(n_bytes, 1, max(threads_of.values())), slots=sum(threads_of.values()))
        yield Runner(executor.get_executor(pure=False, retries=RETRIES), budget, progress)
    elif callable(getattr(executor, "submit", None)):
        slots = getattr(executor, "_max_workers", None) or n_cores(None)
        processes = 1 if isinstance(executor, ThreadPoolExecutor) else slots
        yield Runner(executor, Budget.of(n_bytes, processes, slots // processes), progress)
    else:
        raise InputError(
            f"executor is {type(executor).__name__}: give an executor of concurrent.futures or a Dask client"
        )


def is_cluster(executor: Any) -> bool:
    """Whether an executor is a client of a Dask cluster."""
    return hasattr(executor, "get_executor")


def check_workers(executor: Any, folder: Path) -> None:
    """Raise InputError unless all workers of a cluster have this version of una_fast, and see `folder`."""
    if not is_cluster(executor):
        return
    try:
        answers = executor.run(worker_answer, folder, on_error="return")
    except Exception as error:  # whatever it raises for functions that workers cannot load
        answers = {"of the cluster": error}
    for worker, answer in answers.items():
        if answer != (VERSION, True):
            raise InputError(
                f"worker {worker} answers {answer!r}, not {(VERSION, True)}: it must have una_fast {VERSION}, with the "
                f"same Python and packages, and see {folder}, on a disk that all machines share"
            )


def worker_answer(folder: Path) -> tuple[str, bool]:
    """Runs on a worker: its version of una_fast, and whether it sees the folder."""
    return VERSION, folder.exists()


def _is_loss(error: BaseException) -> bool:
    """True for the error of an executor that has lost a worker or its scheduler."""
    return isinstance(error, (BrokenExecutor, CancelledError)) or type(error).__module__.startswith("distributed.")


def _lost_worker(stage: str, error: BaseException) -> InputError:
    return InputError(
        f"stage {stage}: a worker process was lost ({error or type(error).__name__}), perhaps because memory ran out; "
        "finished files are kept: run the same again, and if it repeats, with a smaller `memory`"
    )
