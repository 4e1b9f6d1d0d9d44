"""The masked-language-model head: from the states of masked tokens to the sum of their losses.

Linear, GELU and LayerNorm, then the table of word embeddings as the last layer, and a bias for each token: BERT's,
RoBERTa's and DistilBERT's heads, whose weights are taken where the checkpoint has them. It is trained with the
encoder, and kept in checkpoints but not in best/. Letters: m masked tokens, D width of states, E of word embeddings,
V tokens of the vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModelForMaskedLM

from train.encoder.pretrained import from_pretrained
from una_fast.errors import InputError

# for each family: the names of the linear layer, of the normalisation and of the bias
NAMES = (
    ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"),
    ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
)


class MlmHead(nn.Module):
    """The head on states of width D, for a table of word embeddings (V, E)."""

    def __init__(self, width: int, n_tokens: int, word_width: int, eps: float) -> None:
        super().__init__()
        self.dense = nn.Linear(width, word_width)
        self.norm = nn.LayerNorm(word_width, eps=eps)
        self.bias = nn.Parameter(torch.zeros(n_tokens))

    def forward(self, states: Tensor, targets: Tensor, words: Tensor) -> Tensor:
        """The sum of cross-entropies, a scalar; states: (m, D), targets: int64 (m,), words: (V, E)."""
        hidden = self.norm(functional.gelu(self.dense(states)))
        logits = functional.linear(hidden, words, self.bias)  # (m, V)
        return functional.cross_entropy(logits.float(), targets, reduction="sum")


def load_mlm_head(name: str, config: Any, words: Tensor, seed: int, trust: bool = False) -> MlmHead:
    """The head of a checkpoint, or a new one, drawn from `seed`, for a checkpoint that has none.

    config: the encoder's; words: its word embeddings (V, E).
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        n_tokens, word_width = words.shape
        head = MlmHead(config.hidden_size, n_tokens, word_width, getattr(config, "layer_norm_eps", 1e-12))
        nn.init.normal_(head.dense.weight, std=0.02)
        nn.init.zeros_(head.dense.bias)
        try:
            model, info = from_pretrained("weights", AutoModelForMaskedLM, name, trust, output_loading_info=True)
        except InputError:  # transformers has no such head for this kind of model
            return head
    saved = {key: value for key, value in model.state_dict().items() if key not in {*info["missing_keys"]}}
    for dense, norm, bias in NAMES:
        parts = {"dense": dense, "norm": norm}
        names = {f"{own}.{kind}": f"{other}.{kind}" for own, other in parts.items() for kind in ("weight", "bias")}
        names["bias"] = bias
        if all(other in saved and saved[other].shape == head.state_dict()[own].shape for own, other in names.items()):
            head.load_state_dict({own: saved[other].float() for own, other in names.items()})
            return head
    return head
