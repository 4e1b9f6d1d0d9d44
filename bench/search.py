"""Measure what training against near-misses does to search, and three ways to keep it (docs/search.md).

    python -m bench.search --data FOLDER --model M --trained RUN [--shares 0.5,1]

FOLDER contains retrieval sets in BEIR's format. The script scores M, encoders between M and RUN/last (each a share of
the way from M to RUN/last), M with BM25 (both scores standardised per query and added), and two stages: the hits of M
within `NEAR` of its best hit, ordered by the trained encoder. Each change has a paired 95% interval over queries.
Results go to bench/results/search.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import torch
from numpy.typing import NDArray

from train.evaluation.model import EvaluatedModel, load_model
from train.evaluation.tasks.retrieval import RetrievalSet, read_folder, score_rankings, units
from train.record.environment import machine
from una_fast.pair_scores import paired_change
from una_fast.storage.files import write_json

RESULTS = Path(__file__).with_name("results") / "search.json"
NEAR = 0.05  # of the cosine
Scores = NDArray[np.floating]  # (n_queries, n_documents)


def standardised(scores: Scores) -> Scores:
    """Scale the scores of each query to mean 0 and standard deviation 1."""
    return (scores - scores.mean(1, keepdims=True)) / np.maximum(scores.std(1, keepdims=True), 1e-9)


def bm25(queries: list[str], documents: list[str]) -> Scores:
    """Compute BM25 scores of all documents with bm25s, for its default parameters."""
    retriever = bm25s.BM25()
    retriever.index(bm25s.tokenize(documents, show_progress=False), show_progress=False)
    words = bm25s.tokenize(queries, return_ids=False, show_progress=False)
    return np.stack([retriever.get_scores(of) if of else np.zeros(len(documents)) for of in words])


def two_stages(first: Scores, second: Scores) -> Scores:
    """Order the documents within NEAR of each query's best by `second`, before all others in the order of `first`."""
    near = first >= first.max(1, keepdims=True) - NEAR
    return np.where(near, 10 + second, first)


def between(model: EvaluatedModel, trained: EvaluatedModel, share: float) -> Callable[[list[str]], NDArray]:
    """Return a function that embeds texts with weights a share of the way from `model` to `trained`."""

    def embed(texts: list[str]) -> NDArray:
        weights = [*model.network.parameters()]
        initial = [weight.detach().clone() for weight in weights]
        with torch.no_grad():
            for weight, end in zip(weights, trained.network.parameters(), strict=True):
                weight.lerp_(end.to(weight.dtype), share)
            try:
                return model.embed(texts)
            finally:
                for weight, own in zip(weights, initial, strict=True):
                    weight.copy_(own)

    return embed


def measured(
    one: RetrievalSet, documents: list[str], model: EvaluatedModel, trained: EvaluatedModel, shares: list[float]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the scores of each way to search a set."""

    def cosines(embed: Callable[[list[str]], NDArray]) -> Scores:
        queries, others = (units(embed(texts)) for texts in (one.texts, documents))
        return queries @ others.T

    ways = {"before": cosines(model.embed)}
    for share in shares:
        ways[f"{share:g} of the way"] = cosines(between(model, trained, share))
    ways["before, with BM25"] = standardised(ways["before"]) + standardised(bm25(one.texts, documents))
    ways["two stages"] = two_stages(ways["before"], cosines(trained.embed))
    for name, scores in ways.items():
        yield name, score_rankings(one, scores)


def main() -> None:
    """Measure all ways on all sets, print nDCG@10 with its change, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--trained", required=True, help="folder of the trained encoder, such as RUN/last")
    parser.add_argument("--shares", default="0.25,0.5,0.75,1")
    parser.add_argument("--max-length", type=int, default=128)
    options = parser.parse_args()
    model, trained = (load_model(name, device="cpu") for name in (options.model, options.trained))
    for each in (model, trained):
        each.tokenizer.model_max_length = options.max_length
    shares = [float(share) for share in options.shares.split(",")]
    task = read_folder(options.data)
    results: dict[str, Any] = {}
    for one, documents in zip(task.sets, task.texts[1::2], strict=True):
        rows = results[one.name] = dict(measured(one, documents, model, trained, shares))
        before = np.array([*rows["before"]["per_query"].values()])
        for name, row in rows.items():
            change = paired_change(before, np.array([*row.pop("per_query").values()]))
            row["change"] = dict(zip(("mean", "low", "high"), change, strict=True))
            print(one.name, name, f"{100 * row['ndcg@10']:.1f}", *(f"{100 * figure:+.1f}" for figure in change))
    settings = {"model": Path(options.model).name, "shares": shares, "max_length": options.max_length}
    write_json(RESULTS, {"machine": machine(), "settings": settings, "sets": results})


if __name__ == "__main__":
    main()
