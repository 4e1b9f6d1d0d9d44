"""--mlm-weight, SimCSE's masked-language-model loss (Gao et al. 2021, section 3): the masked tokens, and their head.

As in BERT (Devlin et al. 2019, section 3.1), the model predicts 15% of the tokens, never special ones: 80% of them are
replaced by the mask token, 10% by a random token, and 10% are unchanged. Each draw is a function of (seed, epoch, row,
position). Checkpoints contain the head, best/ does not.

Letters: b rows, L tokens, D width of states, E of word embeddings, m masked tokens, V tokens of the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModelForMaskedLM
from transformers.activations import ACT2FN

from train.encoder.pretrained import load_pretrained
from una_fast.augment.counter_rng import CounterRNG
from una_fast.errors import InputError

SHARE, TO_MASK, TO_RANDOM = 0.15, 0.8, 0.1
CHOICE, KIND, TOKEN = 0, 1, 2  # numbers of the draws at a position


class Masked(NamedTuple):
    """Masked sentences of a rank."""

    part: dict[str, Tensor]  # token ids and mask (b, L)
    positions: Tensor  # int64 (m,), places of the masked tokens in the flattened (b L)
    targets: Tensor  # int64 (m,), the original tokens at these places


@dataclass(frozen=True)
class Masking:
    """Masks tokens of sentences."""

    seed: int
    mask_id: int
    n_tokens: int  # of the vocabulary
    special: tuple[int, ...]  # ids that are never masked

    def mask(self, part: dict[str, Tensor], rows: NDArray[np.int64], epoch: int) -> Masked:
        """Masked sentences from token ids int64 (b, L) of the sentences `rows` (b,), cut to the longest sentence."""
        used = part["attention_mask"].any(0).nonzero()[:, 0]  # columns in which some sentence has a token
        columns = slice(int(used[0]), int(used[-1]) + 1)
        cut = {name: ids[:, columns].contiguous() for name, ids in part.items()}
        ids, width = cut["input_ids"].numpy(), part["input_ids"].shape[1]
        draws = CounterRNG(xxhash.xxh3_64_intdigest(f"mlm {self.seed}".encode()), epoch, rows)
        choice, kind = (draws.units(width, number)[:, columns] for number in (CHOICE, KIND))
        random = draws.below(self.n_tokens, width, TOKEN)[:, columns]
        chosen = (choice < SHARE) & ~np.isin(ids, self.special) & (cut["attention_mask"].numpy() != 0)
        put = np.where(kind < TO_MASK, self.mask_id, np.where(kind < TO_MASK + TO_RANDOM, random, ids))
        places = torch.from_numpy(chosen.reshape(-1)).nonzero()[:, 0]
        masked = {**cut, "input_ids": torch.from_numpy(np.where(chosen, put, ids))}
        return Masked(masked, places, cut["input_ids"].flatten()[places])


def masking_of(tokenizer: Any, seed: int) -> Masking:
    """The Masking for sentences of a tokenizer. Raises InputError if it has no mask token."""
    if tokenizer.mask_token_id is None:
        raise InputError("--mlm-weight: the model's tokenizer has no mask token: leave the option out")
    return Masking(seed, tokenizer.mask_token_id, len(tokenizer), tuple(sorted(tokenizer.all_special_ids)))


class MlmHead(nn.Module):
    """A new head for an encoder's states of width D, whose output matrix is its word embeddings (V, E)."""

    def __init__(self, config: Any, words: Tensor) -> None:
        super().__init__()
        eps = getattr(config, "layer_norm_eps", getattr(config, "norm_eps", 1e-12))
        self.dense = nn.Linear(config.hidden_size, words.shape[1])
        self.activation = ACT2FN[getattr(config, "hidden_act", "gelu")]
        self.norm = nn.LayerNorm(words.shape[1], eps=eps)
        self.bias = nn.Parameter(torch.zeros(len(words)))
        nn.init.normal_(self.dense.weight, std=0.02)
        nn.init.zeros_(self.dense.bias)

    def forward(self, states: Tensor, targets: Tensor, words: Tensor) -> Tensor:
        """The sum of cross-entropies, a scalar; states: (m, D), targets: int64 (m,), words: (V, E)."""
        hidden = self.norm(self.activation(self.dense(states)))
        logits = functional.linear(hidden, words, self.bias)  # (m, V)
        return functional.cross_entropy(logits.float(), targets, reduction="sum")


def load_mlm_head(name: str, config: Any, words: Tensor, seed: int, trust: bool = False) -> MlmHead:
    """The head of a checkpoint, or a new one drawn from `seed`; words: the word embeddings (V, E) of its encoder."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = MlmHead(config, words)
    try:
        network, missing = load_pretrained(name, config, trust, AutoModelForMaskedLM)
    except InputError:  # transformers has no such head for this kind of model
        return head
    # outside the encoder, every family has one linear layer, one normalisation and the output, each by another name
    others = {*network.base_model.modules(), output := network.get_output_embeddings()}
    own = {f"{place}.weight": layer for place, layer in network.named_modules() if layer not in others}
    layers = [layer for name, layer in own.items() if name not in missing]
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    norms = [layer for layer in layers if isinstance(layer, nn.LayerNorm)]
    if linear and linear[0].weight.shape == head.dense.weight.shape and norms and output.bias is not None:
        head.dense.load_state_dict(linear[0].state_dict(), strict=False)  # ModernBERT's has no bias
        head.norm.load_state_dict(norms[0].state_dict(), strict=False)
        head.bias.data.copy_(output.bias)
    return head
