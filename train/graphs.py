"""An encoder with fewer launches: its layers compiled, its way through a part of a batch replayed as CUDA graphs.

At batch 64 most kernels of BERT-base run for less time than a processor takes to launch them. `--compile` chooses:

- graphs: the plain kernels, captured once a shape and replayed. Nothing is compiled, the dropout masks are the same
  (a replay reads the seed and offset that the device's generator then has), and so are the results.
- layers: torch.compile of each layer, which fuses what lies between the matrix products. One layer's code serves all
  layers, so a shape costs seconds, not the minute of a whole model; rounding differs from the plain kernels.
- both: the compiled layers inside the graphs.

Letters: B rows, L tokens, D width.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, cast

import torch
from torch import Tensor, nn

from una_fast.errors import InputError

SHAPES = 64  # of parts that a run may meet: 8 widths, with and without negatives, the last batch, training or not


class _Part(nn.Module):
    """What a graph holds: token ids in, [CLS] out. Autocast is entered inside, so that no capture meets its cache."""

    def __init__(
        self,
        backbone: nn.Module,
        first_token: Callable[[dict[str, Tensor]], Tensor],
        names: tuple[str, ...],
        autocast: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        super().__init__()
        self.backbone = backbone  # its parameters are what a graph has gradients for
        self._first_token, self._names, self._autocast = first_token, names, autocast

    def forward(self, *tensors: Tensor) -> Tensor:
        with self._autocast():
            return self._first_token(dict(zip(self._names, tensors, strict=True)))


class Graphs:
    """[CLS] of a part (B, L), forwards and backwards, by torch.cuda.make_graphed_callables: one a place and shape.

    A graph ends where ranks meet: loss, gathering, DDP and the optimiser stay outside and take one rank or many,
    gradient caching and any loss as they come. The alternative, a whole step in one graph, would save some hundred
    launches more, but needs an optimiser of its own kind and NCCL inside the capture. torch.compile's own graphs
    (mode="reduce-overhead") re-record by guesses about what is still alive; here every buffer has one owner.

    Parts of one step have graphs of their own, by `place`: a second replay would overwrite what the first keeps for
    its backward pass. Graphs of one place are never between forward and backward together, so they share memory.
    """

    def __init__(
        self,
        backbone: nn.Module,
        first_token: Callable[[dict[str, Tensor]], Tensor],
        device: torch.device,
        autocast: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        self._backbone, self._first_token = backbone, first_token
        self._device, self._autocast = device, autocast
        self._graphs: dict[tuple, Callable[..., Tensor]] = {}
        self._memory: dict[int, Any] = {}  # by place

    def __call__(self, place: int, part: dict[str, Tensor]) -> Tensor:
        """[CLS] (B, D) of token ids (B, L); `place` numbers the parts of a step."""
        key = (place, *((name, *tensor.shape) for name, tensor in part.items()))
        if key not in self._graphs:
            self._graphs[key] = self._capture(place, part)
        return self._graphs[key](*part.values()).clone()  # the graph's own output is overwritten by its next replay

    def _capture(self, place: int, part: dict[str, Tensor]) -> Callable[..., Tensor]:
        if place not in self._memory:
            self._memory[place] = torch.cuda.graph_pool_handle()
        module = _Part(self._backbone, self._first_token, tuple(part), self._autocast)
        inputs = tuple(tensor.clone() for tensor in part.values())
        try:
            # the trial runs before a capture must neither use up random numbers nor see the caller's autocast cache
            with (
                torch.random.fork_rng(devices=[self._device]),
                torch.autocast(self._device.type, enabled=False),
                torch.enable_grad(),
            ):
                return cast(_Part, torch.cuda.make_graphed_callables(module, inputs, pool=self._memory[place]))
        except RuntimeError as error:
            shape = " x ".join(map(str, inputs[0].shape))
            raise InputError(
                f"the encoder's {shape} tokens cannot be captured as CUDA graphs ({str(error).splitlines()[0]}): "
                "give --compile off or layers; if memory ran out, a smaller --grad-cache helps too"
            ) from error


def compile_layers(backbone: nn.Module) -> None:
    """Have torch.compile make the code of a model's layers, or of the whole where it has none; names stay."""
    torch._dynamo.config.recompile_limit = SHAPES  # of one layer's code; the default of 8 ends in uncompiled code
    torch._dynamo.config.accumulated_recompile_limit = 4 * SHAPES
    torch._dynamo.config.optimize_ddp = False  # cuts what is compiled at DDP's buckets: a layer is small enough
    lists = [module for module in backbone.modules() if isinstance(module, nn.ModuleList)]
    for module in max(lists, key=len, default=[backbone]):
        module.compile(dynamic=False)  # few shapes, each with code of its own; an uneven last batch is one more


def uncompiled() -> AbstractContextManager[Any]:
    """Within it, compiled layers run as written: evaluation meets too many shapes to compile each."""
    return torch.compiler.set_stance("force_eager")


def takes_ready_mask(backbone: nn.Module) -> bool:
    """True if the model takes a mask that is ready for its attention, (B, 1, 1, L) of booleans, as it takes (B, L).

    Models that get (B, L) look whether it holds a zero at all, and a GPU's answer makes the processor wait for it.
    """
    if getattr(backbone.config, "_attn_implementation", None) != "sdpa":
        return False
    ids = torch.arange(8).view(2, 4)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    training, device = backbone.training, next(backbone.parameters()).device
    try:
        with torch.no_grad():
            backbone.eval()
            plain, ready = (
                backbone(input_ids=ids.to(device), attention_mask=given.to(device)).last_hidden_state
                for given in (mask, mask[:, None, None].bool())
            )
        return torch.allclose(plain[:, 0], ready[:, 0], rtol=1e-4, atol=1e-5)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return False
    finally:
        backbone.train(training)
