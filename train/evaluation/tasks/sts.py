"""Semantic textual similarity: SentEval's seven tasks, and any file of scored pairs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from train.evaluation.similarity import cosine, pearson, spearman
from train.evaluation.tasks.reading import normalise_spaces, read_lines, read_rows, score_in
from train.evaluation.tasks.registry import EvaluationProtocol, Scores, Task
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


@dataclass(frozen=True)
class StsTask(Task):
    """Pairs of sentences, the first and the second of which are `texts`, with their gold scores."""

    kind = "sts"
    gold: NDArray[np.float64]

    def score(self, embeddings: Sequence[NDArray], protocol: EvaluationProtocol) -> Scores:
        """Correlations over all pairs at once, SentEval's "all"."""
        similarity = cosine(*embeddings)
        return {
            "pairs": len(self.gold),
            "pearson": {"all": pearson(similarity, self.gold)},
            "spearman": {"all": spearman(similarity, self.gold)},
        }


def read(downstream: Path, name: str, split: str = "test") -> StsTask:
    """Read one of SentEval's tasks from its `downstream` folder; split "test", or "dev" where it has one."""
    if name in TABLES:
        files, columns, skip = TABLES[name]
        path = downstream / files[split]
        return _task(name, path, read_rows(path, columns, score_in, skip), split)
    if split != "test":
        raise InputError(f"{name} has no {split} split: only {', '.join(TABLES)} have")
    folder = downstream / "STS" / f"{name}-en-test"
    return _task(name, folder, [row for subset in SUBSETS[name] for row in _read_subset(folder, subset)])


def load_dev(path: str | os.PathLike[str]) -> StsTask:
    """Pairs of a file: STS-B's csv (score in column 5, sentences in 6 and 7) or "score<TAB>first<TAB>second".

    Raises InputError for a file without pairs, a line that is not one, and scores that are all the same.
    """
    path = Path(path)
    lines = read_lines(path)
    columns = (4, 5, 6) if lines and lines[0].count("\t") >= 6 else (0, 1, 2)
    task = _task(path.stem, path, read_rows(path, columns, score_in))
    if np.ptp(task.gold) == 0:
        raise InputError(f"{path}: all {len(task.gold):,} scores are {task.gold[0]:g}: no correlation is defined")
    return task


def _read_subset(folder: Path, subset: str) -> list[tuple[Any, ...]]:
    """Scores and pairs of a subset of STS12 to STS16, which are in two files; a pair without a score is left out."""
    inputs, scores = folder / f"STS.input.{subset}.txt", folder / f"STS.gs.{subset}.txt"
    pairs = read_rows(inputs, (0, 1))
    golds = read_rows(scores, (0,), lambda text: score_in(text) if text else None)
    if len(pairs) != len(golds):
        raise InputError(
            f"{inputs} has {len(pairs):,} pairs but {scores} has {len(golds):,} scores: line i of one belongs to line "
            "i of the other"
        )
    return [(gold, *pair) for (gold,), pair in zip(golds, pairs, strict=True) if gold is not None]


def _task(name: str, path: Path, rows: Sequence[tuple[Any, ...]], split: str = "test") -> StsTask:
    """A task of the rows (gold score, first sentence, second sentence) of a file."""
    if not rows:
        raise InputError(f"{path}: no pairs of sentences")
    gold, *texts = zip(*rows, strict=True)
    return StsTask(name, [normalise_spaces(side) for side in texts], {split: len(rows)}, np.array(gold))
