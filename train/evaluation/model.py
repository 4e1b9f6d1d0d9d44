"""A model to evaluate: a Hugging Face encoder with its tokenizer, pooling and precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel

from train.encoder.cpu import use_cpu_layers
from train.encoder.pooling import AUTO, POOLINGS, PoolingRow, check_pooling
from train.encoder.pretrained import Modules, from_pretrained, load_tokenizer, quiet, read_modules
from train.evaluation.embed import LONGEST
from una_fast.errors import InputError, counted

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}  # by --precision


@dataclass(frozen=True)
class EvaluatedModel:
    """An encoder in evaluation mode; `encode` maps a padded batch to embeddings.

    layout: its pooling and, with --pooling auto, the other embedding settings of the model's folder.
    """

    name: str
    network: Any
    tokenizer: Any
    device: torch.device
    layout: Modules

    @property
    def pooling(self) -> PoolingRow:
        """The pooling of the layout, which makes embeddings of the network's output."""
        return POOLINGS[self.layout.pooling]

    def encode(self, batch: dict[str, Tensor]) -> Tensor:
        """Embeddings (B, D) of int64 (B, L) ids."""
        output = self.network(**batch, output_hidden_states=self.pooling.needs_hidden_states)
        embeddings = self.pooling.pool(output, batch["attention_mask"])
        return nn.functional.normalize(embeddings) if self.layout.normalize else embeddings

    @property
    def max_length(self) -> int:
        """Most tokens of a sentence that the model has positions for, or that its tokenizer or its folder allows."""
        positions = getattr(self.network.config, "max_position_embeddings", LONGEST)
        table = getattr(getattr(self.network, "embeddings", None), "position_embeddings", None)
        if (padding := getattr(table, "padding_idx", None)) is not None:
            positions -= padding + 1  # RoBERTa's first token has the position after padding's
        return min(self.tokenizer.model_max_length, positions, self.layout.max_length or LONGEST, LONGEST)

    @property
    def lower_cases(self) -> bool:
        """True if the tokenizer gives upper and lower case the same ids."""
        return self.tokenizer("UPPER Case")["input_ids"] == self.tokenizer("upper case")["input_ids"]


def pick_device(device: str) -> torch.device:
    """The device of "auto", "cpu", "cuda" or "cuda:N". InputError if this machine has no such device."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    try:
        place = torch.device(("cuda" if gpus else "cpu") if device == "auto" else device)
    except RuntimeError:
        raise InputError(f"--device {device}: choose auto, cpu, cuda or cuda:N") from None
    if place.type != "cuda":
        return place
    if (place.index or 0) >= gpus:
        raise InputError(f"--device {device}: PyTorch sees {counted(gpus, 'GPU')} here: name another, or --device cpu")
    return torch.device("cuda", place.index or 0)


def load_model(
    name: str, pooling: str = AUTO, precision: str = "fp32", device: str = "auto", trust: bool = False
) -> EvaluatedModel:
    """The encoder of a hub name or folder, with one of POOLINGS or, for "auto", as its folder says.

    Raises:
        InputError: the model, its tokenizer or the pooler that "cls" reads is missing.
    """
    pooling = check_pooling(pooling)
    place = pick_device(device)
    quiet()
    tokenizer = load_tokenizer(name, trust)
    layout = read_modules(name) if pooling == AUTO else Modules(pooling=pooling)
    network, info = from_pretrained("weights", AutoModel, name, trust, output_loading_info=True)
    without_pooler = any(key.startswith("pooler.") for key in info["missing_keys"])
    if pooling == "cls" and (without_pooler or getattr(network, "pooler", None) is None):
        raise InputError(
            f"{name}: pooling 'cls' reads the checkpoint's pooler, and it holds none: use 'cls_before_pooler'"
        )
    if pooling == "cls" and tokenizer.padding_side == "left":
        raise InputError(f"{name}: pooling 'cls' reads the first position, and this tokenizer pads there: use 'last'")
    network = network.to(place, DTYPES[precision]).eval()
    use_cpu_layers(network)
    return EvaluatedModel(name, network, tokenizer, place, layout)
