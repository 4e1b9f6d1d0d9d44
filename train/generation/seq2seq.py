"""A seq2seq model of transformers: sentences -> token ids -> text, by beam search.

Letters of shapes: B sentences of a batch, L tokens of the longest.

The text of a sentence does not depend on its batch: padding is on the right and masked, the limits of length are the
same for all batches, nothing is sampled, and a finished beam search does not change while others of the batch go on.
Only rounding depends on it: products of other shapes add in another order, so a score may differ in its last bits. In
fp32 that changes a text only where the scores of two beams agree to about 1e-6; in bf16, to about 1e-2.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer

from train.encoder.pretrained import from_pretrained
from train.evaluation.model import DTYPES
from train.generation.options import Job
from una_fast.errors import InputError, counted
from una_fast.storage.files import file_checksum

MODEL_FILES = (".safetensors", ".bin", ".json", ".model", ".spm", ".txt")  # suffixes of the files of a model's folder


def check_model(name: str, job: Job) -> str:
    """What identifies a model: a digest of the files of its folder, or the commit of a model on the hub.

    Raises:
        InputError: no seq2seq model, no tokenizer, or fewer positions than the job's lengths.
    """
    config = from_pretrained("configuration", AutoConfig, name)
    if not config.is_encoder_decoder:
        raise InputError(
            f"{name}: is a {config.model_type} model, which does not turn text into text: give a seq2seq model, such "
            "as T5, BART, PEGASUS or Marian"
        )
    positions = getattr(config, "max_position_embeddings", None) or math.inf
    for end, length in (("source", job.max_source_length), ("target", job.max_target_length)):
        if (length or 0) > positions:
            raise InputError(f"--max-{end}-length {length} is above the {positions} positions of {name}: shorten it")
    from_pretrained("tokenizer", AutoTokenizer, name)
    if not Path(name).is_dir():
        return getattr(config, "_commit_hash", None) or ""
    files = sorted(path for path in Path(name).iterdir() if path.suffix in MODEL_FILES)
    return xxhash.xxh3_128_hexdigest("".join(f"{path.name} {file_checksum(path)}\n" for path in files).encode())


class Seq2Seq:
    """A seq2seq model with its tokenizer, on its device."""

    def __init__(self, name: str, job: Job, device: torch.device) -> None:
        self._name, self._device, self._job = name, device, job
        self._tokenizer = from_pretrained("tokenizer", AutoTokenizer, name)
        self._tokenizer.padding_side = "right"  # positions count from the left
        network, info = from_pretrained("weights", AutoModelForSeq2SeqLM, name, output_loading_info=True)
        if 2 * len(info["missing_keys"]) > len(network.state_dict()):
            raise InputError(f"{name}: its weights do not fit a {type(network).__name__}")
        self._network = network.to(device, DTYPES[job.precision]).eval()
        self._search = {  # besides, the model's own start token, forbidden words and length penalty hold
            "num_beams": job.beams,
            "max_new_tokens": job.max_target_length,
            "do_sample": False,
            "num_beam_groups": 1,
            "num_return_sequences": 1,
            "return_dict_in_generate": False,
            "penalty_alpha": None,
            "max_time": None,
        }

    def encode(self, texts: list[str]) -> tuple[list[list[int]], NDArray[np.bool_]]:
        """Token ids of each of n texts with the prefix before it, and whether it was cut, (n,)."""
        prefixed, limit = [(self._job.prefix or "") + text for text in texts], self._job.max_source_length
        assert limit is not None
        rows = self._tokenizer(prefixed)["input_ids"]
        cut = np.array([len(ids) > limit for ids in rows])
        for place in np.flatnonzero(cut):
            rows[place] = self._tokenizer(prefixed[place], truncation=True, max_length=limit)["input_ids"]
        return rows, cut

    def write(self, rows: list[list[int]]) -> list[str]:
        """The text that the model writes for each row of token ids. InputError if the GPU's memory is too small."""
        batch = self._tokenizer.pad({"input_ids": rows}, return_tensors="pt")  # int64 (B, L)
        inputs = {name: batch[name].to(self._device) for name in ("input_ids", "attention_mask")}
        try:
            with torch.inference_mode():
                ids = self._network.generate(**inputs, **self._search)
        except torch.OutOfMemoryError:
            raise InputError(
                f"{self._name}: the GPU's memory does not hold {counted(len(rows), 'sentence')} with "
                f"{self._job.beams} beams: give smaller --batch-tokens, fewer --beams, or --precision bf16"
            ) from None
        return self._tokenizer.batch_decode(ids, skip_special_tokens=True)
