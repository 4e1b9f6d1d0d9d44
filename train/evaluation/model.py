"""A model to evaluate: a Hugging Face encoder with its tokenizer, pooling and precision."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging as hf_logging

from train.evaluation.embed import LONGEST
from train.pooling import DEFAULT_POOLING, check_pooling, needs_hidden_states, pool
from una_fast.errors import InputError

TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model")
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
    tokenizer = _load_tokenizer(name)
    network, info = _from_pretrained(AutoModel, name, output_loading_info=True)
    without_pooler = any(key.startswith("pooler.") for key in info["missing_keys"])
    if pooling == "cls" and (without_pooler or getattr(network, "pooler", None) is None):
        raise InputError(
            f"{name}: pooling 'cls' reads the checkpoint's pooler, and it holds none: use 'cls_before_pooler'"
        )
    network = network.to(place, PRECISIONS[precision]).eval()
    return EvaluatedModel(name, network, tokenizer, place, pooling)


def _load_tokenizer(name: str) -> Any:
    folder = Path(name)
    # transformers makes a tokenizer without a vocabulary of a folder that has none: every word would be
    # unknown
    if folder.is_dir() and not any((folder / file).is_file() for file in TOKENIZER_FILES):
        raise InputError(f"{name}: no tokenizer in this folder (none of {', '.join(TOKENIZER_FILES)})")
    return _from_pretrained(AutoTokenizer, name)


def _from_pretrained(kind: Any, name: str, **options: Any) -> Any:
    """kind.from_pretrained, quietly, with an InputError for what is not there or cannot be read."""
    if not Path(name).is_dir() and (Path(name).is_file() or name.startswith((".", "/", "~"))):
        raise InputError(f"{name}: no such model folder")
    hf_logging.disable_progress_bar()
    hf_logging.set_verbosity_error()
    try:
        return kind.from_pretrained(name, **options)
    except Exception as error:  # each file format and the hub raise their own
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{name}: no model could be loaded ({reason}); give a folder with config.json and weights, or a "
            "name on the Hugging Face hub"
        ) from error
