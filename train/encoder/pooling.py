"""The poolings: how the states of a sentence's tokens become its embedding.

Letters in shapes: B sentences, L tokens, D width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:  # --help lists the poolings, and should not wait for torch
    from torch import Tensor


class PoolingSpec(NamedTuple):
    """A pooling. Its function maps token states (B, L, D) and their mask, int64 (B, L), to embeddings (B, D)."""

    meaning: str
    function: Callable[[Tensor, Tensor], Tensor] | None  # None: the checkpoint's own pooler
    in_training: str = ""  # its name in training's --pooling; "" if it is only for evaluation
    in_modules: str = ""  # its name in sentence-transformers' files; training needs it to save the encoder
    # the hidden_states to average: 0 is the embedding layer, 1 the output of the first layer, -1 the output of the last
    layers: tuple[int, ...] = (-1,)

    @property
    def needs_hidden_states(self) -> bool:
        """Whether the pooling reads layers before the last."""
        return self.layers != (-1,)

    def pool(self, output: Any, mask: Tensor) -> Tensor:
        """Pool a model's output into embeddings (B, D). mask: the attention mask, int64 (B, L)."""
        if self.function is None:
            return output.pooler_output
        states = output.last_hidden_state
        if self.needs_hidden_states:
            states = sum(output.hidden_states[layer] for layer in self.layers) / len(self.layers)
        return self.function(states, mask)


def _first(states: Tensor, mask: Tensor) -> Tensor:
    return _token(states, mask.argmax(1))


def _last(states: Tensor, mask: Tensor) -> Tensor:
    return _token(states, mask.shape[1] - 1 - mask.flip(1).argmax(1))


def _max(states: Tensor, mask: Tensor) -> Tensor:
    return states.masked_fill(mask.unsqueeze(-1) == 0, float("-inf")).amax(1)


def _mean(states: Tensor, weights: Tensor) -> Tensor:
    weights = weights.float()  # so that the sum is in float32 for states of any dtype
    return (states * weights.unsqueeze(-1)).sum(1) / weights.sum(1, keepdim=True)


def _weighted_mean(states: Tensor, mask: Tensor) -> Tensor:
    return _mean(states, mask * mask.cumsum(1))  # 1, 2, 3, ... from the first token on


def _token(states: Tensor, position: Tensor) -> Tensor:
    """Select the state of one token per sentence, (B, D). position: int64 (B,).

    Use a mask instead of indexing, whose gradient is a scatter without a fast deterministic kernel on GPUs.
    """
    columns = position.new_ones(states.shape[1]).cumsum(0) - 1  # (L,): 0, 1, 2, ...
    return states.masked_fill((columns != position[:, None]).unsqueeze(-1), 0).sum(1)


POOLINGS = {  # named as in SimCSE's evaluation or, if it lacks them, as in sentence-transformers
    "cls": PoolingSpec("[CLS] through the checkpoint's own pooler (Linear + tanh)", None),
    "cls_before_pooler": PoolingSpec("[CLS] of the last layer, raw", _first, "cls", "cls"),
    "avg": PoolingSpec("mean of the last layer over tokens", _mean, "mean", "mean"),
    "avg_first_last": PoolingSpec("mean of the first and last layer over tokens", _mean, layers=(1, -1)),
    "avg_top2": PoolingSpec("mean of the last two layers over tokens", _mean, layers=(-2, -1)),
    "max": PoolingSpec("largest value of each dimension over the tokens of the last layer", _max, "max", "max"),
    "last": PoolingSpec("last token of the last layer", _last, "last", "lasttoken"),
    "weighted_mean": PoolingSpec(
        "mean of the last layer over tokens, the i-th weighted by i", _weighted_mean, "weighted_mean", "weightedmean"
    ),
}
AUTO = "auto"  # use the pooling in the model's modules.json, or [CLS] without that file
DEFAULT_POOLING = "cls_before_pooler"
Head = Literal["auto", "mlp", "none"]  # the layer that training adds after the pooling; mlp: Linear + tanh
# from the names in training, and from those in sentence-transformers' files, to the keys of POOLINGS
OF_TRAINING = {kind.in_training: name for name, kind in POOLINGS.items() if kind.in_training}
OF_MODULES = {kind.in_modules: name for name, kind in POOLINGS.items() if kind.in_modules}
