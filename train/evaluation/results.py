"""The scores of a model on tasks, with the protocol by which they were computed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from train.encoder.cpu import packed_linears
from train.encoder.encoder import without_unread_tokens
from train.encoder.pooling import AUTO, POOLINGS
from train.evaluation.embed import GPU_BATCH_TOKENS, Batches, DistinctSentences
from train.evaluation.measures.geometry import whiten
from train.evaluation.model import EvaluatedModel
from train.evaluation.protocol import EvaluationProtocol
from train.evaluation.tasks.kind import Scores, Task, mean_of
from train.evaluation.tasks.registry import KINDS, kind_of


@dataclass
class Results:
    """Scores by kind of task, then by task, of JSON types; None is an undefined score."""

    model: str
    protocol: dict[str, Any]
    scores: dict[str, dict[str, Scores]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    averages: dict[str, float | None] = field(default_factory=dict)  # by kind, where a mean says something
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0  # of encoding and scoring, without loading the model

    @property
    def n_tasks(self) -> int:
        """Tasks that were scored."""
        return sum(map(len, self.scores.values()))

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON types, in which each kind of task is a key."""
        rest = {"averages": self.averages, "notes": self.notes, "seconds": self.seconds}
        return {"model": self.model, "protocol": self.protocol, **self.scores, **rest}


def evaluate(
    model: EvaluatedModel,
    tasks: Sequence[Task],
    protocol: EvaluationProtocol,
    copies: Sequence[EvaluatedModel] = (),
) -> Results:
    """Score `model` on all tasks; each distinct sentence of them is encoded once.

    copies: the same model on further devices, among which the sentences are divided.
    """
    distinct = DistinctSentences()
    rows = [[distinct.add(texts) for texts in task.texts()] for task in tasks]
    max_length = min(protocol.max_length or model.max_length, model.max_length)
    embeddings = _embed(distinct.texts, [model, *copies], max_length)
    results = Results(model.name, describe(protocol, model, max_length))
    for task, task_rows in zip(tasks, rows, strict=True):
        space = whiten(embeddings, np.concatenate(task_rows)) if protocol.whiten else embeddings
        results.scores[task.kind][task.name], notes = task.score(space, task_rows, protocol)
        results.notes += notes
    for kind, scores in results.scores.items():
        headline, *_ = kind_of(kind).columns(results.protocol)
        if headline.averaged:
            results.averages[kind] = mean_of(headline, scores)
    return results


def _embed(texts: Sequence[str], models: Sequence[EvaluatedModel], max_length: int) -> NDArray:
    """Embeddings (n, D) of the texts under one model; its copies, if any, each encode some of the batches."""
    first, *copies = models
    texts = first.layout.prepared(texts)
    with contextlib.ExitStack() as stack:
        for model in models:
            stack.enter_context(packed_linears(model.network))
            stack.enter_context(without_unread_tokens(model.network, model.pooling, model.tokenizer))
        if not copies:
            batches = Batches(texts, first.tokenizer, max_length, device=first.device)
            return batches.embed(first.encode, threads=None).cpu().numpy()
        batches = Batches(texts, first.tokenizer, max_length, batch_tokens=GPU_BATCH_TOKENS)
        return batches.embed_by([model.encode_from_host for model in models]).numpy()


def describe(protocol: EvaluationProtocol, model: EvaluatedModel, max_length: int) -> dict[str, Any]:
    """The protocol as it is printed below the tables: each setting by its name."""
    layout = model.layout
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
        "prompt": layout.prompt or "none",
        "lower_case": layout.lower_case or model.lower_cases,
        "whitening": "each task's own sentences" if protocol.whiten else "none",
        "precision": protocol.precision,
        "device": str(model.device),
        **{name: line for kind in KINDS for name, line in kind_of(kind).stated(protocol).items()},
    }
