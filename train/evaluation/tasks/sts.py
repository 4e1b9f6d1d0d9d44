"""Semantic textual similarity: SentEval's seven tasks, and any file of scored pairs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from train.evaluation.similarity import alignment, correlate, cosine, uniformity
from train.evaluation.tasks.registry import (
    Column,
    EvaluationProtocol,
    Scores,
    Task,
    normalise_spaces,
    number_in,
    read_columns,
    read_lines,
)
from una_fast.errors import InputError, counted

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
ALIGNMENT_SCORE = 4.0  # pairs scored at least this are positives, as in SimCSE's figure of STS-B


@dataclass(frozen=True)
class StsTask(Task):
    """Pairs of sentences, the first and the second of which are `texts`, with their gold scores."""

    kind = "sts"
    gold: NDArray[np.float64]
    subsets: dict[str, slice] = field(default_factory=dict)  # consecutive parts of the pairs, in order

    def score(
        self, embeddings: NDArray, rows: Sequence[NDArray], protocol: EvaluationProtocol
    ) -> tuple[Scores, list[str]]:
        """Correlations, alignment and uniformity, and a note for each correlation that is undefined."""
        similarity, notes = cosine(*(embeddings[side] for side in rows)), []
        scores = {
            "pairs": len(self.gold),
            **correlate(similarity, self.gold, self.subsets),
            "alignment": alignment(similarity[self.gold >= ALIGNMENT_SCORE]),
            "uniformity": uniformity(embeddings[np.unique(np.concatenate(rows))]),
        }
        for name, part in {"": slice(None), **self.subsets}.items():
            for what, values in (("gold scores", self.gold[part]), ("similarities", similarity[part])):
                if np.ptp(values) == 0:
                    equal = f"all {len(values):,} {what} are equal, so no correlation is defined"
                    notes.append(f"{self.name} {name}".rstrip() + f": {equal}")
        if empty := sum(not text for side in self.texts for text in side):
            notes.append(f"{self.name}: {counted(empty, 'empty sentence')}, encoded as special tokens alone")
        return scores, notes


def columns(protocol: Mapping[str, Any]) -> list[Column]:
    """Correlations, alignment and uniformity."""
    aggregate, split = protocol["aggregate"], protocol["split"]
    return [
        Column(f"Spearman x 100, {aggregate!r}, {split}", lambda scores: scores["spearman"][aggregate], 100),
        Column(f"Pearson x 100, {aggregate!r}, {split}", lambda scores: scores["pearson"][aggregate], 100),
        Column("Alignment (lower is better)", lambda scores: scores["alignment"]),
        Column("Uniformity (lower is better)", lambda scores: scores["uniformity"]),
    ]


def stated(protocol: EvaluationProtocol) -> dict[str, Any]:
    """What STS13 is, see SUBSETS."""
    return {"sts13": "without SMT"}


def read(downstream: Path, name: str, split: str = "test") -> StsTask:
    """One of SentEval's tasks from its `downstream` folder; split "test", or "dev" where it has one."""
    if name in TABLES:
        files, columns, skip = TABLES[name]
        return _read_table(downstream / files[split], name, columns, skip, split)
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
    task = _read_table(path, path.stem, columns)
    if np.ptp(task.gold) == 0:
        raise InputError(f"{path}: all {len(task.gold):,} scores are {task.gold[0]:g}: no correlation is defined")
    return task


def _read_table(path: Path, name: str, columns: tuple[int, ...], skip: int = 0, split: str = "test") -> StsTask:
    """A task from one tab-separated file; columns of score, first and second sentence."""
    lines = read_columns(path, columns, skip)
    return _task(name, path, [(number_in(score, path, line), *texts) for line, (score, *texts) in lines], {}, split)


def _read_year(folder: Path, name: str) -> StsTask:
    """One of STS12 to STS16: two files a subset, pairs and scores; a pair without a score is left out."""
    rows: list[tuple[Any, ...]] = []
    subsets = {}
    for subset in SUBSETS[name]:
        inputs, scores = folder / f"STS.input.{subset}.txt", folder / f"STS.gs.{subset}.txt"
        pairs, golds = list(read_columns(inputs, (0, 1))), read_lines(scores)
        if len(pairs) != len(golds):
            raise InputError(
                f"{inputs} has {len(pairs):,} pairs but {scores} has {len(golds):,} scores: line i of one "
                "belongs to line i of the other"
            )
        start = len(rows)
        scored = zip(pairs, golds, strict=True)
        rows += [(number_in(score, scores, line), *texts) for (line, texts), score in scored if score]
        subsets[subset] = slice(start, len(rows))
    return _task(name, folder, rows, subsets)


def _task(
    name: str, path: Path, rows: Sequence[tuple[Any, ...]], subsets: dict[str, slice], split: str = "test"
) -> StsTask:
    """A task of the rows (gold score, first sentence, second sentence) that `path` holds."""
    if not rows:
        raise InputError(f"{path}: no pairs of sentences")
    gold, *texts = zip(*rows, strict=True)
    return StsTask(name, [normalise_spaces(side) for side in texts], {split: len(rows)}, np.array(gold), subsets)
