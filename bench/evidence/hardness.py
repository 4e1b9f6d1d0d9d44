"""How near an encoder puts negatives to their anchors, by beta, before training and after.

A negative that lies no nearer to its anchor than any other sentence teaches nothing that the other sentences of the
batch do not teach.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

import una_fast
from bench.evidence.conditions import BASES, SEEDS, SIMILARITY, Condition
from bench.evidence.runs import Workplace
from train.evaluation.embed import Batches
from train.evaluation.model import load_model

BETAS = (0.1, 0.3, 0.5, 0.9)
N_ANCHORS = 1000  # the first sentences of the corpus
RANDOM = "other sentences"
Hardness = dict[str, dict[str, float]]  # encoder -> "beta 0.1", ... or RANDOM -> mean cosine with the anchor


def hardness(place: Workplace, condition: Condition) -> Hardness:
    """Mean cosines under the base before training, and after training with the first seed without and with UNA."""
    models = {"before training": (place.base(condition.base), BASES[condition.base].before)}
    for title, one in (("trained without UNA", condition.reference), ("trained with UNA", condition)):
        if place.is_done(one, SEEDS[0]):
            models[title] = (place.run_folder(one, SEEDS[0]) / "best", "auto")
    index = una_fast.load_index(place.index(condition))
    with place.corpus(condition).open(encoding="utf-8") as file:
        anchors = [line.rstrip("\n") for line, _ in zip(file, range(N_ANCHORS), strict=False)]
    negatives = {f"beta {beta:g}": negatives_of(index, beta, len(anchors)) for beta in BETAS}
    return {title: cosines(path, pooling, anchors, negatives) for title, (path, pooling) in models.items()}


def negatives_of(index: una_fast.Index, beta: float, n: int) -> list[str]:
    """Negatives of the first n rows."""
    return una_fast.Augmenter(index, radius=SIMILARITY["radius"], beta=beta, seed=SEEDS[0]).negatives(range(n))


def cosines(path: Path, pooling: str, anchors: Sequence[str], negatives: dict[str, list[str]]) -> dict[str, float]:
    """Mean cosines of anchors (n,) with each list of negatives (n,), and with the other anchors."""
    model = load_model(str(path), pooling, device="cpu")

    def embed(texts: Sequence[str]) -> Tensor:
        """Embeddings of length 1, float32 (n, D)."""
        batches = Batches(texts, model.tokenizer, SIMILARITY["max_length"])
        return torch.nn.functional.normalize(batches.embed(model.encode, threads=None))

    embedded = embed(anchors)
    among = embedded @ embedded.T
    n = len(anchors)
    found = {RANDOM: float((among.sum() - among.trace()) / (n * (n - 1)))}
    found |= {name: float((embedded * embed(texts)).sum(1).mean()) for name, texts in negatives.items()}
    return {name: round(value, 3) for name, value in found.items()}
