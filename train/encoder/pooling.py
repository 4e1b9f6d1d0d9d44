"""From a model's output to one vector a sentence: the one place where an embedding is defined.

Training, the dev evaluation, what is saved in best/, `train.evaluate` and the demo all pool here.
Shapes: B sentences, L tokens, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from una_fast.errors import InputError

if TYPE_CHECKING:  # names of poolings are options, and --help does not wait for torch
    from torch import Tensor


class Kind(NamedTuple):
    """What a pooling does, and its names elsewhere; "" where it cannot be trained or saved."""

    meaning: str
    in_training: str = ""  # --pooling of train.ddp
    in_modules: str = ""  # sentence-transformers' pooling_mode


# By the names that SimCSE's evaluation gives them; those that it lacks have sentence-transformers' names.
POOLINGS = {
    "cls": Kind("[CLS] through the checkpoint's own pooler (Linear + tanh)"),
    "cls_before_pooler": Kind("[CLS] of the last layer, raw", "cls", "cls"),
    "avg": Kind("mean of the last layer over tokens", "mean", "mean"),
    "avg_first_last": Kind("mean of the first and last layer over tokens"),
    "avg_top2": Kind("mean of the last two layers over tokens"),
    "max": Kind("largest value of each dimension over the tokens of the last layer", "max", "max"),
    "last": Kind("last token of the last layer", "last", "lasttoken"),
    "mean_sqrt_len": Kind(
        "sum of the last layer over n tokens, divided by the square root of n", "mean_sqrt_len", "mean_sqrt_len_tokens"
    ),
    "weighted_mean": Kind(
        "mean of the last layer over tokens, the i-th weighted by i", "weighted_mean", "weightedmean"
    ),
}
AUTO = "auto"  # as the model's modules.json says, [CLS] where there is none
DEFAULT_POOLING = "cls_before_pooler"
OF_TRAINING = {kind.in_training: name for name, kind in POOLINGS.items() if kind.in_training}
OF_MODULES = {kind.in_modules: name for name, kind in POOLINGS.items() if kind.in_modules}


def check_pooling(pooling: str) -> str:
    """`pooling` by its name in POOLINGS, "auto" as it is; InputError for any other name.

    Names of training that mean nothing else in an evaluation ("mean") are taken too.
    """
    known = {AUTO: AUTO, **OF_TRAINING, **{name: name for name in POOLINGS}}
    if pooling not in known:
        raise InputError(f"unknown pooling {pooling!r}: choose one of {', '.join((AUTO, *POOLINGS))}")
    return known[pooling]


@dataclass(frozen=True)
class Pooling:
    """One of POOLINGS, whichever side a batch is padded on."""

    name: str = DEFAULT_POOLING

    @property
    def reads_first_token(self) -> bool:
        """True if a sentence's first token is all that is read of the last layer."""
        return self.name in ("cls", "cls_before_pooler")

    @property
    def needs_hidden_states(self) -> bool:
        """True if layers below the last are read: call the model with output_hidden_states=True."""
        return self.name in ("avg_first_last", "avg_top2")

    def __call__(self, output: Any, attention_mask: Tensor) -> Tensor:
        """Sentence embeddings (B, D) of a Hugging Face model's output.

        output: has last_hidden_state (B, L, D) and, where the pooling asks for them, pooler_output (B, D) and
        hidden_states, a tuple of (B, L, D) that starts with the embeddings: as in SimCSE, "first" is the output
        of the first encoder layer, hidden_states[1]. attention_mask: (B, L), 1 on tokens, special ones included.
        """
        if self.name == "cls":
            return output.pooler_output
        if self.name == "cls_before_pooler":
            return _token(output.last_hidden_state, attention_mask.argmax(1))
        if self.name == "last":
            return _token(output.last_hidden_state, _last_position(attention_mask))
        if self.name == "max":
            padding = attention_mask.unsqueeze(-1) == 0  # (B, L, 1)
            return output.last_hidden_state.masked_fill(padding, float("-inf")).amax(1)
        return _weighted(self._layers(output), *self._weights(attention_mask))

    def _layers(self, output: Any) -> Tensor:
        """The states (B, L, D) that a mean is taken of."""
        if self.name == "avg_first_last":
            return (output.hidden_states[1] + output.hidden_states[-1]) / 2
        if self.name == "avg_top2":
            return (output.hidden_states[-2] + output.hidden_states[-1]) / 2
        return output.last_hidden_state

    def _weights(self, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Weights of the tokens (B, L) and what divides their sum (B, 1)."""
        weights = attention_mask.float()
        if self.name == "weighted_mean":
            weights = weights * attention_mask.cumsum(1)  # 1, 2, 3, ... from the first token on
        total = weights.sum(1, keepdim=True)
        return weights, total.sqrt() if self.name == "mean_sqrt_len" else total


def _weighted(states: Tensor, weights: Tensor, total: Tensor) -> Tensor:
    """The sum of weights (B, L) times states (B, L, D), divided by total (B, 1); in float32 whatever the states are."""
    return (states * weights.unsqueeze(-1)).sum(1) / total


def _token(states: Tensor, position: Tensor) -> Tensor:
    """States (B, L, D) at one position (B,) a sentence: (B, D)."""
    return states.gather(1, position[:, None, None].expand(-1, 1, states.shape[2]))[:, 0]


def _last_position(attention_mask: Tensor) -> Tensor:
    """The position (B,) of the last token, whichever side is padded."""
    return attention_mask.shape[1] - 1 - attention_mask.flip(1).argmax(1)
