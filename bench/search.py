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

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bench import script
from bench.report import over_seeds, table, write_between_marks
from train.config import PRESETS
from train.evaluation.model import EvaluatedModel, load_model
from train.evaluation.scoring import evaluate, read_tasks
from train.evaluation.tasks.near_miss import PairTask
from train.evaluation.tasks.registry import EvaluationProtocol, Task, downstream_folder, suite
from train.evaluation.tasks.retrieval import RetrievalTask, read_folder, score_rankings, units
from train.record.environment import machine
from train.record.folder import LAST, SUMMARY
from una_fast.errors import InputError
from una_fast.pair_scores import paired_change, score_overlap
from una_fast.storage.files import read_json, write_json

RESULTS, PAGE = script.RESULTS / "search.json", script.DOCS / "search.md"
BLEND: float = PRESETS["near_misses"]["blend"]
OTHER_SHARES = (0.5, 1.0)
BEFORE, NO_MODEL = "before", "no model"
NEAR = 0.05  # of the cosine
NEAR_MISSES = ("qqp_near", "qqp_close", "checklist", "sick_auc")
GROUPS = ("number", "polarity")  # of qqp_near
Scores = NDArray[np.floating]  # (n_queries, n_documents)
Figures = dict[str, Any]  # x 100 by name; "per_query" has the nDCG@10 of each query by set


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


def figures_of(results: Mapping[str, Any]) -> Figures:
    """Return the figures of the table. results: from `evaluate`, with one retrieval task."""
    near, (sets,) = results.get("near-miss", {}), results["retrieval"].values()
    found = {name: score["auc"] if isinstance(score, dict) else score for name, score in near.items()}
    if "qqp_near" in near:
        found |= {f"qqp_near, {group}": near["qqp_near"]["groups"][group]["auc"] for group in GROUPS}
    found["STS average"] = results.get("averages", {}).get("sts")
    for name, scores in sets.items():
        found[name] = scores["ndcg@10"]
        negated = scores["groups"]["negation"]
        found[f"{name}, negated queries"] = negated["ndcg@10"] if negated["queries"] else None
        found[f"{name}, right above wrong"] = scores.get("right")
    figures = {name: round(100 * score, 2) for name, score in found.items() if score is not None}
    return {**figures, "per_query": {name: scores["per_query"] for name, scores in sets.items()}}


def without_model(retrieval: RetrievalTask, near_misses: Iterable[Task] = ()) -> Figures:
    """Return what baselines without a model score: BM25 in search, and 1 - word overlap on pairs."""
    near = {}
    for task in near_misses:
        if isinstance(task, PairTask):
            pairs = [*zip(*task.texts, task.same.astype(int).tolist(), task.groups.tolist(), strict=True)]
        else:  # SICK's entailments, then its contradictions
            sides = zip((1, 0), task.texts[::2], task.texts[1::2], strict=True)
            pairs = [(*pair, label, "") for label, *texts in sides for pair in zip(*texts, strict=True)]
        near[task.name] = score_overlap(pairs).to_dict()
    sets = {one.name: score_rankings(one, bm25(one.texts, documents)) for one, documents in sides_of(retrieval)}
    return figures_of({"near-miss": near, "retrieval": {retrieval.name: sets}})


def sides_of(task: RetrievalTask) -> Iterable[tuple[Any, list[str]]]:
    """Return each set of a task with its documents."""
    return zip(task.sets, task.texts[1::2], strict=True)


def ways_to_search(task: RetrievalTask, model: EvaluatedModel, trained: EvaluatedModel) -> dict[str, Any]:
    """Return the change of nDCG@10 by BM25 and by two stages on each set, with paired 95% intervals over queries."""
    found: dict[str, Any] = {}
    for one, documents in sides_of(task):
        cosines, others = (units(each.embed(one.texts)) @ units(each.embed(documents)).T for each in (model, trained))
        ways = {"BM25": standardised(cosines) + standardised(bm25(one.texts, documents))}
        ways["two stages"] = two_stages(cosines, others)
        before = score_rankings(one, cosines)["per_query"]
        found[one.name] = {
            way: changed(before, score_rankings(one, scores)["per_query"]) for way, scores in ways.items()
        }
    return found


def changed(before: Mapping[str, float], after: Mapping[str, float]) -> list[float]:
    """Return the mean change of a score over queries, x 100, and the ends of its paired 95% interval."""
    pairs = np.array([(before[query], after[query]) for query in before])
    return [round(100 * figure, 2) for figure in paired_change(*pairs.T)]


def shown_change(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """Return `changed` for a table cell."""
    mean, low, high = changed(before, after)
    return f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"


def mean_per_query(seeds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the score of each query, as the mean over seeds."""
    return {query: fmean(seed[query] for seed in seeds) for query in seeds[0]}


def page_table(
    baseline: Mapping[str, float], before: Figures, seeds: Sequence[Figures], others: Mapping[str, Figures]
) -> str:
    """Return the Markdown table: no model, M, BLEND for all runs with the change, and other shares for the first run.

    baseline: from `without_model`.
    """
    rows = []
    for name in [name for name in before if name != "per_query"]:
        values, change = [seed[name] for seed in seeds], ""
        if name in before["per_query"]:
            after = mean_per_query([seed["per_query"][name] for seed in seeds])
            change = shown_change(before["per_query"][name], after)
        simple = f"{baseline[name]:.1f}" if name in baseline else ""
        row = [name, simple, f"{before[name]:.1f}", f"{fmean(values):.1f}{over_seeds(values)}", change]
        rows.append([*row, *(f"{others[share][name]:.1f}" for share in others)])
    shares = [f"`--blend {share}`" for share in others]
    return table(["x 100", NO_MODEL, BEFORE, f"`--blend {BLEND:g}`", "change", *shares], rows)


def load(name: str, max_length: int) -> EvaluatedModel:
    """Load a model that truncates texts to `max_length` tokens."""
    model = load_model(name, device="cpu")
    model.tokenizer.model_max_length = max_length
    return model


def measure(
    data: Path | None, retrieval: Path | None, held_out: Path | None, model: str, runs: Sequence[Path], max_length: int
) -> None:
    """Measure one of the tables, write the results and the table, and print the table."""
    if not (folder := held_out or retrieval):
        raise InputError("--retrieval or --held-out is missing: give a folder of retrieval sets")
    task, near_misses, sts = read_folder(folder), [], []
    if not held_out:
        near_misses, _ = read_tasks(downstream_folder(data), NEAR_MISSES, "dev")
        sts, _ = read_tasks(downstream_folder(data), suite("sts"), "test")
    baseline = without_model(task, near_misses)  # first, because it fails without the extra `peers`
    protocol = EvaluationProtocol(max_length=max_length)
    encoder, *trained = (load(str(name), max_length) for name in (model, *(run / LAST for run in runs)))

    def figures(to: EvaluatedModel, share: float) -> Figures:
        with moved(encoder, to, share):
            return figures_of(evaluate(encoder, [*near_misses, *sts, task], protocol))

    before = figures(encoder, 0.0)
    names = [str(read_json(run / SUMMARY)["settings"]["seed"]) for run in runs]
    seeds = {seed: figures(end, BLEND) for seed, end in zip(names, trained, strict=True)}
    others = {f"{share:g}": figures(trained[0], share) for share in (() if held_out else OTHER_SHARES)}
    ways = ways_to_search(task, encoder, trained[0])
    shown = page_table(baseline, before, [*seeds.values()], others)
    for found in (baseline, before, *seeds.values(), *others.values()):
        del found["per_query"]
    settings = {"model": Path(model).name, "blend": BLEND, "max_length": max_length}
    content = {"machine": machine(), "settings": settings, NO_MODEL: baseline, BEFORE: before, "seeds": seeds}
    content |= {"other shares, first run": others, "instead": ways}
    earlier = read_json(RESULTS) if RESULTS.is_file() else {}
    write_json(RESULTS, earlier | ({"held out": content} if held_out else content))
    write_between_marks(PAGE, [shown], "held out" if held_out else "search")
    print(shown, ways, sep="\n")


if __name__ == "__main__":
    sys.exit(
        script.run(
            __doc__,
            measure,
            data=script.DATA | {"required": False},
            retrieval=script.FOLDER | {"required": False, "help": "retrieval sets, such as FOLDER/retrieval"},
            held_out=script.FOLDER | {"required": False, "help": "retrieval sets of bench.held_out"},
            model={"help": "name or folder of the encoder before training"},
            runs=script.RUNS | {"required": True},
            max_length={"type": int, "default": 128, "help": "tokens of a text [128]"},
        )
    )
