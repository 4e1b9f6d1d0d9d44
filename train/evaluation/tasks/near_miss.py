"""Near-misses: texts that look alike and mean something else, by people, beside texts that mean the same.

SugarCrepe++ (Dumpala et al. 2024, arXiv:2406.11171), `near_miss/NAME.json`: five subsets of entries with a `caption` of
an image, a paraphrase of it (`caption2`) and a near-miss (`negative_caption`). SICK (Marelli et al. 2014): its pairs
judged an entailment or a contradiction. docs/near-misses.md says what each score is; all are fractions.

Split "dev" is for tuning: a fifth of SugarCrepe++'s images with all their entries, chosen by the name of the image's
file, and SICK's trial pairs. Split "test" is all images and SICK's test pairs; with `held_out` of the protocol it is
the images that "dev" lacks.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from train.evaluation.similarity import auc, cosine, recall
from train.evaluation.tasks.registry import (
    NEAR_MISSES,
    Column,
    EvaluationProtocol,
    Scores,
    Task,
    normalise_spaces,
    read_columns,
    read_lines,
)
from train.evaluation.tasks.sts import SICK_FILES
from una_fast.errors import InputError

REPLACED = ("replace_obj", "replace_att", "replace_rel")
SUBSETS = (*REPLACED, "swap_obj", "swap_att")
COLUMNS = ("caption", "caption2", "negative_caption")
FALSE_HITS = 0.05  # share of near-misses above the threshold of recall_at_5
DEV_PART = 5  # one of so many images is for tuning

Measure = Callable[[Sequence[NDArray]], float]  # of the embeddings (n, D) of a task's lists of texts


@dataclass(frozen=True)
class NearMissTask(Task):
    """Captions, paraphrases and near-misses; or both sides of entailments, then both sides of contradictions."""

    kind = "near-miss"
    measure: Measure
    dev: NDArray[np.bool_] | None = None  # (n,), entries whose image is for tuning; None where entries have no image

    def score(
        self, embeddings: NDArray, rows: Sequence[NDArray], protocol: EvaluationProtocol
    ) -> tuple[Scores, list[str]]:
        """The fraction that the measure gives."""
        if protocol.held_out and self.dev is not None:
            rows = [part[~self.dev] for part in rows]
        value = self.measure([embeddings[part] for part in rows])
        return value, [f"{self.name}: too few entries, so no score is defined"] if math.isnan(value) else []


def hits(embeddings: Sequence[NDArray]) -> float:
    """Share of entries whose paraphrase is nearer than the near-miss; embeddings: of the three COLUMNS, each (n, D)."""
    same, near, other = (cosine(*pair) for pair in combinations(embeddings, 2))
    return float(np.mean((same > near) & (same > other))) if len(same) else float("nan")


def recall_at_5(embeddings: Sequence[NDArray]) -> float:
    """Recall of paraphrases at FALSE_HITS; embeddings: of the three COLUMNS, each (n, D)."""
    caption, paraphrase, near_miss = embeddings
    return recall(cosine(caption, paraphrase), cosine(caption, near_miss), FALSE_HITS)


def read(downstream: Path, name: str, split: str = "test") -> NearMissTask:
    """One of the tasks. downstream: SentEval's folder, with SICK in it and near_miss/ beside senteval/."""
    if name == "sick_auc":
        return _read_sick(downstream / "SICK" / SICK_FILES[split], name, split)
    beside = downstream.parent.parent
    named = Path(os.environ.get("UNA_FAST_DATA") or beside)
    folder = next((root / NEAR_MISSES for root in (beside, named) if (root / NEAR_MISSES).is_dir()), None)
    if folder is None:
        raise InputError(
            f"{beside / NEAR_MISSES}: missing; `python -m train.download --only near-miss --to {beside}` fetches it"
        )
    entries = []
    for subset in (name,) if name in SUBSETS else REPLACED:
        entries += _read_entries(folder / f"{subset}.json")
    dev = np.array([is_dev(entry["filename"]) for entry in entries], bool)
    kept = np.flatnonzero(dev) if split == "dev" else np.arange(len(dev))
    if not len(kept):
        raise InputError(f"{folder}: holds no entries of {name} in split {split!r}")
    texts = [[entries[row][column] for row in kept] for column in COLUMNS]
    return NearMissTask(name, texts, {split: len(kept)}, recall_at_5 if name == "recall_at_5" else hits, dev[kept])


def is_dev(image: str) -> bool:
    """True for a fifth of all images, by the name of the file: their entries are for tuning."""
    return xxhash.xxh3_64_intdigest(image.encode()) % DEV_PART == 0


def _read_entries(path: Path) -> list[dict[str, str]]:
    try:
        entries = json.loads("\n".join(read_lines(path)))
        return [{name: "" + entry[name] for name in (*COLUMNS, "filename")} for entry in entries]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as entries of SugarCrepe++ ({error!r})") from None


def _read_sick(path: Path, name: str, split: str) -> NearMissTask:
    pairs: dict[str, list[list[str]]] = {"ENTAILMENT": [], "CONTRADICTION": []}
    for _, (first, second, judgement) in read_columns(path, (1, 2, 4), skip=1):
        if judgement.strip() in pairs:
            pairs[judgement.strip()].append(normalise_spaces([first, second]))
    texts = [[pair[side] for pair in judged] for judged in pairs.values() for side in (0, 1)]
    sizes = {split: sum(map(len, pairs.values()))}
    return NearMissTask(name, texts, sizes, lambda sides: auc(cosine(*sides[:2]), cosine(*sides[2:])))


def columns(protocol: Mapping[str, Any]) -> list[Column]:
    """The fraction."""
    images = {"dev": "dev images", "test": "held-out images" if protocol["held_out"] else "all images"}
    return [Column(f"Near-misses x 100, {images[protocol['split']]}", lambda score: score, 100)]


def stated(protocol: EvaluationProtocol) -> dict[str, Any]:
    """Whether the images for tuning are left out."""
    return {"held_out": protocol.held_out}
