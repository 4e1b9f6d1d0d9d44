"""Masked sentences and the masked-language-model loss that SimCSE adds to its own (Gao et al. 2021, section 3).

As in BERT (Devlin et al. 2019, section 3.1): 15 % of the tokens are to be predicted, special tokens never. Of these,
80 % are replaced by the mask token, 10 % by a random token of the vocabulary, and 10 % stay. Each draw is a function of
(seed, epoch, row, position).

The head is a linear layer, GELU and LayerNorm, then the table of word embeddings as the last layer, and a bias for each
token: BERT's, RoBERTa's and DistilBERT's heads, whose weights are taken where the checkpoint has them. It is trained
with the encoder, and kept in checkpoints but not in best/. Letters: b sentences of a rank, L tokens, m masked tokens,
D width of states, E of word embeddings, V tokens of the vocabulary.
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

from train.encoder.pretrained import from_pretrained
from una_fast.augment.counter_rng import CounterRNG
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
        head = MlmHead(config.hidden_size, len(words), words.shape[1], getattr(config, "layer_norm_eps", 1e-12))
        nn.init.normal_(head.dense.weight, std=0.02)
        nn.init.zeros_(head.dense.bias)
        try:
            model, info = from_pretrained("weights", AutoModelForMaskedLM, name, trust, output_loading_info=True)
        except InputError:  # transformers has no such head for this kind of model
            return head
    saved = {key: value.float() for key, value in model.state_dict().items() if key not in info["missing_keys"]}
    shapes = {name: value.shape for name, value in head.state_dict().items()}
    for dense, norm, bias in NAMES:
        names = {f"{part}.{kind}": f"{other}.{kind}" for part, other in (("dense", dense), ("norm", norm))
                 for kind in ("weight", "bias")}  # fmt: skip
        taken = {name: saved[other] for name, other in {**names, "bias": bias}.items() if other in saved}
        if {name: value.shape for name, value in taken.items()} == shapes:
            head.load_state_dict(taken)
    return head


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
        ids = part["input_ids"].numpy()
        draws = CounterRNG(xxhash.xxh3_64_intdigest(f"mlm {self.seed}".encode()), epoch, rows)
        width = ids.shape[1]
        chosen = (draws.units(width, CHOICE) < SHARE) & ~np.isin(ids, self.special)
        chosen &= part["attention_mask"].numpy().astype(bool)
        kind = draws.units(width, KIND)
        random = draws.below(self.n_tokens, width, TOKEN)
        put = np.where(kind < TO_MASK, self.mask_id, np.where(kind < TO_MASK + TO_RANDOM, random, ids))
        used = part["attention_mask"].any(0).nonzero()[:, 0]  # columns in which some sentence has a token
        columns = slice(int(used[0]), int(used[-1]) + 1)
        cut = {name: tensor[:, columns].contiguous() for name, tensor in part.items()}
        places = torch.from_numpy(chosen[:, columns].reshape(-1)).nonzero()[:, 0]
        targets = cut["input_ids"].flatten()[places]
        cut["input_ids"] = torch.from_numpy(np.where(chosen, put, ids)[:, columns].copy())
        return Masked(cut, places, targets)


def masking_of(tokenizer: Any, seed: int) -> Masking:
    """The Masking for sentences of a tokenizer. Raises InputError if it has no mask token."""
    if tokenizer.mask_token_id is None:
        raise InputError("--mlm-weight: the model's tokenizer has no mask token: leave the option out")
    return Masking(seed, tokenizer.mask_token_id, len(tokenizer), tuple(sorted(tokenizer.all_special_ids)))
