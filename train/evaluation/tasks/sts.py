"""Semantic textual similarity: SentEval's seven tasks, any file of scored pairs, a scorer for training."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from train.evaluation.correlation import Correlations, correlate, cosine
from train.evaluation.embed import Batches, DistinctSentences, Encode
from train.evaluation.files import normalise_spaces, number_in, read_columns, read_lines
from train.evaluation.tasks.names import DEV_TASKS, STS_TASKS, SUBSETS
from una_fast.errors import InputError

SICK_FILES = {"test": "SICK_test_annotated.txt", "dev": "SICK_trial.txt"}


@dataclass(frozen=True)
class StsTask:
    """Pairs of sentences with their gold scores; `subsets` cut the pairs into consecutive parts, in order."""

    name: str
    first: list[str]
    second: list[str]
    gold: NDArray[np.float64]
    subsets: dict[str, slice] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def n_empty(self) -> int:
        """Sentences without a word: encoded as special tokens alone, as SentEval does."""
        return sum(not text for text in (*self.first, *self.second))


def read_sts(downstream: Path, name: str, split: str = "test") -> StsTask:
    """One of STS_TASKS from SentEval's `downstream` folder; split "test", or "dev" for DEV_TASKS."""
    if name in SUBSETS:
        if split != "test":
            raise InputError(f"{name} has no {split} split: only {', '.join(DEV_TASKS)} have")
        return _read_year(downstream / "STS" / f"{name}-en-test", name)
    if name == "STSBenchmark":
        return _read_table(downstream / "STS" / name / f"sts-{split}.csv", name, (4, 5, 6))
    if name == "SICKRelatedness":
        return _read_table(downstream / "SICK" / SICK_FILES[split], name, (3, 1, 2), skip=1)
    raise InputError(f"unknown STS task {name!r}: choose from {', '.join(STS_TASKS)}")


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
        raise InputError(f"{path}: all {len(task):,} scores are {task.gold[0]:g}: no correlation is defined")
    return task


def _read_table(path: Path, name: str, columns: tuple[int, int, int], skip: int = 0) -> StsTask:
    """A task from one tab-separated file; columns of score, first and second sentence."""
    gold, first, second = [], [], []
    for line, (score, text1, text2) in read_columns(path, columns, skip):
        gold.append(number_in(score, path, line))
        first.append(text1)
        second.append(text2)
    if not gold:
        raise InputError(f"{path}: no pairs of sentences")
    return StsTask(name, normalise_spaces(first), normalise_spaces(second), np.array(gold))


def _read_year(folder: Path, name: str) -> StsTask:
    """One of STS12 to STS16: two files a subset, pairs and scores; a pair without a score is left out."""
    first: list[str] = []
    second: list[str] = []
    gold: list[float] = []
    subsets = {}
    for subset in SUBSETS[name]:
        inputs, scores = folder / f"STS.input.{subset}.txt", folder / f"STS.gs.{subset}.txt"
        pairs, golds = list(read_columns(inputs, (0, 1))), read_lines(scores)
        if len(pairs) != len(golds):
            raise InputError(
                f"{inputs} has {len(pairs):,} pairs but {scores} has {len(golds):,} scores: line i of one "
                "belongs to line i of the other"
            )
        start = len(gold)
        for (line, (text1, text2)), score in zip(pairs, golds, strict=True):
            if score:
                gold.append(number_in(score, scores, line))
                first.append(text1)
                second.append(text2)
        subsets[subset] = slice(start, len(gold))
    return StsTask(name, normalise_spaces(first), normalise_spaces(second), np.array(gold), subsets)


def score_pairs(task: StsTask, embeddings: NDArray, first: NDArray, second: NDArray) -> Correlations:
    """Correlations of a task from embeddings (n, D) and the rows of its sentences in them, int64 (pairs,)."""
    return correlate(cosine(embeddings[first], embeddings[second]), task.gold, task.subsets)


class PairScorer:
    """Spearman of tasks under an encoder that changes: tokenised and sorted once, encoded at every call."""

    def __init__(
        self,
        tasks: Iterable[StsTask],
        tokenizer: Any,
        max_length: int | None = None,
        batch_tokens: int | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        self.tasks: Sequence[StsTask] = list(tasks)
        distinct = DistinctSentences()
        self._rows = [(distinct.add(task.first), distinct.add(task.second)) for task in self.tasks]
        self._batches = Batches(distinct.texts, tokenizer, max_length, batch_tokens, device)

    def __call__(self, encode: Encode, threads: int | None = 1) -> dict[str, float]:
        """Spearman over all pairs, by task name; NaN if the encoder gives every pair the same similarity.

        encode: a padded batch {"input_ids", "attention_mask", ...} of int64 (B, L) -> embeddings (B, D). It
        is called in inference mode; the model's own mode (eval) is the caller's. On the CPU, `threads` batches
        are encoded at once (None: PyTorch's threads): not for an `encode` that talks to other ranks.
        """
        embeddings = self._batches.embed(encode, threads).cpu().numpy()
        return {
            task.name: score_pairs(task, embeddings, first, second).spearman["all"]
            for task, (first, second) in zip(self.tasks, self._rows, strict=True)
        }
