"""A card that is none: tensors lie on the CPU, and answer and are watched as if they lay on a GPU.

PyTorch's CPU build cannot run a backward pass over FakeTensors of a GPU ("Cannot access accelerator device when none
is available"). Here every kernel computes, so that losses can be compared with those of a CPU, while the code under
test takes its branches for device type "cuda".
"""

from contextlib import ExitStack, contextmanager
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

CARD, HOST = torch.device("cuda", 0), torch.device("cpu")
FACTORIES = {
    getattr(torch, name): name
    for name in "tensor as_tensor zeros ones full empty arange eye rand randn randint randperm linspace".split()
}
LIKE = {getattr(torch, f"{name}_like") for name in ("zeros", "ones", "full", "empty", "rand", "randn")}
WAITS = {"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::equal"}


def is_on_host(tensor):
    return getattr(tensor, "lies_on_host", False)


def device_of(tensor):
    return HOST if is_on_host(tensor) else CARD


def on_host(tensor, is_so=True):
    tensor.lies_on_host = is_so
    return tensor


class Watch(TorchDispatchMode):
    """Notes each kernel that a card would wait for, and each that reads a tensor of the host."""

    def __init__(self, findings, kernels):
        super().__init__()
        self.findings, self.kernels = findings, kernels

    def __torch_dispatch__(self, kernel, types, args=(), kwargs=None):
        name, kwargs = kernel._schema.name, kwargs or {}
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        host = [tensor for tensor in tensors if is_on_host(tensor)]
        if len(host) < len(tensors):
            self.kernels.append(name)
            by_mask = name == "aten::index" and any(i is not None and i.dtype == torch.bool for i in args[1])
            if name in WAITS or by_mask:
                self.findings.append(f"{name} waits for the card")
            if any(tensor.ndim for tensor in host) and name != "aten::copy_":
                self.findings.append(f"{name} reads a tensor of the host")
        result = kernel(*args, **kwargs)
        if host and len(host) == len(tensors):
            for leaf in tree_leaves(result):
                if isinstance(leaf, torch.Tensor):
                    on_host(leaf)
        return result


class Card(TorchFunctionMode):
    """Puts tensors on the card that is none, by the devices that the code under test names."""

    def __init__(self, findings):
        super().__init__()
        self.findings = findings

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", "")
        if function == torch.Tensor.device.__get__:
            return device_of(args[0])
        if function in FACTORIES or function in LIKE:
            return self._made(function, args, kwargs)
        if name == "pin_memory":
            return on_host(args[0].detach().clone())
        if name in ("to", "cpu", "cuda") and isinstance(args[0], torch.Tensor):
            return self._moved(function, name, args, kwargs)
        if name == "__getitem__" and any(
            isinstance(index, list) for index in tree_leaves(args[1], list.__instancecheck__)
        ):
            self.findings.append("a list as an index makes a tensor on the host")
        if name == "copy_" and is_on_host(args[0]) and not is_on_host(args[1]):
            self._copied(kwargs.get("non_blocking", len(args) > 2 and args[2]))
        return function(*args, **kwargs)

    def _made(self, function, args, kwargs):
        device = torch.device(kwargs.pop("device", None) or (HOST if function in FACTORIES else device_of(args[0])))
        kwargs.pop("pin_memory", None)
        with torch._C.DisableTorchFunction():
            return on_host(function(*args, **kwargs), device.type == "cpu")

    def _moved(self, function, name, args, kwargs):
        tensor, *others = args
        named = kwargs.pop("device", None)
        devices = [
            value for value in (*others, named) if isinstance(value, (str, torch.device, int)) and value is not True
        ]
        if name == "to" and not devices:
            return function(*args, **kwargs)
        device = HOST if name == "cpu" else CARD if name == "cuda" else torch.device(devices[0])
        types = [value for value in (*others, kwargs.get("dtype")) if isinstance(value, torch.dtype)]
        if device.type == "cpu" and not is_on_host(tensor):
            self._copied(kwargs.get("non_blocking", False))
        moved = tensor.to(types[0]) if types else tensor
        return on_host(
            moved.clone() if isinstance(moved, torch.nn.Parameter) or moved is tensor else moved, device.type == "cpu"
        )

    def _copied(self, non_blocking):
        self.findings.append("a copy to the host" if non_blocking else "a copy to the host, which waits")


class Event:
    """An event of a stream that has always passed."""

    def __init__(self, enable_timing=False):
        pass

    record = synchronize = lambda self: None

    def query(self):
        return True

    def elapsed_time(self, other):
        return 0.0


@contextmanager
def fake_card():
    """Inside, device "cuda" is the card that is none; gives the list of findings, and the kernels that ran there."""
    findings, kernels, autocast, scaler, from_numpy = [], [], torch.autocast, torch.amp.GradScaler, torch.from_numpy
    grouped = torch._C._group_tensors_by_device_and_dtype

    def of_card(*args):
        return {(CARD, dtype): group for (_, dtype), group in grouped(*args).items()}

    with ExitStack() as held:
        for owner, name, stand_in in (
            (torch, "autocast", lambda device_type, *args, **named: autocast("cpu", *args, **named)),
            (torch.amp, "GradScaler", lambda device=None, **named: scaler("cpu", **named)),
            (torch._C, "_group_tensors_by_device_and_dtype", of_card),
            (torch, "from_numpy", lambda array: on_host(from_numpy(array))),
            (torch.cuda, "Event", Event),
            (torch.cuda, "get_device_name", lambda device: "a card that is none"),
        ):
            held.enter_context(mock.patch.object(owner, name, stand_in))
        held.callback(torch.use_deterministic_algorithms, False)
        held.enter_context(Card(findings))
        held.enter_context(Watch(findings, kernels))
        yield findings, kernels
