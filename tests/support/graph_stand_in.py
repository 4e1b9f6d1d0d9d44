"""Fake CUDA graphs without a GPU: a capture records PyTorch's kernels with their tensors, a replay runs them again.

What breaks with a real graph breaks here too: a replay writes where the capture wrote, all memory of a graph is NaN
before each replay, the capture itself changes nothing, Python numbers keep the values of the capture, and a kernel
whose result the host reads raises an error.
"""

from contextlib import contextmanager

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from train.loop import graphs, trainer

READS = ("aten::_local_scalar_dense", "aten::nonzero", "aten::is_nonzero", "aten::equal")


def tensors_of(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


class RecordedGraph(TorchDispatchMode):
    """Stands in for torch.cuda.CUDAGraph."""

    capturing = False  # whether any graph is being captured

    def __init__(self):
        super().__init__()
        self.kernels, self.own, self.before, self.replays = [], {}, {}, 0

    @classmethod
    def is_infra_mode(cls):
        """Return True; otherwise PyTorch would not run compiled functions inside this mode."""
        return True

    def __torch_dispatch__(self, kernel, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        assert kernel._schema.name not in READS, f"{kernel} waits for the GPU, which breaks a capture"
        assert kernel.namespace != "c10d", f"{kernel} is a collective call: other ranks may not capture it now"
        for given, argument in zip(args, kernel._schema.arguments, strict=False):
            if argument.alias_info and argument.alias_info.is_write:
                for tensor in tensors_of(given):
                    self._keep(tensor)
        results = kernel(*args, **kwargs)
        given = {id(tensor) for tensor in tensors_of((args, kwargs))}
        made = tensors_of(results)
        if not kernel.is_view:
            for tensor in made:
                if id(tensor) not in given:
                    self.own[tensor.untyped_storage()._cdata] = tensor
            self.kernels.append((kernel, args, kwargs, [None if id(x) in given else x for x in made]))
        return results

    def _keep(self, tensor):
        """Save memory from outside the graph before a kernel changes it."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self.own and storage._cdata not in self.before:
            self.before[storage._cdata] = (storage, storage.clone())

    @torch.no_grad()
    def end(self):
        """End the capture: undo all changes by its kernels, which a real capture only records."""
        for storage, content in self.before.values():
            storage.copy_(content)
        self.before.clear()

    @torch.no_grad()
    def replay(self):
        self.replays += 1
        for tensor in self.own.values():
            tensor.fill_(torch.nan if tensor.is_floating_point() else 0)
        for kernel, args, kwargs, made in self.kernels:
            if "empty" in kernel._schema.name:
                continue
            for tensor, again in zip(made, tensors_of(kernel(*args, **kwargs)), strict=True):
                if tensor is not None:
                    tensor.copy_(again)


@contextmanager
def capture(graph, pool=None, capture_error_mode="global"):
    """Stands in for torch.cuda.graph."""
    assert capture_error_mode == "thread_local"
    generator = torch.get_rng_state()
    RecordedGraph.capturing = True
    try:
        with graph:
            yield
    finally:
        RecordedGraph.capturing = False
        graph.end()
        torch.set_rng_state(generator)


def checked_step(optimizer, plain=torch.optim.AdamW.step):
    """Take a step, but raise an error where PyTorch would raise one or warn: the flag must be set in captures only."""
    assert all(group["capturable"] == RecordedGraph.capturing for group in optimizer.param_groups)
    return plain(optimizer)


def install(monkeypatch):
    """Let PyTorch capture graphs without a GPU; returns the list of graphs, which grows as they are made."""
    monkeypatch.setattr(graphs, "DEVICE", "cpu")
    monkeypatch.setattr(trainer, "DEVICE", "cpu")
    monkeypatch.setattr(torch.optim.AdamW, "step", checked_step)
    made = []

    def make():
        made.append(RecordedGraph())
        return made[-1]

    names = {"CUDAGraph": make, "graph": capture, "graph_pool_handle": lambda: 1, "set_sync_debug_mode": lambda mode: 0}
    for name, value in names.items():
        monkeypatch.setattr(torch.cuda, name, value)
    return made
