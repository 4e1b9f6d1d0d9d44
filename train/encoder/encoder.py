"""Token ids -> embeddings: a Hugging Face encoder with dropout, its pooling, and the head that training alone uses.

Letters: B rows, L tokens, D width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
import xxhash
from torch import Tensor, nn
from transformers import AutoModel

from train.encoder.cpu import use_cpu_layers
from train.encoder.mlm import Masked, MlmHead, load_mlm_head
from train.encoder.modules import Modules, read_modules
from train.encoder.pooling import AUTO, DEFAULT_POOLING, OF_TRAINING, POOLINGS, Head
from train.encoder.pretrained import from_pretrained, load_config


class SentenceEncoder(nn.Module):
    """A backbone and its pooling; in training also a head (Linear + tanh), if `head` is true.

    Attributes:
        layout: the pooling and the other settings of the embeddings that best/ stores.
        ready_mask: the backbone gets its mask in the form of its attention, see `takes_ready_mask`.
        mlm: the masked-language-model head, if there is one.
        compiled: `embed` as a compiled function, if training uses one, see `train.encoder.compiled`.
    """

    def __init__(
        self, backbone: Any, seed: int, layout: Modules | None = None, head: bool = True, ready_mask: bool = False
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.layout = layout or Modules()
        self.pooling = POOLINGS[self.layout.pooling]
        self.ready_mask = ready_mask
        self.mlm: MlmHead | None = None
        self.compiled: Callable[[dict[str, Tensor]], Tensor] | None = None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            width = backbone.config.hidden_size
            self.head = nn.Linear(width, width) if head else None

    def forward(self, parts: list[dict[str, Tensor]], masked: Masked | None = None) -> tuple[Tensor, Tensor | None]:
        """Embeddings for the loss, (B, D), of parts of (B', L) token ids, in the order of the parts.

        The second value is the sum of the masked tokens' losses, a scalar, or None without masked sentences.
        """
        pooled = [*map(self.compiled, parts)] if self.compiled else [*map(self.embed, self._looked_up(parts))]
        rows = torch.cat(pooled)  # (B, D)
        if self.head:
            rows = torch.tanh(self.head(rows))
        if not masked:
            return rows, None
        assert self.mlm is not None
        states = self._output(masked.part).last_hidden_state  # (b, L, D)
        return rows, self.mlm(states.flatten(0, 1)[masked.positions], masked.targets, self.word_table)

    def embed(self, part: dict[str, Any]) -> Tensor:
        """Embeddings (B', D) of (B', L) token ids."""
        return self.pooling.pool(self._output(part), part["attention_mask"])

    def _output(self, part: dict[str, Any]) -> Any:
        if self.ready_mask:
            part = {**part, "attention_mask": part["attention_mask"][:, None, None].bool()}  # (B', 1, 1, L)
        return self.backbone(**part)

    @property
    def word_table(self) -> Tensor:
        """The weights (V, E) of the backbone's word embeddings."""
        return cast(Tensor, self.backbone.get_input_embeddings().weight)

    def _looked_up(self, parts: list[dict[str, Tensor]]) -> list[dict[str, Any]]:
        """The parts with word embeddings in place of ids, from one look-up for all parts.

        The gradient of a look-up is as large as the vocabulary: computing it once per step, and not once per part,
        saves 9 % of a step of MiniLM on one core.
        """
        if len(parts) == 1:
            return parts
        ids = [part["input_ids"] for part in parts]
        table: Any = self.backbone.get_input_embeddings()
        words = table(torch.cat([part.flatten() for part in ids]))  # (tokens, D)
        rows = words.split([part.numel() for part in ids])
        return [
            {**part, "input_ids": None, "inputs_embeds": own.view(*part["input_ids"].shape, -1)}  # (B', L, D)
            for part, own in zip(parts, rows, strict=True)
        ]


def head_of(pooling: str, head: Head) -> Head:
    """The value "mlp" or "none" of training's --head; "auto" is SimCSE's head for [CLS], none for other poolings."""
    return head if head != AUTO else "mlp" if pooling == POOLINGS[DEFAULT_POOLING].in_training else "none"


def load_encoder(
    name: str,
    dropout: float,
    seed: int,
    pooling: str = AUTO,
    head: Head = "auto",
    trust: bool = False,
    device: str = "cpu",
    with_mlm: bool = False,
) -> SentenceEncoder:
    """The encoder in float32 with a fresh head, in training mode; weights that no embedding needs are frozen.

    pooling, head: values of --pooling and --head. device: the kind of device that it will be moved to. with_mlm: it
    also has the masked-language-model head.
    """
    layout, config = read_modules(name, OF_TRAINING.get(pooling, AUTO)), load_config(name, dropout, trust)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # for weights that the checkpoint lacks, such as a pooler's
        backbone = from_pretrained("weights", AutoModel, name, trust, config=config).float()
    with_head = head_of(POOLINGS[layout.pooling].in_training, head) == "mlp"
    ready_mask = device == "cuda" and takes_ready_mask(backbone)
    encoder = SentenceEncoder(backbone, seed, layout, with_head, ready_mask).train()
    use_cpu_layers(encoder)
    _freeze_unused(encoder)
    if with_mlm:
        encoder.mlm = load_mlm_head(name, config, encoder.word_table, seed, trust)
    return encoder


def _freeze_unused(encoder: SentenceEncoder) -> None:
    """Freeze weights that get no gradient (a pooler's): DDP would wait for their gradients."""
    ids = torch.ones(1, 4, dtype=torch.int64)
    encoder([{"input_ids": ids, "attention_mask": torch.ones_like(ids)}])[0].sum().backward()
    for parameter in encoder.parameters():
        if parameter.grad is None:
            parameter.requires_grad_(False)
    encoder.zero_grad(set_to_none=True)


def takes_ready_mask(backbone: nn.Module) -> bool:
    """Whether the model gives the same output for a boolean mask (B, 1, 1, L) as for an int64 mask (B, L).

    A model that gets (B, L) first checks whether the mask holds a zero, and on a GPU the CPU waits for the answer.
    """
    mask, device = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]), next(backbone.parameters()).device
    ids = torch.arange(8, device=device).view(2, 4)
    training = backbone.training
    try:
        with torch.no_grad():
            backbone.eval()
            plain, ready = (
                backbone(input_ids=ids, attention_mask=form.to(device)).last_hidden_state[mask.bool()]
                for form in (mask, mask[:, None, None].bool())
            )
        return torch.allclose(plain, ready, rtol=1e-4, atol=1e-5)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return False
    finally:
        backbone.train(training)


def weights_digest(module: nn.Module) -> str:
    """xxh3-128 of all trained weights, which identifies a run's model in whatever folder it is."""
    digest = xxhash.xxh3_128()
    for name, weights in sorted(module.named_parameters()):
        if weights.requires_grad:
            digest.update(name.encode())
            digest.update(weights.detach().cpu().contiguous().view(-1).numpy().data)
    return digest.hexdigest()
