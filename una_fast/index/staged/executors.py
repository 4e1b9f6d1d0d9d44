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
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from traceback import walk_tb
from typing import Any

from tqdm import tqdm

from una_fast.errors import InputError
from una_fast.parallel import n_cores
from una_fast.version import VERSION

logger = logging.getLogger(__name__)
AHEAD = 2  # tasks that are submitted for each slot, so that no worker waits for its next one
RETRIES = 3  # by Dask, of a task whose worker died
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d+)?)\s*([KMGT]I?|)B?\s*", re.IGNORECASE)
BASE = 300 << 20  # bytes: a process with numpy and pyarrow imported, and the tables of the coordinator
LEAST = 512 << 20
TEXT_FACTOR = 10  # bytes that scanning a split takes for each byte of its text (measured by bench.scale.staged)
RANK_FACTOR = 4  # bytes that sorting a range of ranks takes for each byte of its strings and scores
SMALLEST, LARGEST = 1 << 20, 128 << 20  # bytes of text of a split: larger ones save nothing more
MAX_PARTITIONS = 4096


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
    if not match or isinstance(memory, bool):
        raise InputError(f"memory is {memory!r}: give a size, as '2GB' or '512MiB'")
    n_bytes = int(float(match[1]) * UNITS[match[2].upper()])
    if n_bytes < LEAST:
        raise InputError(f"memory is {memory!r}: a build takes at least {LEAST >> 20} MiB; give that or more")
    return n_bytes


@dataclass(frozen=True)
class Budget:
    """task: bytes of memory that one task may take; slots: how many tasks run at once."""

    task: int
    slots: int

    @classmethod
    def of(cls, memory: int, processes: int, threads: int) -> Budget:
        """The budget of `processes` processes, of `threads` threads each, that share `memory` bytes.

        Raises InputError if that is not enough for the smallest splits.
        """
        task = (memory - processes * BASE) // (processes * threads)
        if task < TEXT_FACTOR * SMALLEST:
            least = processes * (BASE + threads * TEXT_FACTOR * SMALLEST)
            raise InputError(
                f"memory: {processes * threads} tasks at once take at least {least >> 20:,} MiB: give more memory, or "
                "fewer workers"
            )
        return cls(task, processes * threads)

    def split_bytes(self) -> int:
        """Bytes of the text of a split."""
        return min(max(self.task // TEXT_FACTOR, SMALLEST), LARGEST)

    def n_partitions(self, text_bytes: int) -> int:
        """How many hash ranges: a task holds the distinct strings of one, and their numbers in all splits."""
        return min(max(-(-text_bytes // (self.task // 2)), 1), MAX_PARTITIONS)

    def n_ranges(self, n_bytes: int) -> int:
        """How many ranges of ranks, for `n_bytes` bytes of distinct strings and scores."""
        return max(-(-RANK_FACTOR * n_bytes // self.task), 1)


@dataclass(frozen=True)
class Task:
    """A call of a function of a module, whose last act is to write the file `output`; done if that file exists.

    output: the last argument of the function, after `arguments`.
    """

    output: Path
    function: Callable[..., None]
    arguments: tuple[Any, ...]


class Runner:
    """Runs the tasks of a stage. budget: the memory of each, and how many the executor runs at once."""

    def __init__(self, executor: Executor, budget: Budget, progress: bool):
        self.budget = budget
        self._executor = executor
        self._progress = progress

    def run(self, stage: str, tasks: Iterable[Task]) -> None:
        """Run the tasks that are not done; returns when all are.

        Raises:
            InputError: a worker was lost, or a task raised it; the running tasks have then ended.
        """
        todo = [task for task in tasks if not task.output.exists()]
        logger.info("stage %s: %d tasks", stage, len(todo))
        with tqdm(total=len(todo), desc=stage, unit=" tasks", disable=not self._progress) as bar:
            running: set[Future[None]] = set()
            waiting = iter(todo)
            try:
                while True:
                    for task in islice(waiting, AHEAD * self.budget.slots - len(running)):
                        running.add(self._executor.submit(task.function, *task.arguments, task.output))
                    if not running:
                        break
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        future.result()
                        bar.update()
            except BaseException as error:
                for future in running:
                    future.cancel()
                wait(running)
                raise _lost_worker(stage, error) if _is_loss(error) else error from None


@contextmanager
def open_runner(executor: Any, n_jobs: int | None, memory: str | int | None, progress: bool) -> Iterator[Runner]:
    """The runner of tasks on an executor: None for threads; an Executor; or a Dask client, which has `get_executor`.

    memory: for all workers of an Executor together, or for each worker process of a cluster; see `memory_bytes`.
    """
    n_bytes = memory_bytes(memory)
    if executor is None:
        with ThreadPoolExecutor(n_cores(n_jobs)) as pool:
            yield Runner(pool, Budget.of(n_bytes, 1, n_cores(n_jobs)), progress)
    elif hasattr(executor, "get_executor"):
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


def check_workers(executor: Any, folder: Path) -> None:
    """Check that the workers of an executor, all of a cluster's, have this version of una_fast, and see `folder`."""
    if executor is None or isinstance(executor, (ThreadPoolExecutor, ProcessPoolExecutor)):
        return
    try:
        if hasattr(executor, "get_executor"):
            answers = executor.run(worker_answer, folder, on_error="return")
        else:
            answers = {"": executor.submit(worker_answer, folder).result()}
    except Exception as error:  # whatever an executor raises for functions that workers cannot load
        answers = {"": error}
    for address, answer in answers.items():
        worker = f"worker {address}" if address else "a worker"
        if isinstance(answer, OSError) or (isinstance(answer, Exception) and _is_loss(answer)):  # a closed connection
            raise _lost_worker("check", answer) from answer
        if isinstance(answer, Exception):
            about = f"{type(answer).__name__}: {answer}"[:200]
            raise InputError(
                f"{worker} cannot run una_fast {VERSION} ({about}): install una_fast {VERSION} there, with the same "
                "Python and packages"
            ) from answer
        version, sees_folder = answer
        if version != VERSION:
            raise InputError(
                f"{worker} has una_fast {version}, and this process {VERSION}: install the same version on both"
            )
        if not sees_folder:
            raise InputError(f"{worker} does not see {folder}: give an output folder on a disk that all machines share")


def worker_answer(folder: Path) -> tuple[str, bool]:
    """Runs on a worker: its version of una_fast, and whether it sees the folder."""
    return VERSION, os.path.exists(folder)  # noqa: PTH110  Path.exists raises if a folder may not be read


def _is_loss(error: BaseException) -> bool:
    """True for the error of an executor that has lost a worker or its scheduler."""
    modules = [type(error).__module__]
    if isinstance(error, TypeError):  # of Dask, if the worker is lost between the end of a task and its answer
        modules += [frame.f_globals["__name__"] for frame, _ in walk_tb(error.__traceback__)][-1:]
    in_library = any(module.partition(".")[0] in ("distributed", "ray") for module in modules)
    return in_library or isinstance(error, (BrokenExecutor, CancelledError))


def _lost_worker(stage: str, error: BaseException) -> InputError:
    return InputError(
        f"stage {stage}: a worker process was lost ({error or type(error).__name__}), perhaps because memory ran out; "
        "finished files are kept: run the same again, and if it repeats, with a smaller `memory`"
    )
