"""The tasks of a stage, run by an executor; a task whose file exists is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from una_fast.errors import InputError, counted

AHEAD = 2  # tasks that are submitted for each slot, so that no worker waits for its next one


@dataclass(frozen=True)
class Task:
    """A call of a function of a module, whose last act is to write the file `output`."""

    output: Path
    function: Callable[..., None]
    arguments: tuple[Any, ...]


class Runner:
    """Runs the tasks of a stage. slots: how many the executor runs at once."""

    def __init__(self, executor: Executor, slots: int, progress: bool):
        self._executor = executor
        self._slots = slots
        self._progress = progress

    def run(self, stage: str, tasks: Iterable[Task]) -> None:
        """Run the tasks that are not done; returns when all are.

        Raises:
            InputError: a worker was lost, or a task raised it; the running tasks have then ended.
        """
        todo = [task for task in tasks if not task.output.exists()]
        with tqdm(total=len(todo), desc=stage, unit=" tasks", disable=not self._progress) as bar:
            running: set[Future[None]] = set()
            try:
                for task in todo:
                    if len(running) >= AHEAD * self._slots:
                        running = self._wait(running, bar)
                    running.add(self._executor.submit(task.function, *task.arguments))
                while running:
                    running = self._wait(running, bar)
            except BaseException as error:
                for future in running:
                    future.cancel()
                wait(running)
                raise lost_worker(stage, error) if is_loss(error) else error from None
        if missing := [task.output for task in todo if not task.output.exists()]:
            raise InputError(
                f"{missing[0]}: a worker wrote it, and it is not there: give a folder that all workers see "
                f"({counted(len(missing), 'file')} missing after stage {stage})"
            )

    def _wait(self, running: set[Future[None]], bar: Any) -> set[Future[None]]:
        done, left = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()
            bar.update()
        return left


def is_loss(error: BaseException) -> bool:
    """True for the error of an executor that has lost a worker or its scheduler."""
    home = type(error).__module__.partition(".")[0]
    return isinstance(error, (BrokenExecutor, CancelledError)) or home in ("distributed", "ray")


def lost_worker(stage: str, error: BaseException) -> InputError:
    """What to say when `is_loss` is true."""
    return InputError(
        f"stage {stage}: a worker process was lost ({error or type(error).__name__}), perhaps because memory ran out; "
        "finished files are kept: run the same again to go on, and if it repeats, with a smaller `memory`"
    )
