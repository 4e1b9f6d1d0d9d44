"""Token ids -> embeddings: a Hugging Face encoder with dropout, its pooling, and what only training adds to it.

Training adds a head (Linear + tanh) and the masked-language-model loss of SimCSE (Gao et al. 2021, section 3). As in
BERT (Devlin et al. 2019, section 3.1), the model predicts 15% of the tokens, never special ones: 80% of them are
replaced by the mask token, 10% by a random token, and 10% are unchanged. Each draw is a function of (seed, epoch, row,
position). Checkpoints contain the head of this loss, best/ does not.

Letters: B rows, L tokens, D width of states, E of word embeddings, m masked tokens, V tokens of the vocabulary.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
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

from train.encoder.cpu import use_cpu_layers
from train.encoder.pooling import AUTO, DEFAULT_POOLING, OF_TRAINING, POOLINGS, Head
from train.encoder.pretrained import Modules, load_config, load_pretrained, read_modules
from una_fast.augment.counter_rng import CounterRNG
from una_fast.errors import InputError, first_line

SHARE, TO_MASK, TO_RANDOM = 0.15, 0.8, 0.1
CHOICE, KIND, TOKEN = 0, 1, 2  # numbers of the draws at a position
# for each family: the names of the linear layer, of the normalisation and of the bias
NAMES = (
    ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"),
    ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
    ("predictions.dense", "predictions.LayerNorm", "predictions.bias"),
    ("head.dense", "head.norm", "decoder.bias"),
    ("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head.bias"),
)


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


class MlmHead(nn.Module):
    """The head on states of width D, for a table of word embeddings (V, E)."""

    def __init__(self, width: int, n_tokens: int, word_width: int, eps: float, activation: str = "gelu") -> None:
        super().__init__()
        self.dense, self.activation = nn.Linear(width, word_width), ACT2FN[activation]
        self.norm = nn.LayerNorm(word_width, eps=eps)
        self.bias = nn.Parameter(torch.zeros(n_tokens))

    def forward(self, states: Tensor, targets: Tensor, words: Tensor) -> Tensor:
        """The sum of cross-entropies, a scalar; states: (m, D), targets: int64 (m,), words: (V, E)."""
        hidden = self.norm(self.activation(self.dense(states)))
        logits = functional.linear(hidden, words, self.bias)  # (m, V)
        return functional.cross_entropy(logits.float(), targets, reduction="sum")


def load_mlm_head(name: str, config: Any, words: Tensor, seed: int, trust: bool = False) -> MlmHead:
    """The head of a checkpoint, or a new one drawn from `seed`; words: the word embeddings (V, E) of its encoder."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        eps = getattr(config, "layer_norm_eps", getattr(config, "norm_eps", 1e-12))
        activation = getattr(config, "hidden_act", "gelu")
        head = MlmHead(config.hidden_size, len(words), words.shape[1], eps, activation)
        nn.init.normal_(head.dense.weight, std=0.02)
        nn.init.zeros_(head.dense.bias)
        try:
            network, missing = load_pretrained(name, config, trust, AutoModelForMaskedLM)
        except InputError:  # transformers has no such head for this kind of model
            return head
    saved = {key: value.float() for key, value in network.state_dict().items() if key not in missing}
    for dense, norm, bias in NAMES:
        names = {"dense.weight": f"{dense}.weight", "dense.bias": f"{dense}.bias", "norm.weight": f"{norm}.weight",
                 "norm.bias": f"{norm}.bias", "bias": bias}  # fmt: skip
        found = {own: saved[name] for own, name in names.items() if name in saved}  # ModernBERT's has one bias
        if {"dense.weight", "norm.weight", "bias"} <= found.keys() and all(
            value.shape == head.state_dict()[own].shape for own, value in found.items()
        ):
            head.load_state_dict(found, strict=False)
    return head


class SentenceEncoder(nn.Module):
    """A backbone and its pooling; in training also a head (Linear + tanh), if `head` is true."""

    def __init__(
        self, backbone: Any, seed: int, layout: Modules | None = None, head: bool = True, ready_mask: bool = False
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.layout = layout or Modules()  # the pooling and the other settings of the embeddings that best/ stores
        self.pooling = POOLINGS[self.layout.pooling]
        self.ready_mask = ready_mask  # the backbone gets the mask of its attention, see `takes_ready_mask`
        self.mlm: MlmHead | None = None
        self.compiled = False
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            width = backbone.config.hidden_size
            self.head = nn.Linear(width, width) if head else None

    def forward(self, parts: list[dict[str, Tensor]], masked: Masked | None = None) -> tuple[Tensor, Tensor | None]:
        """Embeddings for the loss, (B, D), of parts of (B', L) token ids, in the order of the parts.

        The second value is the sum of the masked tokens' losses, a scalar, or None without masked sentences.
        """
        rows = torch.cat([*map(self.embed, self._looked_up(parts))])  # (B, D)
        if self.head:
            rows = torch.tanh(self.head(rows))
        if not masked:
            return rows, None
        assert self.mlm is not None
        states = self._output(masked.part).last_hidden_state  # (b, L, D)
        return rows, self.mlm(states.flatten(0, 1)[masked.positions], masked.targets, self.words.weight)

    def embed(self, part: dict[str, Any]) -> Tensor:
        """Embeddings (B', D) of (B', L) token ids."""
        return self.pooling.pool(self._output(part), part["attention_mask"])

    def _output(self, part: dict[str, Any]) -> Any:
        if self.ready_mask:
            part = {**part, "attention_mask": attention_bias(part["attention_mask"], self.words.weight.dtype)}
        return self.backbone(**part)

    @property
    def words(self) -> nn.Embedding:
        """The backbone's word embeddings, weights (V, E)."""
        return self.backbone.get_input_embeddings()

    def _looked_up(self, parts: list[dict[str, Tensor]]) -> list[dict[str, Any]]:
        """The parts with word embeddings instead of ids, from one look-up for all parts.

        The gradient of a look-up is as large as the vocabulary: computing it once per step instead of once per part
        saves 9% of a step of MiniLM on one core. With padding on the left this is not done, because RoBERTa recognises
        padding by its id. On a GPU, checking for it would synchronise, and a step has one part.
        """
        starts = [part["attention_mask"][:, 0] for part in parts]
        if len(parts) == 1 or not all(start.is_cpu and start.all() for start in starts):
            return parts
        words = self.words(torch.cat([part["input_ids"].flatten() for part in parts]))  # (tokens, D)
        rows = words.split([part["input_ids"].numel() for part in parts])
        return [
            {**part, "input_ids": None, "inputs_embeds": row.view(*part["input_ids"].shape, -1)}  # (B', L, D)
            for part, row in zip(parts, rows, strict=True)
        ]


def compile_layers(encoder: SentenceEncoder, part: dict[str, Tensor], autocast: AbstractContextManager[Any]) -> None:
    """Compile the encoder's layers: one program for all of them, and for any number of rows and columns.

    Args:
        encoder: an encoder in training mode, on its device.
        part: token ids and mask (B, L) to compile with. B and L decide which kernels are made, so a resumed run must
            give the same.
        autocast: the context of the encoder's precision.

    Raises:
        InputError: PyTorch cannot compile them.
    """
    torch._dynamo.config.optimize_ddp = False  # one graph instead of one for each of DDP's buckets
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
        said = f"PyTorch cannot compile this encoder: {first_line(error)}"
        raise InputError(f"--compile on: {said}: leave the option out") from error
    encoder.zero_grad()
    encoder.compiled = True


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
    config: Any = None,
    layout: Modules | None = None,
) -> SentenceEncoder:
    """The encoder in float32 with a fresh head, in training mode; weights that no embedding needs are frozen.

    pooling, head: values of --pooling and --head. device: the kind of device that it will be moved to. with_mlm: it
    also has the masked-language-model head. config, layout: as `load_config` and `read_modules` read them with
    `dropout` and `pooling`, if the caller has them.
    """
    layout = layout or read_modules(name, OF_TRAINING.get(pooling, AUTO))
    backbone, _ = load_pretrained(name, config or load_config(name, dropout, trust), trust)
    with_head = head_of(POOLINGS[layout.pooling].in_training, head) == "mlp"
    ready_mask = device == "cuda" and takes_ready_mask(backbone)
    encoder = SentenceEncoder(backbone.float(), seed, layout, with_head, ready_mask).train()
    use_cpu_layers(encoder)
    _freeze_unused(encoder)
    if with_mlm:
        encoder.mlm = load_mlm_head(name, backbone.config, encoder.words.weight, seed, trust)
    return encoder


def part_of_ones(rows: int, columns: int, device: torch.device | None = None) -> dict[str, Tensor]:
    """A part (rows, columns) of arbitrary text."""
    ids = torch.ones(rows, columns, dtype=torch.int64, device=device)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def _freeze_unused(encoder: SentenceEncoder) -> None:
    """Freeze weights that get no gradient, such as a pooler's: DDP would wait for their gradients."""
    encoder([part_of_ones(1, 4)])[0].sum().backward()
    for parameter in encoder.parameters():
        parameter.requires_grad_(parameter.grad is not None)
    encoder.zero_grad()


def attention_bias(mask: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """What attention adds to its scores for a mask int64 (B', L): 0 for tokens, -inf for padding, (B', 1, 1, L).

    In autocast's dtype, or else in that of the weights: every layer would convert a boolean mask or another dtype.
    """
    kind = mask.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else dtype
    return mask.new_zeros(mask.shape, dtype=dtype).masked_fill_(mask == 0, -torch.inf)[:, None, None]


def takes_ready_mask(backbone: Any) -> bool:
    """Whether the model, in training mode, gives the same output for `attention_bias` (B, 1, 1, L) as for int64 (B, L).

    A model that gets (B, L) first checks whether the mask holds a zero, and on a GPU the CPU waits for the answer.
    Models with sliding-window attention need (B, L), from which they make the masks of their layers.
    """
    if any(getattr(backbone.config, name, None) for name in ("sliding_window", "local_attention")):
        return False
    ids, mask = torch.arange(8).view(2, 4), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    forms = (mask, attention_bias(mask))
    backbone.eval()
    try:
        with torch.no_grad():
            plain, ready = (backbone(input_ids=ids, attention_mask=form)[0][mask.bool()] for form in forms)
        return torch.allclose(plain, ready, rtol=1e-4, atol=1e-5)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return False
    finally:
        backbone.train()


def weights_digest(module: nn.Module) -> str:
    """xxh3-128 of all weights that are not frozen, which identifies a model in whatever folder it is."""
    digest = xxhash.xxh3_128()
    for name, weights in sorted(module.named_parameters()):
        if weights.requires_grad:
            digest.update(name.encode())
            digest.update(weights.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
