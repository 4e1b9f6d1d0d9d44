"""Token ids -> embeddings: a Hugging Face encoder with dropout, its pooling, and the head that training alone uses.

Letters: B rows, L tokens, D width.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import torch
import xxhash
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging as hf_logging

from train.encoder.dropout import use_cpu_dropout
from train.encoder.graphs import Graphs
from train.encoder.modules import Modules, read_modules
from train.encoder.onednn import use_onednn
from train.encoder.pooling import AUTO, DEFAULT_POOLING, OF_TRAINING, POOLINGS, Head, Pooling
from train.objective.masking import Masked
from una_fast.errors import InputError

# names of the two dropouts in the configurations of encoders
DROPOUT_NAMES = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout")
# what transformers raises for files that are missing, cut short, of wrong shapes or of wrong types
DAMAGED = (
    OSError, ValueError, KeyError, ImportError, SafetensorError, RuntimeError, TypeError, AttributeError, IndexError,
    ArithmeticError, AssertionError, StrictDataclassError,
)  # fmt: skip


def quiet() -> None:
    """Silence transformers' progress bars and its notes on weights that are not used here."""
    hf_logging.disable_progress_bar()
    hf_logging.set_verbosity_error()
    logging.getLogger("transformers").setLevel(logging.ERROR)


def from_pretrained(what: str, kind: Any, name: str, trust: bool = False, **kwargs: Any) -> Any:
    """kind.from_pretrained(name), with an InputError for files that are missing or cannot be read.

    what: the name of these files in the message. trust: run Python code that comes with the model; without it, a model
    that needs such code is refused.
    """
    if (looks_like_folder := Path(name).exists() or name.startswith((".", "/", "~"))) and not Path(name).is_dir():
        raise InputError(f"model {name}: there is no such folder")
    try:
        return kind.from_pretrained(name, trust_remote_code=trust, **kwargs)
    except DAMAGED as error:
        if "trust_remote_code" in str(error):
            raise InputError(
                f"model {name}: its {what} can be read only by Python code that comes with the model: read that code, "
                "and give --trust-remote-code (in Python: trust=True) if it may run here"
            ) from error
        where = "folder" if looks_like_folder else "name on the Hugging Face hub (is there a network?)"
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"model {name}: no {what} in this {where} that can be read: {first_line}") from error


def load_config(name: str, dropout: float, trust: bool = False) -> Any:
    """The encoder's configuration, with `dropout` in hidden states and attention."""
    config = from_pretrained("configuration", AutoConfig, name, trust)
    for attribute in DROPOUT_NAMES:
        if hasattr(config, attribute):
            setattr(config, attribute, dropout)
    return config


def load_tokenizer(name: str, trust: bool = False) -> Any:
    """The fast tokenizer of an encoder; InputError where there is none."""
    folder = Path(name)
    files = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model")
    if folder.is_dir() and not any((folder / file).is_file() for file in files):
        raise InputError(f"model {name}: the folder has no tokenizer: copy tokenizer.json of the model into it")
    return from_pretrained("tokenizer", AutoTokenizer, name, trust)


def is_roberta(config: Any) -> bool:
    """True for the RoBERTa family, whose preset differs from BERT's."""
    return "roberta" in config.model_type


class SentenceEncoder(nn.Module):
    """A backbone and its pooling; in training also a head (Linear + tanh), if `head` is true.

    layout: the pooling and the other settings of the embeddings that best/ stores.
    """

    def __init__(
        self,
        backbone: nn.Module,
        width: int,
        seed: int,
        layout: Modules | None = None,
        head: bool = True,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.layout = layout or Modules()
        self.pooling = Pooling(self.layout.pooling)
        self.head = nn.Linear(width, width) if head else None
        self.ready_mask = False  # True: the backbone gets its mask in the form of its attention, see `ready_mask`
        self.graphs: Graphs | None = None  # if set, they run in place of the backbone
        self.mlm: nn.Module | None = None  # an `mlm.MlmHead`, if the run has that loss
        if self.head:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                self.head.reset_parameters()

    def forward(self, parts: list[dict[str, Tensor]], masked: Masked | None = None) -> Any:
        """Embeddings for the loss, (B, D), of parts of (B', L) token ids, in the order of the parts.

        With masked sentences: a pair of these embeddings and the sum of the masked tokens' losses, a scalar.
        """
        rows = self._rows(parts)
        return (rows, self._masked_loss(masked)) if masked else rows

    def _rows(self, parts: list[dict[str, Tensor]]) -> Tensor:
        if self.graphs:
            pooled = [self.graphs(place, part) for place, part in enumerate(parts)]
        else:
            pooled = [self.embed(part) for part in self._looked_up(parts)]
        rows = torch.cat(pooled)  # (B, D)
        return torch.tanh(self.head(rows)) if self.head else rows

    def embed(self, part: dict[str, Any], backbone: Callable[..., Any] | None = None) -> Tensor:
        """Embeddings (B', D) of (B', L) token ids; `backbone` may stand in for the encoder's own."""
        return self.pooling(self._output(part, backbone or self.backbone), part["attention_mask"])

    def _output(self, part: dict[str, Any], backbone: Callable[..., Any]) -> Any:
        if self.ready_mask:
            part = {**part, "attention_mask": part["attention_mask"][:, None, None].bool()}  # (B', 1, 1, L)
        return backbone(**part)

    def _masked_loss(self, masked: Masked) -> Tensor:
        assert self.mlm is not None
        states = self._output(masked.part, self.backbone).last_hidden_state  # (b, L, D)
        return self.mlm(states.flatten(0, 1)[masked.positions], masked.targets, self.word_table)

    @property
    def word_embeddings(self) -> nn.Module:
        """The backbone's table of word embeddings."""
        return self.backbone.get_input_embeddings()  # type: ignore[operator]

    @property
    def word_table(self) -> Tensor:
        """The weights (V, E) of `word_embeddings`."""
        return cast(Tensor, self.word_embeddings.weight)

    def _looked_up(self, parts: list[dict[str, Tensor]]) -> list[dict[str, Any]]:
        """The parts with word embeddings in place of ids, from one look-up for all parts.

        The gradient of a look-up is as large as the vocabulary: computing it once per step, and not once per part,
        saves 9 % of a step of MiniLM on one core.
        """
        if len(parts) == 1:
            return parts
        ids = [part["input_ids"] for part in parts]
        words = self.word_embeddings(torch.cat([part.flatten() for part in ids]))  # (tokens, D)
        rows = words.split([part.numel() for part in ids])
        return [
            {**part, "input_ids": None, "inputs_embeds": own.view(*part["input_ids"].shape, -1)}  # (B', L, D)
            for part, own in zip(parts, rows, strict=True)
        ]


def pooling_of(name: str, pooling: str) -> Modules:
    """The embedding settings of a model's folder, with the pooling replaced by training's --pooling.

    Raises:
        InputError: "auto" for a model with a module that is not supported here.
    """
    return read_modules(name).chosen(pooling if pooling == AUTO else OF_TRAINING[pooling])


def head_of(pooling: str, head: Head) -> Head:
    """The value "mlp" or "none" of training's --head; "auto" is SimCSE's head for [CLS], none for other poolings."""
    return head if head != AUTO else "mlp" if pooling == POOLINGS[DEFAULT_POOLING].in_training else "none"


def load_encoder(
    name: str, config: Any, seed: int, pooling: str = AUTO, head: Head = "auto", trust: bool = False
) -> SentenceEncoder:
    """The encoder in float32 with a fresh head, in training mode; weights that no embedding needs are frozen."""
    layout = pooling_of(name, pooling)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # for weights that the checkpoint lacks, such as a pooler's
        backbone = from_pretrained("weights", AutoModel, name, trust, config=config).float()
    with_head = head_of(POOLINGS[layout.pooling].in_training, head) == "mlp"
    encoder = SentenceEncoder(backbone, config.hidden_size, seed, layout, with_head).train()
    use_onednn(encoder)
    use_cpu_dropout(encoder)
    _freeze_unused(encoder)
    return encoder


def _freeze_unused(encoder: SentenceEncoder) -> None:
    """Freeze weights that get no gradient (a pooler's): DDP would wait for their gradients."""
    ids = torch.ones(1, 4, dtype=torch.int64)
    encoder([{"input_ids": ids, "attention_mask": torch.ones_like(ids)}]).sum().backward()
    for parameter in encoder.parameters():
        if parameter.grad is None:
            parameter.requires_grad_(False)
    encoder.zero_grad(set_to_none=True)


def weights_digest(module: nn.Module) -> str:
    """xxh3-128 of all trained weights, which identifies a run's model in whatever folder it is."""
    digest = xxhash.xxh3_128()
    for name, weights in sorted(module.named_parameters()):
        if weights.requires_grad:
            digest.update(name.encode())
            digest.update(weights.detach().cpu().contiguous().view(-1).numpy().data)
    return digest.hexdigest()
