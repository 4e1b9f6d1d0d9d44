"""All scores of a model over tasks, with the protocol by which they were made."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from train.encoder.first_token import without_unread_tokens
from train.encoder.onednn import packed_linears
from train.encoder.pooling import AUTO, POOLINGS
from train.evaluation.classifier import FAST, FULL
from train.evaluation.correlation import correlate, cosine
from train.evaluation.embed import GPU_BATCH_TOKENS, Batches, DistinctSentences
from train.evaluation.geometry import ALIGNMENT_SCORE, alignment, uniformity, unit_rows, whiten
from train.evaluation.model import EvaluatedModel
from train.evaluation.protocol import Protocol
from train.evaluation.tasks.sts import StsTask
from train.evaluation.tasks.transfer import TransferTask, f1, score_transfer


@dataclass
class Results:
    """Scores by task, as dictionaries of JSON types; None is an undefined score."""

    model: str
    protocol: dict[str, Any]
    sts: dict[str, dict[str, Any]] = field(default_factory=dict)
    transfer: dict[str, dict[str, Any]] = field(default_factory=dict)
    averages: dict[str, float | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0  # of encoding and scoring, without loading the model

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON types."""
        return asdict(self)


def evaluate(
    model: EvaluatedModel,
    tasks: Sequence[StsTask | TransferTask],
    protocol: Protocol,
    copies: Sequence[EvaluatedModel] = (),
) -> Results:
    """Score `model` on all tasks; each distinct sentence of them is encoded once.

    copies: the same model on further devices, which share the sentences with it.
    """
    distinct = DistinctSentences()
    rows = [[distinct.add(texts) for texts in _texts(task)] for task in tasks]
    max_length = min(protocol.max_length or model.max_length, model.max_length)
    embeddings = _embed(distinct.texts, [model, *copies], max_length)
    results = Results(model.name, describe(protocol, model, max_length))
    for task, task_rows in zip(tasks, rows, strict=True):
        space = whiten(embeddings, np.concatenate(task_rows)) if protocol.whiten else embeddings
        if isinstance(task, StsTask):
            results.sts[task.name] = _sts_scores(task, space, task_rows, protocol, results.notes)
        else:
            results.transfer[task.name] = _transfer_scores(task, space, task_rows, protocol)
    results.averages = {
        "sts": _average(scores["spearman"][protocol.aggregate] for scores in results.sts.values()),
        "transfer": _average(scores[_accuracy_name(protocol)] for scores in results.transfer.values()),
    }
    return results


def _embed(texts: Sequence[str], models: Sequence[EvaluatedModel], max_length: int) -> NDArray:
    """Embeddings (n, D) of the texts under one model, or shared among its copies."""
    first, *copies = models
    with contextlib.ExitStack() as stack:
        for model in models:
            stack.enter_context(packed_linears(model.network))
            stack.enter_context(without_unread_tokens(model.network, model.pooling, model.tokenizer))
        if not copies:
            batches = Batches(texts, first.tokenizer, max_length, device=first.device)
            return batches.embed(first.encode, threads=None).cpu().numpy()
        batches = Batches(texts, first.tokenizer, max_length, batch_tokens=GPU_BATCH_TOKENS)
        return batches.embed_by([model.encode_from_host for model in models]).numpy()


def describe(protocol: Protocol, model: EvaluatedModel, max_length: int) -> dict[str, Any]:
    """The protocol in words and numbers, as printed with a table."""
    classifier, layout = FULL if protocol.mode == "test" else FAST, model.layout
    stated = "the model's modules.json" if layout.declared else "no modules.json, so [CLS]"
    return {
        "mode": protocol.mode,
        "split": protocol.split,
        "aggregate": protocol.aggregate,
        "pooling": layout.pooling,
        "pooling_meaning": POOLINGS[layout.pooling].meaning,
        "pooling_from": f"auto: {stated}" if protocol.pooling == AUTO else "--pooling",
        "normalize": layout.normalize,
        "max_length": max_length,
        "lower_case": model.lower_cases,
        "whitening": "each task's own sentences" if protocol.whiten else "none",
        "precision": protocol.precision,
        "device": str(model.device),
        "sts13": "without SMT",
        "classifier": f"logistic regression, {classifier.optimiser}, {classifier.folds} folds, SentEval's seed",
    }


def _texts(task: StsTask | TransferTask) -> Iterable[list[str]]:
    """All lists of sentences of a task, in a fixed order."""
    if isinstance(task, StsTask):
        return [task.first, task.second]
    lists = [(split.first, split.second) for split in task.splits.values()]
    return [texts for pair in lists for texts in pair if texts is not None]


def _sts_scores(
    task: StsTask, space: NDArray, rows: list[NDArray], protocol: Protocol, notes: list[str]
) -> dict[str, Any]:
    first, second = rows
    similarity = cosine(space[first], space[second])
    scores = correlate(similarity, task.gold, task.subsets)
    notes += _undefined(task, similarity, scores.subsets)
    close = task.gold >= ALIGNMENT_SCORE
    distinct = unit_rows(space[np.unique(np.concatenate(rows))])
    kept = {"similarity": np.round(similarity, 5).tolist(), "gold": task.gold.tolist()} if protocol.keep_pairs else {}
    return {
        "pairs": len(task),
        "spearman": _without_nan(scores.spearman),
        "pearson": _without_nan(scores.pearson),
        "subsets": _without_nan(scores.subsets),
        "alignment": _or_none(alignment(unit_rows(space[first[close]]), unit_rows(space[second[close]]))),
        "uniformity": _or_none(uniformity(distinct)),
        **kept,
    }


def _undefined(task: StsTask, similarity: NDArray, subsets: dict[str, float]) -> list[str]:
    """A sentence for each correlation that is not defined, and for sentences without a word."""
    notes = []
    parts = {
        "": slice(None),
        **{f" {name}": part for name, part in task.subsets.items() if math.isnan(subsets[name])},
    }
    for name, part in parts.items():
        for what, values in (("gold scores", task.gold[part]), ("similarities", similarity[part])):
            if np.ptp(values) == 0:
                notes.append(f"{task.name}{name}: all {len(values):,} {what} are equal, so no correlation is defined")
    if task.n_empty:
        notes.append(f"{task.name}: {task.n_empty} empty sentences, encoded as special tokens alone")
    return notes


def _transfer_scores(task: TransferTask, space: NDArray, rows: list[NDArray], protocol: Protocol) -> dict[str, Any]:
    lists = dict(zip(map(id, _texts(task)), rows, strict=True))
    accuracies = score_transfer(task, lambda texts: space[lists[id(texts)]], FULL if protocol.mode == "test" else FAST)
    scores = {
        "examples": {name: len(split) for name, split in task.splits.items()},
        "dev_accuracy": accuracies.dev,
        "accuracy": accuracies.test,
    }
    if task.name == "MRPC" and accuracies.predicted is not None:
        scores["f1"] = round(f1(accuracies.predicted, task.splits["test"].labels), 2)
    return scores


def _accuracy_name(protocol: Protocol) -> str:
    return "dev_accuracy" if protocol.split == "dev" else "accuracy"


def _average(scores: Iterable[float | None]) -> float | None:
    """Mean of the defined scores; None if there is none."""
    defined = [score for score in scores if score is not None]
    return sum(defined) / len(defined) if defined else None


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _without_nan(values: dict[str, float]) -> dict[str, float | None]:
    return {name: _or_none(value) for name, value in values.items()}
