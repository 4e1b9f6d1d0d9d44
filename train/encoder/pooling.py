"""From a model's output to one vector a sentence, by the five names of SimCSE.

Shapes: B sentences, L tokens, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from una_fast.errors import InputError

if TYPE_CHECKING:  # names of poolings are options, and --help does not wait for torch
    from torch import Tensor

POOLINGS = {
    "cls": "[CLS] through the checkpoint's own pooler (Linear + tanh)",
    "cls_before_pooler": "[CLS] of the last layer, raw",
    "avg": "mean of the last layer over tokens",
    "avg_first_last": "mean of the first and last layer over tokens",
    "avg_top2": "mean of the last two layers over tokens",
}
DEFAULT_POOLING = "cls_before_pooler"


def check_pooling(pooling: str) -> str:
    """`pooling` itself, if it is one of POOLINGS; else InputError."""
    if pooling not in POOLINGS:
        raise InputError(f"unknown pooling {pooling!r}: choose one of {', '.join(POOLINGS)}")
    return pooling


def needs_hidden_states(pooling: str) -> bool:
    """True if `pool` reads layers below the last: call the model with output_hidden_states=True."""
    return pooling in ("avg_first_last", "avg_top2")


def pool(output: Any, attention_mask: Tensor, pooling: str = DEFAULT_POOLING) -> Tensor:
    """Sentence embeddings (B, D) of a Hugging Face model's output.

    output: has last_hidden_state (B, L, D) and, where the pooling asks for them, pooler_output (B, D) and
    hidden_states, a tuple of (B, L, D) that starts with the embeddings: as in SimCSE, "first" is the output
    of the first encoder layer, hidden_states[1]. attention_mask: (B, L), 1 on tokens, special ones included.
    """
    if pooling == "cls":
        if getattr(output, "pooler_output", None) is None:
            raise InputError("pooling 'cls' needs a pooler, and this model has none: use 'cls_before_pooler'")
        return output.pooler_output
    if pooling == "cls_before_pooler":
        return output.last_hidden_state[:, 0]
    if pooling == "avg":
        layers = output.last_hidden_state
    elif pooling == "avg_first_last":
        layers = (output.hidden_states[1] + output.hidden_states[-1]) / 2
    elif pooling == "avg_top2":
        layers = (output.hidden_states[-2] + output.hidden_states[-1]) / 2
    else:
        check_pooling(pooling)
    mask = attention_mask.unsqueeze(-1).to(layers.dtype)  # (B, L, 1)
    return (layers * mask).sum(1) / mask.sum(1)
