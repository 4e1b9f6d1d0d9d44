"""Compiles a backbone's layers with torch.compile, which fuses the operations between matrix products; see `graphs`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

SHAPES = 64  # most shapes of parts in a run: 8 widths, with and without negatives, the last batch, training or not


class _Compiled:
    """Calls compiled layers; once a compilation fails for any reason but memory, all layers run uncompiled.

    The compiler fails before it runs anything, so the plain layer can run in its place. An error of the layer itself is
    raised again by the plain layer.
    """

    def __init__(self) -> None:
        self._plain = False

    def __call__(self, module: nn.Module) -> Callable[..., Any]:
        """The function that replaces `module`'s compiled call after `module.compile`."""
        compiled: Callable[..., Any] = module._compiled_call_impl  # type: ignore[assignment]

        def call(*args: Any, **kwargs: Any) -> Any:
            if not self._plain:
                try:
                    return compiled(*args, **kwargs)
                except torch.OutOfMemoryError:
                    raise
                except Exception as error:
                    output = module._call_impl(*args, **kwargs)
                    self._go_on_plain(error)
                    return output
            return module._call_impl(*args, **kwargs)

        return call

    def _go_on_plain(self, error: Exception) -> None:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        warnings.warn(f"--compile: no compiled layers, the run goes on without: {reason}", stacklevel=4)
        self._plain = True


def compile_layers(backbone: nn.Module) -> None:
    """Compile each layer of a model, or the whole model if it has no list of layers; module names stay the same."""
    torch._dynamo.config.recompile_limit = SHAPES  # per layer; after the default of 8 it would run uncompiled
    torch._dynamo.config.accumulated_recompile_limit = 4 * SHAPES
    torch._dynamo.config.optimize_ddp = False  # it splits compiled code at DDP's buckets, and a layer is small enough
    compiled = _Compiled()
    lists = [module for module in backbone.modules() if isinstance(module, nn.ModuleList)]
    for module in max(lists, key=len, default=[backbone]):
        module.compile(dynamic=False)  # code for each shape, as there are few; an uneven last batch is one more
        module._compiled_call_impl = compiled(module)


def uncompiled() -> AbstractContextManager[Any]:
    """Inside the with block, compiled layers run uncompiled: an evaluation has too many shapes to compile each."""
    return torch.compiler.set_stance("force_eager")
