"""The near-miss tasks: do texts with the same meaning have higher cosines than texts that only look alike?

The data, labelled by people, come from three sources. docs/near-misses.md defines each score.

- SugarCrepe++ (Dumpala et al. 2024, arXiv:2406.11171) has captions of images: `near_miss/NAME.json`. The split "test"
  contains all images, and "dev" a fifth of them, which are for tuning.
- SICK (Marelli et al. 2014) has pairs of sentences. The task uses those labelled entailment or contradiction.
- `near_miss/pairs/NAME_SPLIT.tsv` contains pairs that are labelled as having the same meaning or not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

from train.evaluation.similarity import cosine
from train.evaluation.tasks.reading import normalise_spaces, read_lines, read_rows
from train.evaluation.tasks.registry import NEAR_MISSES, SUGARCREPE, EvaluationProtocol, Scores, Task
from train.evaluation.tasks.sts import SICK_FILES
from una_fast.errors import InputError
from una_fast.pair_scores import PairScores, read_pairs

REPLACED = ("replace_obj", "replace_att", "replace_rel")
PAIR_SETS = ("qqp_near", "qqp_close", "paws_wiki", "checklist")
COLUMNS = ("caption", "caption2", "negative_caption")  # of SugarCrepe++: a text, a paraphrase and a near-miss
FALSE_HITS = 0.05  # share of near-misses above the threshold of recall_at_5


@dataclass(frozen=True)
class PairTask(Task):
    """A set of labelled pairs in `near_miss/pairs`."""

    kind = "near-miss"
    same: NDArray[np.bool_]  # (n,), True for a pair with the same meaning
    groups: NDArray[np.str_]  # (n,), the group of each pair

    def score(self, embeddings: Sequence[NDArray], protocol: EvaluationProtocol) -> Scores:
        """Return AUC, recall and other figures of `PairScores`, for all pairs and for each group."""
        first, second = embeddings
        return PairScores(cosine(first, second), self.same, self.groups, FALSE_HITS).to_dict()


@dataclass(frozen=True)
class NearMissTask(Task):
    """A task of SugarCrepe++ or SICK.

    texts: for SugarCrepe++, one list per name in COLUMNS. For SICK, four lists: the first and the second sentences of
    the entailments, then of the contradictions.
    """

    kind = "near-miss"
    dev: NDArray[np.bool_] | None = None  # (n,), True if the entry's image is for tuning; None for SICK

    def score(self, embeddings: Sequence[NDArray], protocol: EvaluationProtocol) -> Scores:
        """Return the AUC for "sick_auc", the recall for "recall_at_5", and the share of hits for the other tasks.

        An entry is a hit if its text and its paraphrase are nearer to each other than each is to the near-miss.
        """
        if protocol.held_out and self.dev is not None:
            embeddings = [part[~self.dev] for part in embeddings]
        first, second, *others = embeddings
        same = cosine(first, second)
        if self.name == "sick_auc":
            return PairScores.of(same, cosine(*others)).auc
        (near_miss,) = others
        if self.name == "recall_at_5":
            return PairScores.of(same, cosine(first, near_miss), FALSE_HITS).recall
        hits = (same > cosine(first, near_miss)) & (same > cosine(second, near_miss))
        return float(np.mean(hits)) if len(hits) else math.nan


def read(downstream: Path, name: str, split: str = "test") -> Task:
    """Read a near-miss task: SICK from the folder `downstream`, any other from `downstream`/../../near_miss."""
    if name == "sick_auc":
        rows = read_rows(downstream / "SICK" / SICK_FILES[split], (4, 1, 2), str.strip, skip=1)
        judged = [[row for row in rows if row[0] == judgement] for judgement in ("ENTAILMENT", "CONTRADICTION")]
        texts = [normalise_spaces(row[side] for row in pairs) for pairs in judged for side in (1, 2)]
        return NearMissTask(name, texts, {split: sum(map(len, judged))})
    root = downstream.parent.parent
    if name in PAIR_SETS:
        return _read_pairs(root / NEAR_MISSES / "pairs", name, split)
    if not (folder := root / NEAR_MISSES).is_dir():
        raise InputError(f"{folder}: missing; `python -m train.download --only near-miss --to {root}` fetches it")
    subsets = (name,) if name in SUGARCREPE else REPLACED
    entries = [entry for subset in subsets for entry in _read_entries(folder / f"{subset}.json")]
    if split == "dev":
        entries = [entry for entry in entries if is_dev(entry["filename"])]
    if not entries:
        raise InputError(f"{folder}: contains no entries of {name} in split {split!r}")
    dev = np.array([is_dev(entry["filename"]) for entry in entries])
    return NearMissTask(name, [[entry[column] for entry in entries] for column in COLUMNS], {split: len(dev)}, dev)


def _read_pairs(folder: Path, name: str, split: str) -> PairTask:
    """Read the labelled pairs in NAME_SPLIT.tsv of `folder` or, without such a file, in NAME_dev.tsv."""
    part = split if (folder / f"{name}_{split}.tsv").is_file() else "dev"
    if not (pairs := read_pairs(folder / f"{name}_{part}.tsv")):
        raise InputError(f"{folder / f'{name}_{part}.tsv'}: contains no pairs")
    first, second, labels, groups = zip(*pairs, strict=True)
    texts = [normalise_spaces(side) for side in (first, second)]
    return PairTask(name, texts, {part: len(labels)}, np.array(labels, bool), np.array(groups))


def is_dev(image: str) -> bool:
    """Return whether an image is in the dev set: a fifth of all images, chosen by a hash of the file name."""
    return xxhash.xxh3_64_intdigest(image.encode()) % 5 == 0


def _read_entries(path: Path) -> list[dict[str, str]]:
    try:
        entries = json.loads("\n".join(read_lines(path)))
        return [{name: "" + entry[name] for name in (*COLUMNS, "filename")} for entry in entries]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as entries of SugarCrepe++ ({error!r})") from None
