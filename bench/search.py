"""Measure what training against near-misses does to search, and what else helps (docs/search.md).

    python -m bench.search --data FOLDER --retrieval FOLDER --model M --runs RUN [RUN ...]
    python -m bench.search --held-out FOLDER --model M --runs RUN [RUN ...]

DATA contains senteval/ and near_miss/, `--retrieval` sets in BEIR's format, and RUNS are trainings of M, one per seed.
Scored are M, the encoder BLEND of the way from M to RUN/last of each run, and other shares of the way for the first
run. M with BM25 (both scores standardised per query and added) and two stages (the hits of M within `NEAR` of its best
hit, ordered by the first RUN/last) are scored on the retrieval sets. The second form scores M and the encoders BLEND of
the way on sets that chose no setting. Results go to bench/results/search.json, and the tables to the page.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bench.report import table, write_between_marks
from train.config import PRESETS
from train.evaluation.model import EvaluatedModel, load_model
from train.evaluation.scoring import evaluate, read_tasks
from train.evaluation.tasks.near_miss import PairTask
from train.evaluation.tasks.registry import EvaluationProtocol, Task, downstream_folder, suite
from train.evaluation.tasks.retrieval import RetrievalTask, read_folder, score_rankings, units
from train.record.environment import machine
from train.record.folder import LAST, SUMMARY
from train.report.runs import compare
from una_fast.pair_scores import paired_change, score_overlap
from una_fast.storage.files import read_json, write_json

RESULTS = Path(__file__).with_name("results") / "search.json"
PAGE = Path(__file__).parents[1] / "docs" / "search.md"
BLEND: float = PRESETS["near_misses"]["blend"]
OTHER_SHARES = (0.5, 1.0)
BEFORE, NO_MODEL = "before", "no model"
NEAR = 0.05  # of the cosine
NEAR_MISSES = ("qqp_near", "qqp_close", "checklist", "sick_auc")
GROUPS = ("number", "polarity")  # of qqp_near
Scores = NDArray[np.floating]  # (n_queries, n_documents)


def standardised(scores: Scores) -> Scores:
    """Scale the scores of each query to mean 0 and standard deviation 1."""
    return (scores - scores.mean(1, keepdims=True)) / np.maximum(scores.std(1, keepdims=True), 1e-9)


def bm25(queries: list[str], documents: list[str]) -> Scores:
    """Compute BM25 scores of all documents with bm25s, for its default parameters."""
    import bm25s  # only this needs the extra `peers`

    retriever = bm25s.BM25()
    retriever.index(bm25s.tokenize(documents, show_progress=False), show_progress=False)
    words = bm25s.tokenize(queries, return_ids=False, show_progress=False)
    return np.stack([retriever.get_scores(of) if of else np.zeros(len(documents)) for of in words])


def two_stages(first: Scores, second: Scores) -> Scores:
    """Order the documents within NEAR of each query's best by `second`, before all others in the order of `first`."""
    near = first >= first.max(1, keepdims=True) - NEAR
    return np.where(near, 10 + second, first)


@contextmanager
def moved(model: EvaluatedModel, trained: EvaluatedModel, share: float) -> Iterator[None]:
    """Give `model` weights a share of the way to those of `trained`, inside the with block."""
    weights = [*model.network.parameters()]
    initial = [weight.detach().clone() for weight in weights]
    with torch.no_grad():
        for weight, end in zip(weights, trained.network.parameters(), strict=True):
            weight.lerp_(end.to(weight.dtype), share)
        try:
            yield
        finally:
            for weight, own in zip(weights, initial, strict=True):
                weight.copy_(own)


class Measurement:
    """The tasks of one call: near-misses (dev parts), STS and retrieval, with texts of at most `max_length` tokens."""

    def __init__(self, data: Path, retrieval: Path, max_length: int) -> None:
        downstream = downstream_folder(data)
        self.dev, self.test = (EvaluationProtocol(mode=mode, max_length=max_length) for mode in ("dev", "test"))
        self.near_misses, _ = read_tasks(downstream, NEAR_MISSES, "dev")
        self.sts, _ = read_tasks(downstream, suite("sts"), "test")
        self.retrieval: RetrievalTask = read_folder(retrieval)

    def figures(self, model: EvaluatedModel) -> dict[str, Any]:
        """Return the figures of the table by name, x 100, and "per_query": the nDCG@10 of each query, by set."""
        near = evaluate(model, self.near_misses, self.dev)["near-miss"]
        rest = evaluate(model, [*self.sts, self.retrieval], self.test)
        aucs = {name: score["auc"] if isinstance(score, dict) else score for name, score in near.items()}
        found = aucs | {f"qqp_near, {group}": near["qqp_near"]["groups"][group]["auc"] for group in GROUPS}
        found["STS average"] = rest["averages"]["sts"]
        figures = {name: round(100 * score, 2) for name, score in found.items()}
        return figures | figures_of(rest["retrieval"][self.retrieval.name])


def figures_of(sets: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of retrieval sets by name, x 100, and "per_query". sets: from `RetrievalTask.score`."""
    found: dict[str, float | None] = {}
    for name, scores in sets.items():
        found[name] = scores["ndcg@10"]
        if scores["groups"]["negation"]["queries"]:
            found[f"{name}, negated queries"] = scores["groups"]["negation"]["ndcg@10"]
        found |= {f"{name}, right above wrong": scores["right"]} if "right" in scores else {}
    figures = {name: round(100 * score, 2) for name, score in found.items() if score is not None}
    return {**figures, "per_query": {name: scores["per_query"] for name, scores in sets.items()}}


def without_model(retrieval: RetrievalTask, near_misses: Iterable[Task] = ()) -> dict[str, float]:
    """Return what baselines without a model score, x 100: BM25 in search, and 1 - word overlap on pairs."""
    sides = zip(retrieval.sets, retrieval.texts[1::2], strict=True)
    found = figures_of({one.name: score_rankings(one, bm25(one.texts, documents)) for one, documents in sides})
    del found["per_query"]
    for task in near_misses:
        if isinstance(task, PairTask):
            pairs = [*zip(*task.texts, task.same.astype(int).tolist(), task.groups.tolist(), strict=True)]
        else:  # SICK's entailments, then its contradictions
            sides = zip((1, 0), task.texts[::2], task.texts[1::2], strict=True)
            pairs = [(*pair, label, "") for label, *texts in sides for pair in zip(*texts, strict=True)]
        scores = score_overlap(pairs).to_dict()
        found[task.name] = round(100 * scores["auc"], 2)
        if task.name == "qqp_near":
            found |= {f"qqp_near, {group}": round(100 * scores["groups"][group]["auc"], 2) for group in GROUPS}
    return found


def ways_to_search(task: RetrievalTask, model: EvaluatedModel, trained: EvaluatedModel) -> dict[str, Any]:
    """Return the change of nDCG@10 by BM25 and by two stages on each set, with paired 95% intervals over queries."""
    found: dict[str, Any] = {}
    for one, documents in zip(task.sets, task.texts[1::2], strict=True):
        cosines, others = (
            queries @ rest.T
            for queries, rest in (
                [units(each.embed(texts)) for texts in (one.texts, documents)] for each in (model, trained)
            )
        )
        ways = {
            BEFORE: cosines,
            "BM25": standardised(cosines) + standardised(bm25(one.texts, documents)),
            "two stages": two_stages(cosines, others),
        }
        queries = {way: score_rankings(one, scores)["per_query"] for way, scores in ways.items()}
        found[one.name] = {way: changed(queries[BEFORE], queries[way]) for way in ("BM25", "two stages")}
    return found


def changed(before: Mapping[str, float], after: Mapping[str, float]) -> list[float]:
    """Return the mean change of a score over queries, x 100, and the ends of its paired 95% interval."""
    pairs = np.array([(before[query], after[query]) for query in before])
    return [round(100 * figure, 2) for figure in paired_change(*pairs.T)]


def mean_per_query(seeds: Sequence[Mapping[str, Any]], name: str) -> dict[str, float]:
    """Return the nDCG@10 of each query of a set, as the mean over seeds."""
    return {query: fmean(seed["per_query"][name][query] for seed in seeds) for query in seeds[0]["per_query"][name]}


def page_table(
    baseline: Mapping[str, float],
    before: Mapping[str, Any],
    seeds: Sequence[Mapping[str, Any]],
    others: Mapping[str, Any],
) -> str:
    """Return the Markdown table: no model, M, BLEND for all runs with the change, and other shares for the first run.

    baseline: from `without_model`.
    """
    rows = []
    for name in [name for name in before if name != "per_query"]:
        values = {i: seed[name] for i, seed in enumerate(seeds)}
        over = compare(dict.fromkeys(values, 0.0), values)
        apart = f" ± {(over.high - over.low) / 2:.1f}" if over and over.n > 2 else ""
        change = ""
        if name in before["per_query"]:
            mean, low, high = changed(before["per_query"][name], mean_per_query(seeds, name))
            change = f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"
        shown = [f"{others[share][name]:.1f}" for share in others]
        simple = f"{baseline[name]:.1f}" if name in baseline else ""
        rows.append([name, simple, f"{before[name]:.1f}", f"{fmean(values.values()):.1f}{apart}", change, *shown])
    return table(
        ["x 100", NO_MODEL, BEFORE, f"`--blend {BLEND:g}`", "change", *(f"`--blend {share}`" for share in others)], rows
    )


def load(name: str, max_length: int) -> EvaluatedModel:
    """Load a model that truncates texts to `max_length` tokens."""
    model = load_model(name, device="cpu")
    model.tokenizer.model_max_length = max_length
    return model


def measure(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measure everything on the dev sets. Return the results and the page's table."""
    tasks = Measurement(options.data, options.retrieval, options.max_length)
    model = load(options.model, options.max_length)
    before, seeds, others = tasks.figures(model), {}, {}
    for number, run in enumerate(options.runs):
        trained = load(str(run / LAST), options.max_length)
        with moved(model, trained, BLEND):
            seeds[seed_of(run)] = tasks.figures(model)
        if number == 0:
            for share in OTHER_SHARES:
                with moved(model, trained, share):
                    others[f"{share:g}"] = tasks.figures(model)
            ways = ways_to_search(tasks.retrieval, model, trained)
    baseline = without_model(tasks.retrieval, tasks.near_misses)
    shown = page_table(baseline, before, [*seeds.values()], others)
    for figures in (before, *seeds.values(), *others.values()):
        del figures["per_query"]
    settings = {"model": Path(options.model).name, "blend": BLEND, "max_length": options.max_length}
    content = {"machine": machine(), "settings": settings, NO_MODEL: baseline, BEFORE: before, "seeds": seeds}
    return content | {"other shares, first run": others, "instead": ways}, shown


def measure_held_out(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measure search on the sets of --held-out. Return the results and the page's table."""
    task, protocol = read_folder(options.held_out), EvaluationProtocol(max_length=options.max_length)

    def figures(model: EvaluatedModel) -> dict[str, Any]:
        return figures_of(evaluate(model, [task], protocol)["retrieval"][task.name])

    model = load(options.model, options.max_length)
    before, seeds = figures(model), {}
    ways = ways_to_search(task, model, load(str(options.runs[0] / LAST), options.max_length))
    for run in options.runs:
        with moved(model, load(str(run / LAST), options.max_length), BLEND):
            seeds[seed_of(run)] = figures(model)
    baseline = without_model(task)
    shown = page_table(baseline, before, [*seeds.values()], {})
    for found in (before, *seeds.values()):
        del found["per_query"]
    results = {"machine": machine(), NO_MODEL: baseline, BEFORE: before, "seeds": seeds, "instead": ways}
    return {"held out": results}, shown


def seed_of(run: Path) -> str:
    """Return the seed of a run."""
    return str(read_json(run / SUMMARY)["settings"]["seed"])


def main() -> None:
    """Measure one of the tables, write the results and the table, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    sets = parser.add_mutually_exclusive_group(required=True)
    sets.add_argument("--retrieval", type=Path)
    sets.add_argument("--held-out", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--runs", type=Path, nargs="+", required=True)
    parser.add_argument("--max-length", type=int, default=128)
    options = parser.parse_args()
    content, shown = measure_held_out(options) if options.held_out else measure(options)
    write_json(RESULTS, (read_json(RESULTS) if RESULTS.is_file() else {}) | content)
    write_between_marks(PAGE, [shown], "held out" if options.held_out else "search")
    ways = content["held out" if options.held_out else "instead"]
    print(shown, ways.get("instead", ways), sep="\n")


if __name__ == "__main__":
    main()
