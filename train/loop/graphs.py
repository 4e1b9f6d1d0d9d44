"""Captures whole optimiser steps, from the forward pass to AdamW, as CUDA graphs: one launch replaces a thousand.

A replay reads everything that changes between steps from GPU memory: token ids, learning rate, dropout seed, and the
state of optimiser and scaler. Nothing in a graph's memory outlives a replay, so graphs of all shapes share one pool.

With several ranks, a step is a chain of graphs with a collective call between any two: the call is made at each replay.
No graph contains a collective call, so each rank captures and replays its own shapes, whatever the other ranks do.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from train.distributed import EXCHANGE
from train.loop.data import Batch
from train.messages import tell_user
from una_fast.errors import InputError, first_line

DEVICE = "cuda"  # the type of device that can capture steps; tests replace it
MOST = 16  # maximum number of shapes, two per batch width (with and without negatives); other shapes run eagerly


class Graph(NamedTuple):
    """A captured step, the tensors that a replay reads, and the results that a replay overwrites."""

    pieces: list[Callable[[], Any]]  # to call in order: replays of graphs and, between them, collective calls
    inputs: list[Tensor]
    results: Any


class Graphs:
    """Takes optimiser steps: eagerly for the first batch of each shape, then by replaying a graph of that shape.

    The eager step allocates what a capture must not allocate: optimiser moments, library handles, caches and kernels.
    The function `step` must return a tuple of tensors. It must not read Python numbers such as `batch.step`, because a
    replay would use the number from the captured step.
    """

    def __init__(self, step: Callable[[Batch], Any], optimizer: torch.optim.Optimizer) -> None:
        self._step, self._optimizer = step, optimizer
        self._pool = torch.cuda.graph_pool_handle()
        self.captured: dict[Any, Graph] = {}
        self._ready: set[Any] = set()  # shapes to capture
        self._waits: Counter[Any] = Counter()  # steps of a shape that made the host wait; one is tolerated
        self._most = MOST

    def __call__(self, batch: Batch) -> Any:
        """Take one step on a batch."""
        inputs = tree_leaves((batch.parts, batch.positions))
        # the number of rows of all ranks, because it decides what a rank receives
        shape = (len(batch.rows), batch.n_views, *(tensor.shape for tensor in inputs))
        if shape in self._ready and len(self.captured) < self._most:
            self._ready.discard(shape)
            self._capture(shape, batch)
        if graph := self.captured.get(shape):
            torch._foreach_copy_(graph.inputs, inputs)
            for piece in graph.pieces:
                piece()
            return tree_map(torch.clone, graph.results)  # the next replay overwrites them
        if self._waits[shape] > 1 or len(self.captured) >= self._most:
            return self._step(batch)
        return self._step_eagerly(shape, batch)

    def close(self) -> None:
        """Free the graphs and their memory. Later steps run eagerly."""
        self._most = 0
        self.captured.clear()

    def _step_eagerly(self, shape: Any, batch: Batch) -> Any:
        """Take an eager step. Mark `shape` as ready to capture, unless the step made the host wait for the GPU."""
        with record_waits() as waits:
            results = self._step(batch)
        if not waits:
            self._ready.add(shape)
        elif self._waits[shape]:
            tell_user(f"--compile: some steps run eagerly, because the model or the loss waits for the GPU: {waits[0]}")
        self._waits[shape] += bool(waits)
        return results

    def _capture(self, shape: Any, batch: Batch) -> None:
        """Record a step's kernels and collective calls without running them. If memory runs out, free all graphs."""
        parts, positions = tree_map(torch.clone, (batch.parts, batch.positions))
        try:
            self._set_capturable(True)
            with recorded(self._pool) as pieces:
                results = self._step(replace(batch, parts=parts, positions=positions))
        except torch.OutOfMemoryError:
            self._optimizer.zero_grad()
            self.close()
            tell_user("--compile: the GPU's memory is too small for graphs: this run continues without them")
        except RuntimeError as error:  # the allocator and the random generator are unusable after it
            raise InputError(
                f"--compile: PyTorch cannot capture a step: {first_line(error)}: give --compile off"
            ) from error
        else:
            self.captured[shape] = Graph(pieces, tree_leaves((parts, positions)), results)
        finally:
            self._set_capturable(False)

    def _set_capturable(self, capturable: bool) -> None:
        """Set the flag `capturable`. AdamW requires it during a capture, and warns about it at other times."""
        for group in self._optimizer.param_groups:
            group["capturable"] = capturable


@contextmanager
def recorded(pool: Any) -> Iterator[list[Callable[[], Any]]]:
    """Capture the with block. Yield a list, which gets the replays of graphs and the collective calls between them."""
    pieces: list[Callable[[], Any]] = []

    def begin() -> None:
        graph = torch.cuda.CUDAGraph()
        # thread_local, because other threads that copy checkpoints may wait for the GPU
        capture.enter_context(torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"))
        pieces.append(graph.replay)

    def split(call: Callable[[], Any]) -> None:
        capture.close()
        pieces.append(call)
        begin()

    with ExitStack() as capture:
        begin()
        before = EXCHANGE.set(split)
        try:
            yield pieces
        finally:
            EXCHANGE.reset(before)


@contextmanager
def record_waits() -> Iterator[list[str]]:
    """Yield a list. After the block, it contains the file and line of each call that made the host wait for the GPU."""
    waits: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield waits
        finally:
            torch.cuda.set_sync_debug_mode("default")
    for warning in caught:
        if "synchronizing" in str(warning.message):
            waits.append(f"{warning.filename}:{warning.lineno}")
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
