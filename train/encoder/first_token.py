"""Computes the last layer for the [CLS] token alone if the pooling reads no other token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from torch import Tensor, nn

from train.encoder.pooling import Pooling


def without_unread_tokens(model: nn.Module, pooling: Pooling, tokenizer: Any) -> AbstractContextManager[None]:
    """`first_token_only` if the pooling reads [CLS] alone and padding is on the right; else an empty context."""
    in_front = pooling.reads_first_token and tokenizer.padding_side == "right"
    return first_token_only(model) if in_front else nullcontext()


@contextmanager
def first_token_only(model: nn.Module) -> Iterator[None]:
    """Inside the with block, the last layer of a BERT or RoBERTa encoder gives token 0 alone: (B, 1, D), not (B, L, D).

    Keys and values still come from all tokens, so token 0 does not change. The operations after the attention, with 9
    of a layer's 12 D^2 weights, are skipped for the other tokens: an eighth of the products of a model of 6 layers. A
    model that is not built like BERT is not changed.
    """
    output = _last_attention_output(model)
    if output is None:
        yield
        return
    handle = output.register_forward_pre_hook(_keep_first)
    try:
        yield
    finally:
        handle.remove()


def _keep_first(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Token 0 of the hidden states and of the residual input: (B, L, D) -> (B, 1, D)."""
    return tuple(states[:, :1] for states in inputs)


def _last_attention_output(model: nn.Module) -> nn.Module | None:
    """The module between the last layer's attention and its feed-forward part, if the model is built like BERT."""
    layers = getattr(getattr(model, "encoder", None), "layer", None)
    if not isinstance(layers, nn.ModuleList) or not len(layers):
        return None
    output = getattr(getattr(layers[-1], "attention", None), "output", None)
    known = ("BertSelfOutput", "RobertaSelfOutput", "XLMRobertaSelfOutput")
    return output if type(output).__name__ in known else None
