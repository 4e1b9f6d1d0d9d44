"""Makes batches ahead of their steps, in a background thread."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

from train.steps.batches import Batch, BatchMaker
from train.steps.plan import Plan

AHEAD = 3  # batches that may be ready before their step, so that one slow batch delays none; 100 kB each


class Prefetcher:
    """Makes batches in a background thread, up to AHEAD before their step; iteration raises the thread's errors.

    busy: seconds in which the thread has made batches.
    """

    def __init__(self, plan: Plan, make: BatchMaker, start: int) -> None:
        self.busy = 0.0
        self._queue: queue.Queue[Any] = queue.Queue(AHEAD)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(plan, make, start), daemon=True, name="batches")
        self._thread.start()

    def _work(self, plan: Plan, make: BatchMaker, start: int) -> None:
        try:
            for step, epoch, rows in plan.batches(start):
                begun = time.perf_counter()
                batch = make(step, epoch, rows)
                self.busy += time.perf_counter() - begun
                if not self._put(batch):
                    return
            self._put(None)
        except BaseException as error:
            self._put(error)

    def _put(self, item: Any) -> bool:
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=0.2)
                return True
            except queue.Full:
                continue
        return False

    def __iter__(self) -> Iterator[Batch]:
        while True:
            item = self._queue.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()
