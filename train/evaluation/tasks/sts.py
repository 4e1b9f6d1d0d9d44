"""Semantic textual similarity (STS): SentEval's seven tasks, and any file of scored pairs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from train.evaluation.similarity import cosine, pearson, spearman
from train.evaluation.tasks.reading import normalise_spaces, parse_score, read_lines, read_rows
from train.evaluation.tasks.registry import DevTask, EvaluationProtocol, Scores
from una_fast.errors import InputError

SUBSETS = {  # STS13 lacks its SMT subset, which SentEval may not distribute
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
SICK_FILES = {"test": "SICK_test_annotated.txt", "dev": "SICK_trial.txt"}
TABLES: dict[str, tuple[dict[str, str], tuple[int, ...], int]] = {
    # tasks with a dev split: file of each split, columns of the score and both sentences, number of header lines
    "STSBenchmark": ({split: f"STS/STSBenchmark/sts-{split}.csv" for split in ("test", "dev")}, (4, 5, 6), 0),
    "SICKRelatedness": ({split: f"SICK/{file}" for split, file in SICK_FILES.items()}, (3, 1, 2), 1),
}


@dataclass(frozen=True)
class StsTask(DevTask):
    """Pairs of sentences with gold scores. texts: the first sentences of all pairs, and the second ones."""

    kind, measure = "sts", "Spearman"
    gold: NDArray[np.float64]

    def score(self, embeddings: Sequence[NDArray], protocol: EvaluationProtocol) -> Scores:
        """Correlate the cosines with the gold scores, over all pairs together ("all" in SentEval)."""
        similarity = cosine(*embeddings)
        return {
            "pairs": len(self.gold),
            "pearson": {"all": pearson(similarity, self.gold)},
            "spearman": {"all": spearman(similarity, self.gold)},
        }

    def dev_score(self, embeddings: Sequence[NDArray]) -> float:
        """Return Spearman's correlation of the cosines with the gold scores; NaN if all cosines are equal."""
        return spearman(cosine(*embeddings), self.gold)


def read(downstream: Path, name: str, split: str = "test") -> StsTask:
    """Read a task from SentEval's `downstream` folder."""
    if name in TABLES:
        files, columns, skip = TABLES[name]
        path = downstream / files[split]
        return _task(name, path, read_rows(path, columns, parse_score, skip), split)
    if split != "test":
        raise InputError(f"{name} has no {split} split: only {', '.join(TABLES)} have one")
    folder = downstream / "STS" / f"{name}-en-test"
    return _task(name, folder, [row for subset in SUBSETS[name] for row in _read_subset(folder, subset)])


def load_dev(path: str | os.PathLike[str]) -> StsTask:
    """Read scored pairs from a tab-separated file. Raises InputError if all scores are equal.

    The columns are score, first sentence and second sentence, or those of STS-B's csv files.
    """
    path = Path(path)
    lines = read_lines(path)
    columns = (4, 5, 6) if lines and lines[0].count("\t") >= 6 else (0, 1, 2)
    try:
        task = _task(path.stem, path, read_rows(path, columns, parse_score))
    except InputError as error:
        raise InputError(f"{error}; a line is score<TAB>sentence<TAB>sentence, or one of STS-B's csv") from None
    if np.ptp(task.gold) == 0:
        raise InputError(f"{path}: all {len(task.gold):,} scores are {task.gold[0]:g}: no correlation is defined")
    return task


def _read_subset(folder: Path, subset: str) -> list[tuple[Any, ...]]:
    """Read a subset of STS12 to STS16, whose pairs and scores are in two files. Pairs without a score are skipped."""
    inputs, scores = folder / f"STS.input.{subset}.txt", folder / f"STS.gs.{subset}.txt"
    pairs = read_rows(inputs, (0, 1))
    golds = read_rows(scores, (0,), lambda text: parse_score(text) if text else None)
    if len(pairs) != len(golds):
        raise InputError(
            f"{inputs} has {len(pairs):,} pairs but {scores} has {len(golds):,} scores: line i of one belongs to line "
            "i of the other"
        )
    return [(gold, *pair) for (gold,), pair in zip(golds, pairs, strict=True) if gold is not None]


def _task(name: str, path: Path, rows: Sequence[tuple[Any, ...]], split: str = "test") -> StsTask:
    """Make a task from rows (gold score, first sentence, second sentence)."""
    if not rows:
        raise InputError(f"{path}: no pairs of sentences")
    gold, *texts = zip(*rows, strict=True)
    return StsTask(name, [normalise_spaces(side) for side in texts], {split: len(rows)}, np.array(gold))
