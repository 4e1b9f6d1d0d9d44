"""A model to evaluate: a Hugging Face encoder with its tokenizer, pooling and precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModel

from train.encoder import from_pretrained, load_tokenizer, quiet
from train.evaluation.embed import LONGEST
from train.pooling import DEFAULT_POOLING, check_pooling, needs_hidden_states, pool
from una_fast.errors import InputError

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class EvaluatedModel:
    """An encoder in evaluation mode; `encode` maps a padded batch to embeddings."""

    name: str
    network: Any
    tokenizer: Any
    device: torch.device
    pooling: str

    def encode(self, batch: dict[str, Tensor]) -> Tensor:
        """Embeddings (B, D) of int64 (B, L) ids, by the model's pooling."""
        output = self.network(**batch, output_hidden_states=needs_hidden_states(self.pooling))
        return pool(output, batch["attention_mask"], self.pooling)

    @property
    def max_length(self) -> int:
        """Most tokens of a sentence that the model has positions for, or that its tokenizer allows."""
        positions = getattr(self.network.config, "max_position_embeddings", LONGEST)
        table = getattr(getattr(self.network, "embeddings", None), "position_embeddings", None)
        if (padding := getattr(table, "padding_idx", None)) is not None:
            positions -= padding + 1  # RoBERTa counts positions from after the padding's
        return min(self.tokenizer.model_max_length, positions, LONGEST)

    @property
    def lower_cases(self) -> bool:
        """True if the tokenizer gives upper and lower case the same ids."""
        return self.tokenizer("UPPER Case")["input_ids"] == self.tokenizer("upper case")["input_ids"]


def pick_device(device: str) -> torch.device:
    """The torch device of "auto", "cpu", "cuda" or "cuda:N"; InputError if there is no such GPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    picked = torch.device(device)
    if picked.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"--device {device}: PyTorch sees no GPU here; use --device cpu")
    return picked


def load_model(
    name: str, pooling: str = DEFAULT_POOLING, precision: str = "fp32", device: str = "auto"
) -> EvaluatedModel:
    """The encoder of a hub name or folder; InputError if it, its tokenizer or its pooler is missing."""
    check_pooling(pooling)
    place = pick_device(device)
    quiet()
    tokenizer = load_tokenizer(name)
    network, info = from_pretrained("weights", AutoModel, name, output_loading_info=True)
    without_pooler = any(key.startswith("pooler.") for key in info["missing_keys"])
    if pooling == "cls" and (without_pooler or getattr(network, "pooler", None) is None):
        raise InputError(
            f"{name}: pooling 'cls' reads the checkpoint's pooler, and it holds none: use 'cls_before_pooler'"
        )
    network = network.to(place, PRECISIONS[precision]).eval()
    return EvaluatedModel(name, network, tokenizer, place, pooling)
