"""`prepare` and `batcher` for upstream SentEval, to check our figures with the original toolkit.

import senteval  # from a checkout of facebookresearch/SentEval or princeton-nlp/SimCSE
batcher = Batcher(load_model("FOLDER", "avg"))
engine = senteval.engine.SE({"task_path": "DATA/senteval", "usepytorch": True, "kfold": 10}, batcher, prepare)
engine.eval(["STSBenchmark", "SICKRelatedness"])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from train.evaluation.model import EvaluatedModel


def prepare(params: Any, samples: Sequence[Sequence[str]]) -> None:
    """Do nothing: the tokenizer already has its vocabulary."""


class Batcher:
    """Encodes sentences for SentEval: lists of words become embeddings, float32 (n_sentences, dimension)."""

    def __init__(self, model: EvaluatedModel) -> None:
        self.model = model

    def __call__(self, params: Any, batch: Sequence[Sequence[str | bytes]]) -> NDArray[np.float32]:
        """Encode one batch, padded to its longest sentence and not truncated, as SimCSE's batcher does."""
        texts = [" ".join(_text(word) for word in words) for words in batch]
        tokens = self.model.tokenizer(texts, padding=True, truncation=False, return_tensors="pt")
        with torch.inference_mode():
            embeddings = self.model.encode({name: ids.to(self.model.device) for name, ids in tokens.items()})
        return embeddings.float().cpu().numpy()


def _text(word: str | bytes) -> str:
    return word.decode() if isinstance(word, bytes) else word
