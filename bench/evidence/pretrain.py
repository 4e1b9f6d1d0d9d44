"""Trains Scratch: a masked language model from random weights, with which the bases wiki-lm and wiki-lm-cls start.

The model is BERT with 6 layers of width 384. It sees no labelled pair and no contrastive step, so all gains of an
encoder made from it come from the contrastive training. A row has 64 tokens of consecutive sentences without padding;
sentences are shuffled again in every epoch, and masked again in every step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from una_fast.errors import InputError

IGNORED = -100  # target that cross_entropy ignores
WITHOUT_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
IGNORED_ENTRIES = 999  # first entries of BERT's vocabulary, which no sentence contains; no random token is one of them


@dataclass(frozen=True)
class Plan:
    """The settings of a pretraining. The schedule is linear: up in a share of the steps, then down to 0."""

    layers: int = 6
    width: int = 384
    heads: int = 12
    rows: int = 1024
    length: int = 64
    masked: int = 10  # masked positions per row: 15.6% of 64
    steps: int = 6683  # 438 million tokens
    rate: float = 1e-3
    warmup: float = 0.06
    seed: int = 42


def pretrain(start: Path, corpus: Path, output: Path, plan: Plan = Plan()) -> list[float]:
    """Train a new BertForMaskedLM, save its encoder to `output`, and return the losses of `fit`.

    start: a folder with BERT's tokenizer; corpus: one sentence per line.
    """
    import transformers

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(plan.seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(start)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=plan.width, num_hidden_layers=plan.layers,
        num_attention_heads=plan.heads, intermediate_size=4 * plan.width, max_position_embeddings=128,
        **WITHOUT_DROPOUT,
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config).to(device).train()
    lines = corpus.read_text(encoding="utf-8").splitlines()
    sentences = Sentences(tokenizer(lines, truncation=True, max_length=plan.length)["input_ids"], plan.length, device)
    batches = (mask_rows(rows, tokenizer, plan.masked) for rows in sentences.batches(plan.rows))
    losses = fit(model, batches, plan.steps, plan.rate, plan.warmup, betas=(0.9, 0.98), eps=1e-6)
    save_encoder(model, tokenizer, output)
    return losses


def save_encoder(model: Any, tokenizer: Any, output: Path) -> None:
    """Save the encoder of a BertForMaskedLM without its head, and with BERT's dropout."""
    model.config.update(dict.fromkeys(WITHOUT_DROPOUT, 0.1))
    model.cpu().bert.save_pretrained(output)
    tokenizer.save_pretrained(output)


def fit(
    model: Any,
    batches: Iterable[tuple[Mapping[str, Tensor], Tensor, Tensor]],
    steps: int,
    rate: float,
    warmup: float,
    **adam: Any,
) -> list[float]:
    """Train a BertForMaskedLM with AdamW in bf16, and return the mean losses of every 100 steps.

    The head is applied only to masked positions, because logits of all positions would cost three times as much as the
    encoder.

    batches: (masked batch, positions to predict as indices into the flattened ids, tokens to predict).
    warmup: share of the steps in which the learning rate rises to `rate`. It then falls to 0.
    """
    import transformers

    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01, fused=True, **adam)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, round(warmup * steps), steps)
    losses: list[Tensor] = []
    means: list[float] = []
    for ids, places, tokens in islice(batches, steps):
        with torch.autocast(places.device.type, torch.bfloat16):
            states = model.bert(**ids).last_hidden_state
            logits = model.cls(states.flatten(0, 1)[places])  # (n_masked, vocabulary)
        loss = functional.cross_entropy(logits.float(), tokens, ignore_index=IGNORED)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
        if len(losses) == 100:
            means.append(round(float(torch.stack(losses).mean()), 4))
            print(f"language model, step {100 * len(means)} of {steps}: loss {means[-1]:.3f}", flush=True)
            losses.clear()
    return means


class Sentences:
    """Stores sentences on a device, and packs them into rows without padding."""

    def __init__(self, ids: Sequence[Sequence[int]], length: int, device: torch.device) -> None:
        """ids: of each sentence, with special tokens; length: tokens of a row."""
        self._stream = torch.from_numpy(np.fromiter(chain.from_iterable(ids), np.int32)).to(device)
        self._lengths = torch.tensor([*map(len, ids)], device=device)
        self._starts = self._lengths.cumsum(0) - self._lengths
        self._length = length

    def epoch(self) -> Tensor:
        """Shuffle the sentences, and return them packed into rows, int64 (n_rows, length).

        Each row begins with the start of a sentence. The last sentence of a row is truncated.
        """
        order = torch.randperm(len(self._lengths), device=self._stream.device)
        lengths = self._lengths[order]
        starts = lengths.cumsum(0) - lengths
        moved = torch.repeat_interleave(self._starts[order] - starts, lengths)
        places = torch.arange(len(moved), device=moved.device)
        stream = self._stream[places + moved]
        last = len(stream) - self._length
        marks = places[: last + 1 : self._length].contiguous()
        first = starts[torch.searchsorted(starts, marks).clamp(max=len(starts) - 1)]
        first = first[first <= last]
        return stream[first[:, None] + places[: self._length]].long()

    def batches(self, rows: int) -> Iterator[Tensor]:
        """Yield batches of rows, int64 (rows, length), without end."""
        while True:
            full = [part for part in self.epoch().split(rows) if len(part) == rows]
            if not full:
                raise InputError(f"the sentences have fewer than {rows} rows of {self._length} tokens")
            yield from full


def mask_rows(rows: Tensor, tokenizer: Any, number: int) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """Mask as many tokens in each row of token ids, int64 (n_rows, n_tokens), so that all steps have the same shapes.

    Returns:
        ({"input_ids": masked ids}, positions, tokens): the masked positions as indices into the flattened ids, and the
        tokens to predict there, both int64 (n_rows * number,).
    """
    chances = torch.rand(rows.shape, device=rows.device)
    for mark in (tokenizer.cls_token_id, tokenizer.sep_token_id):
        chances.masked_fill_(rows == mark, -1)
    places = chances.topk(number).indices  # (n_rows, number)
    tokens = rows.gather(1, places)
    kind = torch.rand(places.shape, device=rows.device)
    other = torch.randint(IGNORED_ENTRIES, len(tokenizer), places.shape, device=rows.device)
    put = torch.where(kind < 0.8, tokenizer.mask_token_id, torch.where(kind < 0.9, other, tokens))
    flat = places + torch.arange(len(rows), device=rows.device)[:, None] * rows.shape[1]
    return {"input_ids": rows.scatter(1, places, put)}, flat.flatten(), tokens.flatten()
