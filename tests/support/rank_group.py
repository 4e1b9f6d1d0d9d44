"""Processes that are the ranks of a process group, and that run one function after another on all ranks."""

import multiprocessing
import os
from contextlib import contextmanager

import torch

from support.small_runs import free_port
from train import distributed

SECONDS = 180  # after that, a rank waits for a call that another does not make; one took 61 s on a busy machine


def serve(rank, world, port, requests):
    """Join the group as one of `world` ranks, and make each call that `requests` sends, until it sends None."""
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world),
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
    )  # fmt: skip
    group = distributed.join_group("cpu")
    while request := requests.recv():
        function, *arguments = request
        function(group, *arguments)
        requests.send("done")
    torch.distributed.destroy_process_group()


class Group:
    """A process group that makes many calls, because starting the processes takes longer than a call."""

    def __init__(self, world):
        context, port = multiprocessing.get_context("forkserver"), free_port()
        self._requests, self.processes = [], []
        for rank in range(world):
            ours, theirs = context.Pipe()
            self.processes.append(context.Process(target=serve, args=(rank, world, port, theirs), daemon=True))
            self.processes[-1].start()
            self._requests.append(ours)
            theirs.close()

    def call(self, function, *arguments):
        """Call function(ranks, *arguments) on all ranks."""
        for requests in self._requests:
            requests.send((function, *arguments))
        assert all(requests.poll(SECONDS) for requests in self._requests), "a rank waits for another one"
        # EOFError: a rank died, and its message is on standard error; the other ranks lose the connection to it
        assert [requests.recv() for requests in self._requests] == ["done"] * len(self._requests)

    def close(self):
        for requests in self._requests:
            requests.send(None)
        for process in self.processes:
            process.join()
        assert [process.exitcode for process in self.processes] == [0] * len(self.processes)


@contextmanager
def started_groups():
    """Yield a function that returns the group of `world` ranks, and starts it at the first call."""
    multiprocessing.set_forkserver_preload(["train.loop.trainer"])  # imports torch once for all ranks
    made = {}
    yield lambda world: made.get(world) or made.setdefault(world, Group(world))
    for group in made.values():
        group.close()
