"""Measure near-misses as further candidates for people who train on pairs of query and passage (docs/search.md).

    python -m bench.pairs --data FOLDER --retrieval FOLDER --model M [--seeds 0 1 2]

The topics of SET are divided into halves. M trains on the pairs of one half and is scored on the queries of the other,
against all documents of the set; then the halves change places. Queries that share documents are one topic, and only
the first of them is trained on, because the pairs of users rarely contain their contradictions. The other retrieval
sets and STS-B's dev part say what the training costs elsewhere. Results go to bench/results/pairs.json, and the table
to the page.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import numpy as np
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.util import mine_hard_negatives

import una_fast
from bench.report import table, write_between_marks
from bench.search import BEFORE, NO_MODEL, changed, without_model
from train.evaluation.scoring import read_tasks
from train.evaluation.tasks.registry import DevTask, downstream_folder
from train.evaluation.tasks.retrieval import NEGATION, RetrievalSet, read_folder, score_rankings, units
from train.record.environment import machine
from una_fast.integrations import add_negatives
from una_fast.storage.files import write_json

RESULTS = Path(__file__).with_name("results") / "pairs.json"
PAGE = Path(__file__).parents[1] / "docs" / "search.md"
SET = "fever_symmetric"
PAIRS = "pairs"
ARMS = (PAIRS, "+ passages", "+ queries", "+ mined", "+ mined, passages")
STEPS, BATCH, LEARNING_RATE = 60, 16, 2e-5
EDITS = 4  # of a text
PerQuery = dict[str, dict[str, float]]  # name of a figure -> query -> score


def halves(one: RetrievalSet, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Divide the topics of a set at random. Return the queries of both halves, and the first query of each topic."""
    topics = defaultdict(list)
    for query in one.queries:
        pairs = [place for pair in one.pairs.get(query, ()) for place in pair]
        topics[frozenset(pairs or one.gains[query])].append(query)
    chosen = np.random.default_rng(seed).permutation(len(topics)) % 2
    found = [[topic for topic, half in zip(topics.values(), chosen, strict=True) if half == side] for side in (0, 1)]
    return [[*chain(*half)] for half in found], [[topic[0] for topic in half] for half in found]


def train_sets(arm: str, pairs: Dataset, model: SentenceTransformer) -> dict[str, Dataset]:
    """Return the datasets that an arm trains on. pairs: the columns query and passage."""
    near, found = una_fast.NearMisses(), {PAIRS: pairs}
    if "passages" in arm:
        found["passages"] = add_negatives(pairs, near, num_negatives=EDITS, of="positive")
    if "queries" in arm:  # the passage is the anchor, and an edited query its negative
        edited = add_negatives(pairs, near, num_negatives=EDITS, of="anchor")
        found["queries"] = edited.select_columns(["passage", "query", "negative"])
    if "mined" in arm:
        found["mined"] = mine_hard_negatives(pairs, model, num_negatives=1, verbose=False)
    return found


def trained(arm: str, name: str, pairs: Dataset, seed: int) -> SentenceTransformer:
    """Train the model `name` on pairs as an arm does."""
    model = SentenceTransformer(name, device="cpu")
    if arm == BEFORE:
        return model
    with TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            folder, max_steps=STEPS, per_device_train_batch_size=BATCH, learning_rate=LEARNING_RATE, warmup_steps=0.1,
            batch_sampler="no_duplicates", seed=seed, use_cpu=True, save_strategy="no", report_to=[], disable_tqdm=True,
            logging_strategy="no",
        )  # fmt: skip
        sets, loss = train_sets(arm, pairs, model), MultipleNegativesRankingLoss(model)
        SentenceTransformerTrainer(model, arguments, train_dataset=sets, loss=loss).train()
    return model


def scores_of(model: SentenceTransformer, one: RetrievalSet, documents: Sequence[str], queries: set[str]) -> PerQuery:
    """Return the nDCG@10 and the share of right passages above wrong ones of some queries of a set."""
    chosen = [(query, text) for query, text in zip(one.queries, one.texts, strict=True) if query in queries]
    part = replace(one, queries=[query for query, _ in chosen], texts=[text for _, text in chosen])
    rows = units(model.encode(part.texts)) @ units(model.encode(documents)).T
    found = {one.name: score_rankings(part, rows)["per_query"]}
    negated = {query for query, text in chosen if NEGATION.search(text)}
    right = {
        query: fmean(float(row[yes] > row[no]) for yes, no in one.pairs[query])
        for query, row in zip(part.queries, rows, strict=True)
        if one.pairs.get(query)
    }
    ndcg = found[one.name]
    found[f"{one.name}, negated queries"] = {query: ndcg[query] for query in ndcg if query in negated}
    return found | ({f"{one.name}, right above wrong": right} if right else {})


def crossed(arm: str, options: argparse.Namespace, seed: int) -> tuple[PerQuery, float]:
    """Train and score an arm on both halves of the set. Return the score of each query, and STS-B's."""
    task = read_folder(options.retrieval)
    sets = {one.name: (one, documents) for one, documents in zip(task.sets, task.texts[1::2], strict=True)}
    (sts,), _ = read_tasks(downstream_folder(options.data), ["STSBenchmark"], "dev")
    assert isinstance(sts, DevTask)
    one, documents = sets[SET]
    places, texts = dict(zip(one.documents, documents, strict=True)), dict(zip(one.queries, one.texts, strict=True))
    queries, firsts = halves(one, seed)
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    similarity = []
    for tested, learned in zip(queries, reversed(firsts), strict=True):
        rows = [(texts[query], places[document]) for query in learned for document in one.gains[query]]
        pairs = Dataset.from_dict({"query": [row[0] for row in rows], "passage": [row[1] for row in rows]})
        model = trained(arm, options.model, pairs, seed)
        for other, passages in sets.values():
            asked = set(tested if other is one else other.queries)
            for name, scores in scores_of(model, other, passages, asked).items():
                for query, score in scores.items():
                    found[name][query].append(score)
        embeddings = [model.encode(list(side)) for side in sts.texts]
        similarity.append(sts.dev_score(embeddings))
    return {name: {query: fmean(of) for query, of in scores.items()} for name, scores in found.items()}, fmean(
        similarity
    )


def over_seeds(seeds: Sequence[PerQuery]) -> PerQuery:
    """Return the mean over seeds of each query's scores."""
    return {name: {query: fmean(seed[name][query] for seed in seeds) for query in of} for name, of in seeds[0].items()}


def percent(scores: Iterable[float]) -> float:
    """Return the mean, x 100."""
    return round(100 * fmean(scores), 2)


def rows_of(
    baseline: Mapping[str, float], found: Mapping[str, PerQuery], similarity: Mapping[str, float]
) -> list[list[str]]:
    """Return the rows of the table: means, then the changes from PAIRS with paired 95% intervals over queries.

    baseline: from `without_model`. found: scores by arm. similarity: STS-B's by arm.
    """
    rows = []
    for name, queries in found[BEFORE].items():
        cells = [f"{baseline[name]:.1f}", *(f"{percent(found[arm][name].values()):.1f}" for arm in (BEFORE, PAIRS))]
        changes = [changed(found[PAIRS][name], found[arm][name]) for arm in ARMS[1:]]
        cells += [f"{middle:+.1f} ({low:+.1f} to {high:+.1f})" for middle, low, high in changes]
        rows.append([f"{name} ({len(queries)})", *cells])
    cells = ["", *(f"{100 * similarity[arm]:.1f}" for arm in (BEFORE, PAIRS))]
    cells += [f"{100 * (similarity[arm] - similarity[PAIRS]):+.1f}" for arm in ARMS[1:]]
    return [*rows, ["STS-B, dev part", *cells]]


def main() -> None:
    """Train and score all arms, write the results and the page's table, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--retrieval", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    found, similarity = dict[str, PerQuery](), dict[str, float]()
    for arm in (BEFORE, *ARMS):
        runs = [crossed(arm, options, seed) for seed in options.seeds]
        found[arm], similarity[arm] = over_seeds([run for run, _ in runs]), fmean(sts for _, sts in runs)
        print(arm, {name: percent(of.values()) for name, of in found[arm].items()}, similarity[arm], flush=True)
    baseline = without_model(read_folder(options.retrieval))
    shown = table(["x 100 (queries)", NO_MODEL, BEFORE, *ARMS], rows_of(baseline, found, similarity))
    means = {arm: {name: percent(of.values()) for name, of in scores.items()} for arm, scores in found.items()}
    settings = {"model": Path(options.model).name, "seeds": options.seeds, "steps": STEPS, "batch": BATCH}
    write_json(
        RESULTS, {"machine": machine(), "settings": settings, NO_MODEL: baseline, "means": means, "STS-B": similarity}
    )
    write_between_marks(PAGE, [shown], "pairs")
    print(shown)


if __name__ == "__main__":
    main()
