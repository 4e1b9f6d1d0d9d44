"""What runs the tasks: threads by default, any executor of concurrent.futures, or a client of a Dask cluster."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from una_fast.errors import InputError
from una_fast.index.staged.plan import Budget
from una_fast.index.staged.tasks import Runner, is_loss, lost_worker
from una_fast.parallel import n_cores
from una_fast.storage.packs import write_pack
from una_fast.version import VERSION

RETRIES = 3  # by Dask, of a task whose worker died; here, of the check of the workers
PAUSE = 1.0  # s, in which a cluster starts another worker in the place of a lost one


@contextmanager
def open_executor(
    executor: Any, n_jobs: int | None, memory: int, progress: bool
) -> Iterator[tuple[Runner, Budget, Any]]:
    """(runner, budget of its tasks, function that checks that the workers can use a given folder) of an executor.

    executor: None for threads; an Executor; or a Dask client, which has `get_executor`. memory: bytes for all workers
    of an Executor together, or for each worker process of a cluster.
    """
    if executor is None:
        threads = n_cores(n_jobs)
        budget = Budget.of(memory, 1, threads)
        with ThreadPoolExecutor(threads) as pool:
            yield Runner(pool, threads, progress), budget, lambda work: None
        return
    if hasattr(executor, "get_executor"):
        threads_of: dict[str, int] = executor.nthreads()
        if not threads_of:
            raise InputError("the cluster has no worker: start some, then build again")
        task = Budget.of(memory, 1, max(threads_of.values())).task
        budget = Budget(task, sum(threads_of.values()))
        runner = Runner(executor.get_executor(pure=False, retries=RETRIES), budget.slots, progress)
        yield runner, budget, lambda work: _check_cluster(executor, work)
        return
    if not callable(getattr(executor, "submit", None)):
        raise InputError(
            f"executor is {type(executor).__name__}: give an executor of concurrent.futures or a Dask client"
        )
    slots = getattr(executor, "_max_workers", None) or n_cores(None)
    processes = 1 if isinstance(executor, ThreadPoolExecutor) else slots
    budget = Budget.of(memory, processes, slots // processes)
    yield Runner(executor, slots, progress), budget, lambda work: _check_executor(executor, work)


def worker_answer(token: Path) -> tuple[str, bool]:
    """Runs on a worker: its version of una_fast, and whether it sees the file `token`."""
    return VERSION, os.path.exists(token)  # noqa: PTH110  Path.exists raises if a folder may not be read


def _check_cluster(client: Any, work: Path) -> None:
    with _token(work) as token:
        for pause in (*[PAUSE] * RETRIES, 0):
            try:
                answers = client.run(worker_answer, token, on_error="return")
            except Exception as error:  # whatever Dask raises for functions that workers cannot load
                answers = {"the cluster": error}
            if not any(map(_is_lost, answers.values())):
                break
            time.sleep(pause)
    for worker, answer in answers.items():
        _check(f"worker {worker}", answer, work)


def _check_executor(executor: Executor, work: Path) -> None:
    if isinstance(executor, (ThreadPoolExecutor, ProcessPoolExecutor)):
        return
    with _token(work) as token:
        try:
            answer: Any = executor.submit(worker_answer, token).result()
        except Exception as error:
            answer = error
    _check("a worker", answer, work)


def _check(worker: str, answer: Any, work: Path) -> None:
    if isinstance(answer, Exception):
        raise (lost_worker("check", answer) if _is_lost(answer) else _no_answer(worker, answer)) from answer
    version, sees = answer
    if version != VERSION:
        raise InputError(
            f"{worker} has una_fast {version}, and this process {VERSION}: install the same version on both"
        )
    if not sees:
        raise InputError(f"{worker} does not see {work}: give an output folder on a disk that all machines share")


def _is_lost(answer: Any) -> bool:
    """True if a worker could not be reached: Dask closes its connection, or fails to open one."""
    return isinstance(answer, OSError) or (isinstance(answer, Exception) and is_loss(answer))


def _no_answer(worker: str, error: Exception) -> InputError:
    about = f"{type(error).__name__}: {error}"[:200]
    return InputError(
        f"{worker} cannot run una_fast {VERSION} ({about}): install una_fast {VERSION} there, with the same "
        "Python and packages"
    )


@contextmanager
def _token(work: Path) -> Iterator[Path]:
    token = work / f"check-{uuid.uuid4().hex}"
    write_pack(token, {}, {})
    try:
        yield token
    finally:
        token.unlink(missing_ok=True)
