"""bench.search: the parts of the measurement that need no encoder."""

import numpy as np
import pytest
import torch

from bench.search import BEFORE, changed, moved, page_table, standardised, two_stages


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
    rows = page_table(before, seeds, {"0.5": {"checklist": 64.0, "faq": 52.0}}).splitlines()
    assert rows[0].startswith(f"| x 100 | {BEFORE} | `--blend 0.75` | change | `--blend 0.5` |")
    assert rows[2] == "| checklist | 60.0 | 68.0 |  | 64.0 |"
    mean, low, high = changed({"a": 0.2, "b": 0.8}, {"a": 0.3, "b": 0.85})
    assert (mean, low + high) == (pytest.approx(7.5), pytest.approx(15.0)) and low < 7.5 < high
    assert rows[3] == f"| faq | 50.0 | 56.0 | +7.5 ({low:+.1f} to {high:+.1f}) | 52.0 |"
