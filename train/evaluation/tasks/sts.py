"""Semantic textual similarity: SentEval's seven tasks, and any file of scored pairs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from train.evaluation.similarity import cosine, pearson, spearman
from train.evaluation.tasks.registry import (
    EvaluationProtocol,
    Scores,
    Task,
    normalise_spaces,
    read_lines,
    read_rows,
    score_in,
)
from una_fast.errors import InputError

SUBSETS = {  # STS13 is without its SMT subset, which SentEval may not distribute
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
SICK_FILES = {"test": "SICK_test_annotated.txt", "dev": "SICK_trial.txt"}
TABLES: dict[str, tuple[dict[str, str], tuple[int, ...], int]] = {
    # tasks with a dev split: the file of each split, its columns of score and sentences, its lines of heading
    "STSBenchmark": ({split: f"STS/STSBenchmark/sts-{split}.csv" for split in ("test", "dev")}, (4, 5, 6), 0),
    "SICKRelatedness": ({split: f"SICK/{file}" for split, file in SICK_FILES.items()}, (3, 1, 2), 1),
}
MEASURES = {"pearson": pearson, "spearman": spearman}  # over all pairs of a task at once, SentEval's "all"


@dataclass(frozen=True)
class StsTask(Task):
    """Pairs of sentences, the first and the second of which are `texts`, with their gold scores."""

    kind = "sts"
    gold: NDArray[np.float64]
    subsets: dict[str, slice] = field(default_factory=dict)  # consecutive parts of the pairs, in order

    def score(self, embeddings: Sequence[NDArray], protocol: EvaluationProtocol) -> Scores:
        """Correlations over all pairs, and Spearman's of each subset."""
        similarity = cosine(*embeddings)
        return {
            "pairs": len(self.gold),
            **{name: {"all": measure(similarity, self.gold)} for name, measure in MEASURES.items()},
            "subsets": {name: spearman(similarity[part], self.gold[part]) for name, part in self.subsets.items()},
        }


def read(downstream: Path, name: str, split: str = "test") -> StsTask:
    """One of SentEval's tasks from its `downstream` folder; split "test", or "dev" where it has one."""
    if name in TABLES:
        files, columns, skip = TABLES[name]
        path = downstream / files[split]
        return _task(name, path, read_rows(path, columns, score_in, skip), split=split)
    if split != "test":
        raise InputError(f"{name} has no {split} split: only {', '.join(TABLES)} have")
    return _read_year(downstream / "STS" / f"{name}-en-test", name)


def load_dev(path: str | os.PathLike[str]) -> StsTask:
    """Pairs of a file: STS-B's csv (score in column 5, sentences in 6 and 7) or "score<TAB>first<TAB>second".

    Raises InputError for a file without pairs, a line with too few columns, a score that is not a number, or
    scores that are all the same.
    """
    path = Path(path)
    lines = read_lines(path)
    columns = (4, 5, 6) if lines and lines[0].count("\t") >= 6 else (0, 1, 2)
    task = _task(path.stem, path, read_rows(path, columns, score_in))
    if np.ptp(task.gold) == 0:
        raise InputError(f"{path}: all {len(task.gold):,} scores are {task.gold[0]:g}: no correlation is defined")
    return task


def _read_year(folder: Path, name: str) -> StsTask:
    """One of STS12 to STS16: two files a subset, pairs and scores; a pair without a score is left out."""
    rows: list[tuple[Any, ...]] = []
    subsets = {}
    for subset in SUBSETS[name]:
        inputs, scores = folder / f"STS.input.{subset}.txt", folder / f"STS.gs.{subset}.txt"
        pairs = read_rows(inputs, (0, 1))
        golds = read_rows(scores, (0,), lambda text: score_in(text) if text else None)
        if len(pairs) != len(golds):
            raise InputError(
                f"{inputs} has {len(pairs):,} pairs but {scores} has {len(golds):,} scores: line i of one "
                "belongs to line i of the other"
            )
        scored = [(gold, *pair) for (gold,), pair in zip(golds, pairs, strict=True) if gold is not None]
        subsets[subset] = slice(len(rows), len(rows) + len(scored))
        rows += scored
    return _task(name, folder, rows, subsets)


def _task(
    name: str, path: Path, rows: Sequence[tuple[Any, ...]], subsets: dict[str, slice] | None = None, split: str = "test"
) -> StsTask:
    """A task of the rows (gold score, first sentence, second sentence) that `path` holds."""
    if not rows:
        raise InputError(f"{path}: no pairs of sentences")
    gold, *texts = zip(*rows, strict=True)
    return StsTask(name, [normalise_spaces(side) for side in texts], {split: len(rows)}, np.array(gold), subsets or {})
