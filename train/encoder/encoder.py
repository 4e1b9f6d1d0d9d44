"""Turns token ids into embeddings: a Hugging Face model, its pooling, and a head that exists only in training.

The texts of a step are in padded batches, called parts: {"input_ids", "attention_mask"}, int64 (B', L).
Letters in shapes: B texts of all parts, B' texts of one part, L tokens, D width.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
import xxhash
from torch import Tensor, nn

from train.encoder.cpu import use_cpu_layers
from train.encoder.pooling import AUTO, DEFAULT_POOLING, OF_TRAINING, POOLINGS, Head
from train.encoder.pretrained import Modules, load_config, load_pretrained, read_modules
from una_fast.errors import InputError, first_line


class SentenceEncoder(nn.Module):
    """A backbone, its pooling and, if `head` is true, a head (Linear + tanh) with initial weights drawn from `seed`."""

    def __init__(
        self, backbone: Any, seed: int, layout: Modules | None = None, head: bool = True, bias_as_mask: bool = False
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.layout = layout or Modules()
        self.pooling = POOLINGS[self.layout.pooling]
        self.bias_as_mask = bias_as_mask  # give the backbone `attention_bias(mask)` instead of the mask
        self.compiled = False
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            width = backbone.config.hidden_size
            self.head = nn.Linear(width, width) if head else None

    def forward(self, parts: list[dict[str, Tensor]]) -> Tensor:
        """Compute the embeddings (B, D) of all parts for the loss. Apply the head if there is one."""
        embeddings = torch.cat([*map(self.embed, self._looked_up(parts))])
        return torch.tanh(self.head(embeddings)) if self.head else embeddings

    def embed(self, part: dict[str, Any]) -> Tensor:
        """Compute the embeddings (B', D) of one part, a padded batch of texts. Do not apply the head."""
        mask = part["attention_mask"]
        if self.bias_as_mask:
            part = {**part, "attention_mask": attention_bias(mask, self.backbone.dtype)}
        return self.pooling.pool(self.backbone(**part), mask)

    def _looked_up(self, parts: list[dict[str, Tensor]]) -> list[dict[str, Any]]:
        """Replace the token ids of all parts by token embeddings, with a single look-up.

        The gradient of a look-up is as large as the embedding matrix. A single look-up saves 9% of MiniLM's step on one
        core. Left-padded parts keep their ids, because RoBERTa recognises padding by its id.
        """
        # on a GPU a step has one part, and checking the padding would make the host wait
        starts = [part["attention_mask"][:, 0] for part in parts]
        if len(parts) == 1 or not all(start.is_cpu and start.all() for start in starts):
            return parts
        ids = torch.cat([part["input_ids"].flatten() for part in parts])
        tokens = self.backbone.get_input_embeddings()(ids)  # (tokens, D)
        split = tokens.split([part["input_ids"].numel() for part in parts])
        return [
            {**part, "input_ids": None, "inputs_embeds": own.view(*part["input_ids"].shape, -1)}  # (B', L, D)
            for part, own in zip(parts, split, strict=True)
        ]


def compile_layers(encoder: SentenceEncoder, part: dict[str, Tensor], autocast: AbstractContextManager[Any]) -> None:
    """Compile the layers of an encoder for training. All layers and input shapes share one program.

    part: an example input. PyTorch chooses the kernels for its shape, so a resumed run must pass the same shape.
    """
    lists = (module for module in encoder.backbone.modules() if isinstance(module, nn.ModuleList))
    for layer in max(lists, key=len, default=()):
        layer.compile(fullgraph=True, dynamic=True)
    try:
        with torch.random.fork_rng():
            with autocast:
                rows = encoder.embed(part)
            rows.sum().backward()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # dynamo, inductor and the C++ compiler raise exceptions of many types
        raise InputError(
            f"--compile on: PyTorch cannot compile this encoder: {first_line(error)}: leave the option out"
        ) from error
    encoder.zero_grad()
    encoder.compiled = True


def head_of(pooling: str, head: Head) -> Head:
    """Resolve --head: "auto" means "mlp" for [CLS] pooling, and "none" for other poolings."""
    return head if head != AUTO else "mlp" if pooling == POOLINGS[DEFAULT_POOLING].in_training else "none"


def load_encoder(
    name: str,
    dropout: float,
    seed: int,
    pooling: str = AUTO,
    head: Head = "auto",
    trust: bool = False,
    device: str = "cpu",
    config: Any = None,
    layout: Modules | None = None,
) -> SentenceEncoder:
    """Load an encoder for training, in float32, with a new head. Freeze weights that the embeddings do not depend on.

    pooling, head: as in --pooling and --head. trust: run Python code that comes with the model. device: the type of the
    device that will run the encoder. config, layout: from `load_config` and `read_modules`, if the caller has them.
    """
    layout = layout or read_modules(name, OF_TRAINING.get(pooling, AUTO))
    backbone, _ = load_pretrained(name, config or load_config(name, dropout, trust), trust)
    with_head = head_of(POOLINGS[layout.pooling].in_training, head) == "mlp"
    bias_as_mask = device == "cuda" and accepts_bias(backbone)
    encoder = SentenceEncoder(backbone.float(), seed, layout, with_head, bias_as_mask).train()
    if device == "cpu":
        use_cpu_layers(encoder)
    encoder([part_of_ones(1, 4)]).sum().backward()
    for weights in encoder.parameters():  # freezes a pooler's, for example: ranks sum only gradients that exist
        weights.requires_grad_(weights.grad is not None)
    encoder.zero_grad()
    return encoder


def part_of_ones(rows: int, columns: int, device: torch.device | None = None) -> dict[str, Tensor]:
    """Make dummy token ids and their mask, all 1, of shape (rows, columns)."""
    ids = torch.ones(rows, columns, dtype=torch.int64, device=device)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def attention_bias(mask: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Turn a mask, int64 (B', L), into the bias (B', 1, 1, L) that attention adds: 0 for tokens, -inf for padding.

    Under autocast the bias has autocast's dtype instead of `dtype`, so that no layer has to convert it.
    """
    kind = mask.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else dtype
    return mask.new_zeros(mask.shape, dtype=dtype).masked_fill_(mask == 0, -torch.inf)[:, None, None]


def accepts_bias(backbone: Any) -> bool:
    """Test whether a model gives equal outputs for a mask and the mask's `attention_bias`.

    After the test, the model is in training mode.

    A bias is faster: a model that gets a mask tests it for zeros, which makes the host wait for the GPU. Models with
    sliding-window attention need the mask, because they build the masks of their layers from it.
    """
    if any(getattr(backbone.config, name, None) for name in ("sliding_window", "local_attention")):
        return False
    ids, mask = torch.arange(8).view(2, 4), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    forms = (mask, attention_bias(mask))
    backbone.eval()
    try:
        with torch.no_grad():
            plain, biased = (backbone(input_ids=ids, attention_mask=form)[0][mask.bool()] for form in forms)
        return torch.allclose(plain, biased, rtol=1e-4, atol=1e-5)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return False
    finally:
        backbone.train()


def weights_digest(module: nn.Module) -> str:
    """Return the xxh3-128 hash of the names and values of all weights that are not frozen."""
    digest = xxhash.xxh3_128()
    for name, weights in sorted(module.named_parameters()):
        if weights.requires_grad:
            digest.update(name.encode())
            digest.update(weights.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
