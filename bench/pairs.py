"""Measure near-misses as further candidates for people who train on pairs of query and passage (docs/search.md).

    python -m bench.pairs --data FOLDER --retrieval FOLDER --model M [--seeds 0 1 2]

The topics of SET are divided into halves. M trains on the pairs of one half and is scored on the queries of the other,
against all documents of the set; then the halves change places. Queries that share documents are one topic, and only
the first of them is trained on, because the pairs of users rarely contain their contradictions. The other retrieval
sets and STS-B's dev part say what the training costs elsewhere. Results go to bench/results/pairs.json, and the table
to the page.
"""

from __future__ import annotations

import sys
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
from bench import script
from bench.report import table, write_between_marks
from bench.search import BEFORE, NO_MODEL, mean_per_query, shown_change, sides_of, without_model
from train.evaluation.tasks.registry import DevTask, downstream_folder, read_task
from train.evaluation.tasks.retrieval import NEGATION, RetrievalSet, RetrievalTask, read_folder, score_rankings, units
from train.record.environment import machine
from una_fast.integrations import add_negatives
from una_fast.storage.files import write_json

SET = "fever_symmetric"
PAIRS, STS = "pairs", "STS-B, dev part"
ARMS = (PAIRS, "+ passages", "+ queries", "+ mined", "+ mined, passages")
STEPS, BATCH, LEARNING_RATE = 60, 16, 2e-5
EDITS = 4  # of a text
PerQuery = dict[str, dict[str, float]]  # name of a figure -> query -> score; STS has one score, without a query


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


def scores_of(model: SentenceTransformer, one: RetrievalSet, documents: Sequence[str]) -> PerQuery:
    """Return the nDCG@10 of each query of a set, and the share of right passages above wrong ones."""
    rows = units(model.encode(one.texts)) @ units(model.encode(documents)).T
    ndcg = score_rankings(one, rows)["per_query"]
    negated = [query for query, text in zip(one.queries, one.texts, strict=True) if NEGATION.search(text)]
    right = {
        query: fmean(float(row[yes] > row[no]) for yes, no in one.pairs[query])
        for query, row in zip(one.queries, rows, strict=True)
        if one.pairs.get(query)
    }
    found = {one.name: ndcg, f"{one.name}, negated queries": {query: ndcg[query] for query in negated}}
    return found | ({f"{one.name}, right above wrong": right} if right else {})


def crossed(arm: str, task: RetrievalTask, sts: DevTask, name: str, seed: int) -> PerQuery:
    """Train and score an arm on both halves of the set. Return the mean score of each query."""
    one, documents = next(side for side in sides_of(task) if side[0].name == SET)
    places, texts = dict(zip(one.documents, documents, strict=True)), dict(zip(one.queries, one.texts, strict=True))
    queries, firsts = halves(one, seed)
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for tested, learned in zip(queries, reversed(firsts), strict=True):
        rows = [(texts[query], places[document]) for query in learned for document in one.gains[query]]
        pairs = Dataset.from_dict({"query": [row[0] for row in rows], "passage": [row[1] for row in rows]})
        model = trained(arm, name, pairs, seed)
        asked = [query for query in one.queries if query in {*tested}]
        part = replace(one, queries=asked, texts=[texts[query] for query in asked])
        scores = PerQuery()
        for other, passages in sides_of(task):
            scores |= scores_of(model, part if other is one else other, passages)
        scores[STS] = {"": sts.dev_score([model.encode(list(side)) for side in sts.texts])}
        for figure, by_query in scores.items():
            for query, score in by_query.items():
                found[figure][query].append(score)
    return {figure: {query: fmean(of) for query, of in by_query.items()} for figure, by_query in found.items()}


def percent(scores: Iterable[float]) -> float:
    """Return the mean, x 100."""
    return round(100 * fmean(scores), 2)


def rows_of(baseline: Mapping[str, float], found: Mapping[str, PerQuery]) -> list[list[str]]:
    """Return the rows of the table: means, then the changes from PAIRS with paired 95% intervals over queries.

    baseline: from `without_model`. found: scores by arm.
    """
    rows = []
    for name, queries in found[BEFORE].items():
        means = {arm: percent(found[arm][name].values()) for arm in (BEFORE, *ARMS)}
        cells = [f"{baseline[name]:.1f}" if name in baseline else "", *(f"{means[arm]:.1f}" for arm in (BEFORE, PAIRS))]
        if name == STS:
            rows.append([name, *cells, *(f"{means[arm] - means[PAIRS]:+.1f}" for arm in ARMS[1:])])
        else:
            changes = [shown_change(found[PAIRS][name], found[arm][name]) for arm in ARMS[1:]]
            rows.append([f"{name} ({len(queries)})", *cells, *changes])
    return rows


def measure(data: Path, retrieval: Path, model: str, seeds: Sequence[int]) -> None:
    """Train and score all arms, write the results and the page's table, and print the table."""
    task, sts = read_folder(retrieval), read_task(downstream_folder(data), "STSBenchmark", "dev")
    found = dict[str, PerQuery]()
    for arm in (BEFORE, *ARMS):
        runs = [crossed(arm, task, sts, model, seed) for seed in seeds]
        found[arm] = {name: mean_per_query([run[name] for run in runs]) for name in runs[0]}
        print(arm, {name: percent(of.values()) for name, of in found[arm].items()}, flush=True)
    baseline = without_model(task)
    del baseline["per_query"]
    shown = table(["x 100 (queries)", NO_MODEL, BEFORE, *ARMS], rows_of(baseline, found))
    means = {arm: {name: percent(of.values()) for name, of in scores.items()} for arm, scores in found.items()}
    settings = {"model": Path(model).name, "seeds": seeds, "steps": STEPS, "batch": BATCH}
    content = {"machine": machine(), "settings": settings, NO_MODEL: baseline, "means": means}
    write_json(script.RESULTS / "pairs.json", content)
    write_between_marks(script.DOCS / "search.md", [shown], "pairs")
    print(shown)


if __name__ == "__main__":
    sys.exit(
        script.run(
            __doc__,
            measure,
            data=script.DATA,
            retrieval=script.FOLDER | {"help": "retrieval sets, such as FOLDER/retrieval"},
            model={"help": "name or folder of the encoder to train"},
            seeds={"type": int, "nargs": "+", "default": [0, 1, 2], "help": "[0 1 2]"},
        )
    )
