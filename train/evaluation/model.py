"""Loads a model for evaluation and embeds texts: each distinct sentence once, in batches of similar length.

Letters in shapes: B sentences of a batch, L tokens, D width of an embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
from train.evaluation.tasks.registry import DevTask
from una_fast.errors import InputError, counted
from una_fast.parallel import map_threads

Encode = Callable[[dict[str, Tensor]], Tensor]  # maps a padded batch of token ids (B, L) to embeddings (B, D)
CPU_BATCH_TOKENS = 1024  # maximum tokens of a batch, with padding, so that its activations fit into the cache
GPU_BATCH_TOKENS = 65_536  # enough to keep a GPU busy


@dataclass(frozen=True)
class EvaluatedModel:
    """An encoder in evaluation mode."""

    name: str
    network: Any
    tokenizer: Any
    device: torch.device
    layout: pretrained.Modules

    def encode(self, batch: dict[str, Tensor]) -> Tensor:
        """Compute the embeddings of a padded batch, (B, D)."""
        pooling = POOLINGS[self.layout.pooling]
        output = self.network(**batch, output_hidden_states=pooling.needs_hidden_states)
        embeddings = pooling.pool(output, batch["attention_mask"])
        return nn.functional.normalize(embeddings) if self.layout.normalize else embeddings

    def batches(self, lists: Iterable[Sequence[str]], max_length: int | None = None) -> Batches:
        """Tokenize lists of texts with the model's prompt, lower-casing and maximum length."""
        return Batches(lists, self.tokenizer, max_length or self.max_length, self.device, self.layout.prepare)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Compute the embeddings of texts, float32 (n_texts, D)."""
        if not len(texts):
            return np.empty((0, self.network.config.hidden_size), np.float32)
        batches = self.batches([texts])
        return batches.embed(self.encode, threads=None)[batches.rows[0]]

    @property
    def max_length(self) -> int:
        """The number of tokens to which texts are truncated."""
        return self.layout.longest(self.tokenizer, self.network.config)


def pick_device(name: str) -> torch.device:
    """Return the device "auto", "cpu", "cuda" or "cuda:N". Raises InputError if this machine lacks it."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    try:
        device = torch.device(("cuda" if gpus else "cpu") if name == "auto" else name)
    except RuntimeError:
        raise InputError(f"--device {name}: choose auto, cpu, cuda or cuda:N") from None
    if device.type == "cuda" and (device.index or 0) >= gpus:
        raise InputError(f"--device {name}: PyTorch sees {counted(gpus, 'GPU')} here: name another, or --device cpu")
    return device


def load_model(
    name: str, pooling: str = AUTO, precision: str = "fp32", device: str = "auto", trust: bool = False
) -> EvaluatedModel:
    """Load an encoder from the Hugging Face hub or a folder.

    pooling: as in --pooling. trust: run Python code that comes with the model.
    """
    pooling, on = "avg" if pooling == "mean" else pooling, pick_device(device)
    pretrained.quiet()
    config = pretrained.load_config(name, None, trust)
    tokenizer = pretrained.load_tokenizer(name, trust, config)
    layout = pretrained.read_modules(name) if pooling == AUTO else pretrained.Modules(pooling=pooling)
    network, has_pooler = pretrained.load_pretrained(name, config, trust)
    if pooling == "cls" and not has_pooler:
        raise InputError(f"{name}: --pooling cls: the checkpoint has no pooler: give cls_before_pooler")
    if "token_type_ids" not in signature(network.forward).parameters:  # before transformers 5, passing them is an error
        tokenizer.model_input_names = [name for name in tokenizer.model_input_names if name != "token_type_ids"]
    network = network.to(on, pretrained.DTYPES[precision]).eval()
    if on.type == "cpu":
        use_cpu_layers(network)
    return EvaluatedModel(name, network, tokenizer, on, layout)


class Batches:
    """The distinct sentences of several lists of texts, tokenized once so that they can be embedded repeatedly.

    prepare: changes the texts before they are tokenized, such as `Modules.prepare`. rows: one array per list; text i of
    the list is row ``array[i]`` of the result of `embed`.
    """

    def __init__(
        self,
        lists: Iterable[Sequence[str]],
        tokenizer: Any,
        max_length: int | None = None,
        device: str | torch.device = "cpu",
        prepare: Callable[[Sequence[str]], Sequence[str]] = list,
    ) -> None:
        distinct: dict[str, int] = {}
        self.rows = [np.array([distinct.setdefault(text, len(distinct)) for text in of], np.int64) for of in lists]
        self._device = torch.device(device)
        limit = min(max_length or tokenizer.model_max_length, pretrained.LONGEST)
        encoded = tokenizer(list(prepare([*distinct])), truncation=True, max_length=limit)
        budget = GPU_BATCH_TOKENS if self._device.type == "cuda" else CPU_BATCH_TOKENS
        batches = batches_by_length([*map(len, encoded["input_ids"])], budget)
        self._order = np.concatenate(batches)
        parts = ({name: [of[row] for row in rows] for name, of in encoded.items()} for rows in batches)
        self._batches = [dict(tokenizer.pad(part, return_tensors="pt").to(self._device)) for part in parts]

    def embed(self, encode: Encode, threads: int | None = 1, progress: bool = False) -> NDArray[np.float32]:
        """Compute the embeddings of the distinct texts, float32 (n_distinct, D), in inference mode.

        threads: how many batches a CPU encodes at the same time; must be 1 if `encode` exchanges data with other ranks.
        """

        @torch.inference_mode()  # every thread has its own mode
        def encoded(batch: dict[str, Tensor]) -> Tensor:
            embeddings = encode(batch).float()
            bar.update()
            return embeddings

        disable = None if progress else True  # None: only on a terminal
        with tqdm(total=len(self._batches), desc="encoding", unit=" batches", disable=disable, leave=False) as bar:
            parts = in_threads(encoded, self._batches, threads if self._device.type == "cpu" else 1)
        return torch.cat(parts).cpu().numpy()[self._order.argsort()]


class DevScorer(Batches):
    """Computes dev scores: tokenizes the dev texts once, and embeds them again whenever the encoder is scored."""

    def __init__(self, task: DevTask, *args: Any, **options: Any) -> None:
        super().__init__(task.texts, *args, **options)
        self._task, self.measure = task, task.measure

    def __call__(self, encode: Encode, threads: int | None = 1, progress: bool = False) -> float:
        """Return the dev score; NaN if it is undefined. progress: show a progress bar, on a terminal."""
        embeddings = self.embed(encode, threads, progress)
        return self._task.dev_score([embeddings[rows] for rows in self.rows])


def in_threads(function: Callable[[Any], Any], items: Sequence[Any], threads: int | None = None) -> list[Any]:
    """Apply `function` to `threads` items at a time, each on a single core. threads: by default as many as PyTorch has.

    Encoding 2,909 sentences with MiniLM on 2 cores takes 2.7 s if each core encodes its own batch, and 3.3 s if the
    cores share each batch, because operations between matrix products are too small to divide among threads.
    """
    before = torch.get_num_threads()
    if (workers := min(threads or before, len(items))) < 2:
        return [function(item) for item in items]
    torch.set_num_threads(1)
    try:
        return list(map_threads(function, items, workers))
    finally:
        torch.set_num_threads(before)


def batches_by_length(lengths: Sequence[int], budget: int) -> list[NDArray[np.int64]]:
    """Return the texts' indices in batches of at most `budget` tokens, padding included, shortest texts first.

    Once a batch fills a quarter of the budget, a text longer than those in it starts a new batch, to reduce padding.
    """
    order, ends = np.argsort(np.array(lengths, np.int64), kind="stable"), [0]
    for stop, (before, length) in enumerate(pairwise(lengths[i] for i in order), start=1):
        full = length * (stop + 1 - ends[-1]) > budget
        changes = length != before and before * (stop - ends[-1]) * 4 >= budget
        if full or changes:
            ends.append(stop)
    return np.split(order, ends[1:])
