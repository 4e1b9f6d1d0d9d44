"""bench.search, bench.pairs and bench.held_out: the parts that need no encoder."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench import held_out, search
from bench.evidence.near_sets import Listed
from bench.pairs import halves
from bench.search import BEFORE, changed, moved, page_table, standardised, two_stages, without_model
from train.evaluation.tasks.near_miss import PairTask
from train.evaluation.tasks.retrieval import RetrievalSet, RetrievalTask, read_folder
from una_fast.errors import InputError


def test_two_stages_order_only_the_hits_near_the_best():
    first, second = np.array([[0.9, 0.86, 0.84, 0.1]]), np.array([[0.1, 0.5, 0.9, 0.99]])
    order = np.argsort(-two_stages(first, second))
    assert order.tolist() == [[1, 0, 2, 3]]


def test_scores_of_each_query_are_standardised():
    scores = standardised(np.array([[1.0, 2.0, 6.0], [4.0, 4.0, 4.0]]))
    assert scores[0].mean() == pytest.approx(0) and scores[0].std() == pytest.approx(1)
    assert scores[1].tolist() == [0, 0, 0]


class Model:
    """Stands for an encoder: one weight."""

    def __init__(self, weight: float) -> None:
        self.network = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.constant_(self.network.weight, weight)


def test_weights_are_moved_a_share_of_the_way_and_back():
    model, trained = Model(1.0), Model(3.0)
    with moved(model, trained, 0.75):
        assert model.network.weight.item() == 2.5
    assert (model.network.weight.item(), trained.network.weight.item()) == (1.0, 3.0)


def test_the_table_pairs_queries_and_averages_seeds():
    before = {"checklist": 60.0, "faq": 50.0, "per_query": {"faq": {"a": 0.2, "b": 0.8}}}
    seeds = [
        {"checklist": 66.0, "faq": 55.0, "per_query": {"faq": {"a": 0.3, "b": 0.8}}},
        {"checklist": 70.0, "faq": 57.0, "per_query": {"faq": {"a": 0.3, "b": 0.9}}},
    ]
    rows = page_table({"faq": 40.0}, before, seeds, {"0.5": {"checklist": 64.0, "faq": 52.0}}).splitlines()
    assert rows[0].startswith(f"| x 100 | no model | {BEFORE} | `--blend 0.75` | change | `--blend 0.5` |")
    assert rows[2] == "| checklist |  | 60.0 | 68.0 |  | 64.0 |"
    mean, low, high = changed({"a": 0.2, "b": 0.8}, {"a": 0.3, "b": 0.85})
    assert (mean, low + high) == (pytest.approx(7.5), pytest.approx(15.0)) and low < 7.5 < high
    assert rows[3] == f"| faq | 40.0 | 50.0 | 56.0 | +7.5 ({low:+.1f} to {high:+.1f}) | 52.0 |"


def a_set(pairs: dict[str, list[tuple[int, int]]]) -> RetrievalSet:
    """Return a set of six documents and four queries."""
    queries = ["a0", "a1", "b0", "c0"]
    gains = {"a0": {"d0": 1}, "a1": {"d1": 1}, "b0": {"d2": 1}, "c0": {"d3": 1}}
    return RetrievalSet("one", [f"d{i}" for i in range(6)], queries, queries, gains, pairs)


@pytest.mark.parametrize("seed", range(5))
def test_halves_keep_the_queries_of_a_topic_together(seed: int) -> None:
    one = a_set({"a0": [(0, 1)], "a1": [(1, 0)]})
    queries, firsts = halves(one, seed)
    assert sorted(queries[0] + queries[1]) == one.queries
    assert ("a0" in queries[0]) == ("a1" in queries[0])
    assert [[query for query in half if query != "a1"] for half in queries] == firsts
    assert len({str(halves(one, other)) for other in range(5)}) > 1


def test_held_out_sets_are_read_as_retrieval_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gains = {"p0": 2.0, "p1": 0.0}
    files: dict[str, list[dict[str, Any]]] = {
        "corpus_candidate.jsonl": [{"doc_id": "7", "text": "Zinc helps."}, {"doc_id": "8", "text": "It does not."}],
        "claims_dev.jsonl": [{"id": 1, "claim": "Zinc helps", "cited_doc_ids": [7, 99]}],
        "claims_train.jsonl": [{"id": 2, "claim": "Iron helps", "cited_doc_ids": [99]}],
        "corpus_antonym.jsonl": [{"doc_id": "p0", "text": "It rises."}, {"doc_id": "p1", "text": "It falls."}],
        "queries_antonym.jsonl": [
            {"query_id": "q", "query": "what rises", "graded_relevance": gains}
            | {"constraint_satisfying_doc_ids": ["p0"], "constraint_violating_doc_ids": ["p1"]}
        ],
    }
    sources = []
    for name, rows in files.items():
        content = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
        (tmp_path / name).write_bytes(content)
        sources.append(Listed(name, hashlib.sha256(content).hexdigest(), ""))
    monkeypatch.setattr(held_out, "SOURCES", sources)
    held_out.write_sets(tmp_path / "data", tmp_path)
    claims, antonyms = read_folder(tmp_path / "data" / "held_out").sets
    assert (claims.name, claims.queries, claims.gains) == ("scifact", ["1"], {"1": {"7": 1}})
    assert (antonyms.gains, antonyms.pairs) == ({"q": {"p0": 2}}, {"q": [(0, 1)]})
    (tmp_path / "claims_dev.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="its sha256 is"):
        held_out.write_sets(tmp_path / "data", tmp_path)


def test_baselines_need_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    one = a_set({"a0": [(0, 1)]})
    task = RetrievalTask("sets", [one.texts, one.documents], {"test": 4}, [one])
    monkeypatch.setattr(search, "bm25", lambda queries, documents: np.eye(len(queries), len(documents)))
    texts = [["a b c d", "a b c d", "a b c d"], ["d e f g", "a b c e", "f a g h"]]
    labels = np.array([True, False, False]), np.array(["", "number", "polarity"])
    found = without_model(task, [PairTask("qqp_near", texts, {"dev": 3}, *labels)])
    assert found["one"] == found["one, right above wrong"] == 100
    assert found["qqp_near, number"] == 100  # the near-miss changes fewer words
    assert found["qqp_near, polarity"] == found["qqp_near"] - 25 == 50  # as many: a tie
