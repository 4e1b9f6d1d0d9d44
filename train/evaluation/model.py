"""A model to evaluate, and embeddings of texts: each distinct sentence is encoded once, in batches of similar length.

`PairScorer` scores pairs under an encoder whose weights change: the dev evaluation of training.
Letters of shapes: B sentences of a batch, L its longest, D the width of an embedding, n distinct sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from inspect import signature
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

from train.encoder import pretrained
from train.encoder.cpu import use_cpu_layers
from train.encoder.pooling import AUTO, POOLINGS
from train.encoder.pretrained import LONGEST, Modules
from train.evaluation.similarity import cosine, spearman
from train.evaluation.tasks.sts import StsTask
from una_fast.errors import InputError, counted

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}  # by --precision
Encode = Callable[[dict[str, Tensor]], Tensor]
CPU_BATCH_TOKENS = 1024  # of a batch, padding included: its activations stay in the cache
GPU_BATCH_TOKENS = 65_536  # fills the GPU


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

    def encode(self, batch: dict[str, Tensor]) -> Tensor:
        """Embeddings (B, D) of int64 (B, L) ids."""
        pooling = POOLINGS[self.layout.pooling]
        output = self.network(**batch, output_hidden_states=pooling.needs_hidden_states)
        embeddings = pooling.pool(output, batch["attention_mask"])
        return nn.functional.normalize(embeddings) if self.layout.normalize else embeddings

    def batches(self, lists: Iterable[Sequence[str]], max_length: int | None = None) -> Batches:
        """Tokenize the texts of some lists, with the model's prompt and case."""
        return Batches(lists, self.tokenizer, max_length or self.max_length, self.device, self.layout.prepared)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeddings float32 (n, D) of the texts."""
        if not len(texts):
            return np.empty((0, self.network.config.hidden_size), np.float32)
        batches = self.batches([texts])
        return batches.embed(self.encode, threads=None)[batches.rows[0]]

    @property
    def max_length(self) -> int:
        """Most tokens of a sentence."""
        return self.layout.longest(self.tokenizer, self.network.config)


def pick_device(device: str) -> torch.device:
    """The device for "auto", "cpu", "cuda" or "cuda:N". Raises InputError if this machine lacks it."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    try:
        place = torch.device(("cuda" if gpus else "cpu") if device == "auto" else device)
    except RuntimeError:
        raise InputError(f"--device {device}: choose auto, cpu, cuda or cuda:N") from None
    if place.type == "cuda" and (place.index or 0) >= gpus:
        raise InputError(f"--device {device}: PyTorch sees {counted(gpus, 'GPU')} here: name another, or --device cpu")
    return place


def load_model(
    name: str, pooling: str = AUTO, precision: str = "fp32", device: str = "auto", trust: bool = False
) -> EvaluatedModel:
    """Load an encoder from the hub or a folder. pooling: a name of POOLINGS, "mean" for "avg", or "auto": modules.json.

    Raises InputError if the model, its tokenizer or the pooler that "cls" reads is missing or damaged.
    """
    pooling, place = "avg" if pooling == "mean" else pooling, pick_device(device)
    pretrained.quiet()
    config = pretrained.load_config(name, None, trust)
    tokenizer = pretrained.load_tokenizer(name, trust, config)
    layout = pretrained.read_modules(name) if pooling == AUTO else Modules(pooling=pooling)
    network, has_pooler = pretrained.load_pretrained(name, config, trust)
    if pooling == "cls" and not has_pooler:
        raise InputError(f"{name}: --pooling cls: the checkpoint has no pooler: give cls_before_pooler")
    if "token_type_ids" not in signature(network.forward).parameters:  # before transformers 5 an error
        tokenizer.model_input_names = [name for name in tokenizer.model_input_names if name != "token_type_ids"]
    network = network.to(place, DTYPES[precision]).eval()
    use_cpu_layers(network)
    return EvaluatedModel(name, network, tokenizer, place, layout)


class Batches:
    """The distinct sentences of lists of texts, tokenized and sorted by length, which can be embedded repeatedly.

    rows: for each list, the rows of its texts among the distinct ones, int64 (m,).
    """

    def __init__(
        self,
        lists: Iterable[Sequence[str]],
        tokenizer: Any,
        max_length: int | None = None,
        device: str | torch.device = "cpu",
        prepared: Callable[[Sequence[str]], Sequence[str]] = list,
    ) -> None:
        """prepared: maps texts to the texts to tokenize, as `Modules.prepared` does."""
        distinct: dict[str, int] = {}
        self.rows = [np.array([distinct.setdefault(text, len(distinct)) for text in of], np.int64) for of in lists]
        self._device = torch.device(device)
        limit = min(max_length or tokenizer.model_max_length, LONGEST)
        texts = list(prepared([*distinct]))
        encoded = tokenizer(texts, truncation=True, max_length=limit) if texts else {"input_ids": []}
        budget = GPU_BATCH_TOKENS if self._device.type == "cuda" else CPU_BATCH_TOKENS
        batches = batches_by_length([*map(len, encoded["input_ids"])], budget)
        self._order = np.concatenate(batches)
        parts = ({name: [of[row] for row in rows] for name, of in encoded.items()} for rows in batches)
        self._batches = [dict(tokenizer.pad(part, return_tensors="pt").to(self._device)) for part in parts]

    def embed(self, encode: Encode, threads: int | None = 1, progress: bool = False) -> NDArray[np.float32]:
        """Embed the distinct texts, float32 (n, D).

        encode: a padded batch {"input_ids", "attention_mask", ...} of int64 (B, L) -> embeddings (B, D). It is called
        in inference mode, and enters autocast itself. threads: batches that a CPU encodes at the same time, see
        `in_threads`; 1 if `encode` communicates with other ranks. progress: show a bar on a terminal.
        """

        @torch.inference_mode()  # the mode belongs to a thread
        def encoded(batch: dict[str, Tensor]) -> Tensor:
            embeddings = encode(batch).float()
            bar.update()
            return embeddings

        disable = None if progress else True  # None: on a terminal only
        with tqdm(total=len(self._batches), desc="encoding", unit=" batches", disable=disable) as bar:
            parts = in_threads(encoded, self._batches, threads if self._device.type == "cpu" else 1)
        return torch.cat(parts).cpu().numpy()[self._order.argsort()]


class PairScorer(Batches):
    """Spearman of scored pairs under an encoder whose weights change."""

    def __init__(self, pairs: StsTask, *args: Any, **options: Any) -> None:
        """args, options: as for `Batches`."""
        super().__init__(pairs.texts, *args, **options)
        self._gold = pairs.gold

    def __call__(self, encode: Encode, threads: int | None = 1) -> float:
        """Spearman over all pairs; NaN if all similarities are equal. Arguments as for `embed`."""
        embeddings = self.embed(encode, threads)
        return spearman(cosine(*(embeddings[side] for side in self.rows)), self._gold)


def in_threads(function: Callable[[Any], Any], items: Sequence[Any], threads: int | None = None) -> list[Any]:
    """Apply `function` to `threads` items at a time (None: as many as PyTorch has threads).

    Each thread has one core. One thread per batch takes 2.7 s, all threads on one batch 3.3 s (2,909 sentences, MiniLM,
    2 cores): the operations between matrix products are too small to be shared among threads.
    """
    before = torch.get_num_threads()
    if (workers := min(threads or before, len(items))) < 2:
        return [function(item) for item in items]
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(function, items))
    finally:
        torch.set_num_threads(before)


def batches_by_length(lengths: Sequence[int], budget: int) -> list[NDArray[np.int64]]:
    """Group the indices of the lengths (n,), short ones first, into batches of at most `budget` padded tokens.

    Once a batch has a quarter of the budget, it ends when the length changes: a balance of padding and calls.
    """
    order, ends = np.argsort(np.array(lengths, np.int64), kind="stable"), [0]
    for stop, (before, length) in enumerate(pairwise(lengths[place] for place in order), start=1):
        full = length * (stop + 1 - ends[-1]) > budget
        changes = length != before and before * (stop - ends[-1]) * 4 >= budget
        if full or changes:
            ends.append(stop)
    return np.split(order, ends[1:]) if len(lengths) else []
