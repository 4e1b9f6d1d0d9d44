"""Fewer kernel launches for an encoder: CUDA graphs of its forward and backward pass over a part of a batch.

The plain kernels are captured once per shape and replayed; nothing is compiled. The dropout masks are as with
plain kernels, because a replay reads the seed and offset that the device's generator has at that time.

Letters: B rows, L tokens, D width.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

TRIALS = 3  # plain passes before a capture, so that what a kernel sets up at its first call is not captured

# by --precision, how much graphs may differ from the plain kernels, relative to the largest value: some 10 roundings
TOLERANCE = {"fp32": 1e-5, "bf16": 4e-2, "fp16": 5e-3}

Part = dict[str, Tensor]  # one part of a batch: token ids and mask (B, L), by name


class WaitsError(RuntimeError):
    """The CPU waits for a result of the GPU within a model's forward or backward pass, which no graph can capture."""


@contextmanager
def _without_waiting() -> Iterator[None]:
    """Inside the with block, raise WaitsError where the CPU waits for the GPU; during a capture that would be fatal."""
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise WaitsError(str(error).splitlines()[0]) from error
    finally:
        torch.cuda.set_sync_debug_mode(mode)


class Captured:
    """Two CUDA graphs, of the forward and of the backward pass of a part, and the memory that they read and write.

    The gradients take as much memory as the trained weights. The activations are in the pool `memory`, which other
    graphs share: these must not be replayed between this part's forward and backward pass.
    """

    def __init__(self, run: Callable[[Part], Tensor], trained: Sequence[Tensor], part: Part, memory: Any) -> None:
        """run: a part (B, L) -> (B, D). trained: its trained leaf tensors, which no other autograd graph contains."""
        self._inputs = {name: tensor.clone() for name, tensor in part.items()}
        current, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(current)
        with torch.cuda.stream(side):
            for trial in range(TRIALS):
                with _without_waiting() if trial else nullcontext():
                    output = run(self._inputs)
                    torch.autograd.grad(output, trained, torch.zeros_like(output))
        del output
        current.wait_stream(side)
        self._forward, self._backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._forward, pool=memory):
            output = run(self._inputs)
        self._gradient = torch.empty_like(output)
        with torch.cuda.graph(self._backward, pool=memory):
            self._gradients = torch.autograd.grad(output, trained, self._gradient)
        self._output = output.detach()

    def forward(self, part: Part) -> Tensor:
        """The output (B, D), overwritten by the next call."""
        for name, tensor in part.items():
            self._inputs[name].copy_(tensor)
        self._forward.replay()
        return self._output

    def backward(self, gradient: Tensor) -> tuple[Tensor, ...]:
        """Gradients of the weights from the gradient of the last output (B, D); the next call overwrites them."""
        self._gradient.copy_(gradient)
        self._backward.replay()
        return self._gradients


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, captured: Captured, part: Part, *trained: Tensor) -> Tensor:
        ctx.captured = captured
        return captured.forward(part).clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *(gradient.detach() for gradient in ctx.captured.backward(grads[0]))


class Graphs:
    """Embeds a part (B, L), forward and backward, by replaying CUDA graphs, captured when a shape first occurs.

    The graphs contain the encoder alone. Loss, gathering, DDP and the optimiser stay outside, so any number of ranks,
    gradient caching and any loss work unchanged. A whole step in one graph would save some hundred launches more, but
    needs an optimiser that can be captured and NCCL inside the capture.

    torch.cuda.make_graphed_callables does much the same, but captures through the weights themselves. Autograd ties a
    weight to the stream on which it was first used, for as long as anything refers to the weight's gradient node (DDP
    always does), and a capture that uses that stream fails. So the capture uses other leaf tensors, which share the
    weights' memory.

    Each part of a step has its own graphs, by `place`: a second replay would overwrite what the first keeps for its
    backward pass. Of the graphs of one place at most one is between its two passes, so they share memory.

    If a capture fails for any reason but memory, a warning says why, and this rank goes on with the plain kernels. They
    give the same bits, so other ranks may go on with graphs.
    """

    def __init__(
        self,
        backbone: nn.Module,
        embed: Callable[..., Tensor],
        device: torch.device,
        autocast: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        self._device, self._embed = device, embed
        self.plain = False  # True once a capture has failed
        weights = dict(backbone.named_parameters())
        self._trained = [weight for weight in weights.values() if weight.requires_grad]
        leaves: dict[str, Tensor] = {
            name: nn.Parameter(weight.detach(), weight.requires_grad) for name, weight in weights.items()
        }
        self._leaves = [leaf for leaf in leaves.values() if leaf.requires_grad]
        self._captured: dict[tuple, Captured] = {}
        self._memory: dict[int, Any] = {}  # by place

        def run(part: Part) -> Tensor:
            with autocast():  # inside the capture, so that autocast's cache keeps no weight beyond it
                return embed(part, lambda **inputs: functional_call(backbone, leaves, (), inputs))

        self._run = run

    def __call__(self, place: int, part: Part) -> Tensor:
        """Embeddings (B, D) of token ids (B, L); `place` numbers the parts of a step."""
        key = (place, *((name, *tensor.shape) for name, tensor in part.items()))
        if key not in self._captured and not self.plain:
            try:
                self._captured[key] = self._capture(place, part)
            except torch.OutOfMemoryError:
                raise  # an error of one rank must end that rank, or the others would wait for it
            except Exception as error:
                self._go_on_plain(part, error)
        if self.plain:
            return self._embed(part)
        return _Replay.apply(self._captured[key], part, *self._trained)

    def _go_on_plain(self, part: Part, error: Exception) -> None:
        """Warn why no graphs are used from here on, and free the captured ones."""
        shape = " x ".join(map(str, part["input_ids"].shape))
        why = "the model waits for the GPU" if isinstance(error, WaitsError) else f"{shape} tokens cannot be captured"
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        warnings.warn(f"--compile: no CUDA graphs, the run goes on without: {why} ({reason})", stacklevel=3)
        self.plain = True
        self._captured.clear()

    def _capture(self, place: int, part: Part) -> Captured:
        if place not in self._memory:
            self._memory[place] = torch.cuda.graph_pool_handle()
        # the trials must neither use up the step's random numbers nor run under the caller's autocast, which would
        # reach into their backward pass
        with (
            torch.random.fork_rng(devices=[self._device]),
            torch.autocast(self._device.type, enabled=False),
            torch.enable_grad(),
        ):
            return Captured(self._run, self._leaves, part, self._memory[place])


def takes_ready_mask(backbone: nn.Module) -> bool:
    """True if the model gives the same output for a boolean mask (B, 1, 1, L) as for an int64 mask (B, L).

    A model that gets (B, L) first checks whether the mask holds a zero, and on a GPU the CPU waits for the answer.
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
        tokens = mask.bool()
        return torch.allclose(plain[tokens], ready[tokens], rtol=1e-4, atol=1e-5)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return False
    finally:
        backbone.train(training)


def difference(plain: dict[str, Tensor], replay: dict[str, Tensor], again: dict[str, Tensor], tolerance: float) -> str:
    """How a replay differs from the plain kernels, or from its repetition: one clause, or "" if it is right.

    Each holds the loss and the gradients of one batch, by name. An element may differ from the plain one by `tolerance`
    times the largest element of its tensor, or times a hundredth of the largest element of all gradients: what is 0 in
    exact arithmetic, as a key's bias is, has rounding errors alone. A repetition must have the same bits.
    """
    if plain.keys() != replay.keys():
        return f"other weights have a gradient: {', '.join(sorted(plain.keys() ^ replay.keys()))}"
    largest = max((float(value.abs().max()) for name, value in plain.items() if name != "loss"), default=0.0)
    for name, value in plain.items():
        what = name if name == "loss" else f"gradient of {name}"
        gap = float((replay[name] - value).abs().max())
        if not gap <= tolerance * max(float(value.abs().max()), 0 if name == "loss" else largest / 100):
            return f"the {what} differs from the plain kernels' by {gap:.2g}"
        if not torch.equal(replay[name], again[name]):
            return f"the {what} has other bits when a graph is replayed"
    return ""
