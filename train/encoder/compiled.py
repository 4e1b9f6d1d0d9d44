"""The layers of a backbone by torch.compile, which fuses what lies between the matrix products; see `graphs`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

SHAPES = 64  # of parts that a run may meet: 8 widths, with and without negatives, the last batch, training or not


class _Compiled:
    """Calls of compiled layers; where a compilation fails for any reason but memory, all run as written from there on.

    What fails is the compiler, before it runs anything. An error of the layer itself comes again from the plain layer.
    """

    def __init__(self) -> None:
        self._plain = False

    def __call__(self, module: nn.Module) -> Callable[..., Any]:
        """What stands for `module`'s call once `module.compile` was called."""
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
    """Have torch.compile make the code of a model's layers, or of the whole where it has none; names stay."""
    torch._dynamo.config.recompile_limit = SHAPES  # of one layer's code; the default of 8 ends in uncompiled code
    torch._dynamo.config.accumulated_recompile_limit = 4 * SHAPES
    torch._dynamo.config.optimize_ddp = False  # cuts what is compiled at DDP's buckets: a layer is small enough
    compiled = _Compiled()
    lists = [module for module in backbone.modules() if isinstance(module, nn.ModuleList)]
    for module in max(lists, key=len, default=[backbone]):
        module.compile(dynamic=False)  # few shapes, each with code of its own; an uneven last batch is one more
        module._compiled_call_impl = compiled(module)


def uncompiled() -> AbstractContextManager[Any]:
    """Within it, compiled layers run as written: evaluation meets too many shapes to compile each."""
    return torch.compiler.set_stance("force_eager")
