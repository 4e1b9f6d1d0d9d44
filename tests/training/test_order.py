"""The order of an epoch without a permutation in memory: a uniform bijection of any size, another in every epoch."""

import itertools
import os
import signal
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.small_runs import assert_same_run, options, train_here
from train.steps import order
from train.steps.order import AllBut, Shuffled, epoch_order, shuffled
from train.steps.plan import Plan
from train.steps.trainer import Trainer
from una_fast.arrays import Ragged, row_bounds

LIMIT_OF_CHI_SQUARE = {5: 25.7, 23: 57.1, 119: 185.1}  # degrees of freedom -> the 0.9999 quantile


def keys(*seed: int) -> np.ndarray:
    return np.random.SeedSequence(seed).generate_state(order.ROUNDS, np.uint64)


@given(st.integers(1, 3_000), st.integers(0, 2**32))
def test_it_is_a_permutation_of_any_size(n: int, seed: int) -> None:
    assert sorted(shuffled(np.arange(n), n, keys(seed)).tolist()) == list(range(n))


@given(st.integers(1, 2**62), st.integers(0, 2**32), st.data())
def test_places_are_those_of_the_whole_and_below_n(n: int, seed: int, data: st.DataObject) -> None:
    positions = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=8, unique=True)))
    together = shuffled(positions, n, keys(seed))
    assert together.tolist() == [int(shuffled(positions[i : i + 1], n, keys(seed))[0]) for i in range(len(positions))]
    assert together.max() < n and len(set(together.tolist())) == len(positions)


@pytest.mark.parametrize("n", [3, 4, 5])
def test_every_order_of_a_few_rows_is_as_likely(n: int) -> None:
    keys = np.random.default_rng(0).integers(0, 2**64, (order.ROUNDS, 20_000, 1), dtype=np.uint64)
    bits = (n - 1).bit_length()
    places = order._feistel(np.arange(n, dtype=np.uint64)[None].repeat(20_000, 0), bits, keys)
    while (places >= n).any():
        places = np.where(places >= n, order._feistel(places, bits, keys), places)
    assert shuffled(np.arange(n), n, keys[:, 7, 0]).tolist() == places[7].tolist()
    found = Counter(map(tuple, places.tolist()))
    orders = list(itertools.permutations(range(n)))
    expected = len(places) / len(orders)
    assert sum((found[each] - expected) ** 2 / expected for each in orders) < LIMIT_OF_CHI_SQUARE[len(orders) - 1]


def test_neighbours_are_far_apart_in_many_rows() -> None:
    """Positions and places, and places of neighbours, have correlations of standard deviation 1 / sqrt(n)."""
    n = 100_003
    places = shuffled(np.arange(n), n, keys(5))
    assert abs(np.corrcoef(np.arange(n), places)[0, 1]) < 4 / np.sqrt(n)
    assert abs(np.corrcoef(places[1:], places[:-1])[0, 1]) < 4 / np.sqrt(n)
    assert np.bincount(places[: n // 2] * 16 // n, minlength=16).std() < 4 * np.sqrt(n / 32)


@given(st.sets(st.integers(0, 40)), st.integers(41, 60))
def test_rows_without_some(left_out: set[int], n: int) -> None:
    rows = AllBut(n, np.array(sorted(left_out), dtype=np.int64))
    expected = [row for row in range(n) if row not in left_out]
    assert len(rows) == len(expected)
    assert rows.take(np.arange(len(rows))).tolist() == expected


@given(st.lists(st.integers(0, 2), max_size=12), st.integers(1, 5))
def test_empty_rows(lengths: list[int], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("una_fast.arrays.ROWS_A_BLOCK", block)
        rows = Ragged(np.zeros(sum(lengths)), row_bounds(lengths))
        assert rows.empty_rows().tolist() == [i for i, n in enumerate(lengths) if not n]


def test_the_order_in_memory_stays_what_it_was() -> None:
    order_of_epoch_2 = Plan(np.arange(100, 112), 4, seed=7).order(2)
    assert order_of_epoch_2[:].tolist() == [
        106,
        100,
        102,
        104,
        103,
        109,
        101,
        105,
        107,
        111,
        108,
        110,
    ]
    assert Plan(AllBut(13, np.array([5])), 4, seed=7).order(2)[:5].tolist() == [7, 0, 2, 4, 3]


def test_above_the_size_an_epoch_is_each_row_once_and_another_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "LARGEST_IN_MEMORY", 10)
    plan = Plan(AllBut(25, np.array([3, 24])), 5, seed=3, epochs=2)
    assert isinstance(plan.order(0), Shuffled) and not isinstance(epoch_order(np.arange(10), 3, 0), Shuffled)
    steps = list(plan.batches())
    assert [len(rows) for _, _, rows in steps] == [5, 5, 5, 5, 3] * 2
    epochs = [np.concatenate([rows for _, e, rows in steps if e == epoch]).tolist() for epoch in (0, 1)]
    assert all(sorted(rows) == [r for r in range(24) if r != 3] for rows in epochs) and epochs[0] != epochs[1]
    for start in (1, 4, 7):
        for one, other in zip(steps[start:], plan.batches(start), strict=True):
            assert one[:2] == other[:2] and np.array_equal(one[2], other[2])
    assert epochs[0] != np.concatenate([rows for _, _, rows in Plan(plan.rows, 5, seed=4).batches()]).tolist()


def test_a_billion_rows_take_no_memory_and_a_stopped_run_goes_on_at_once() -> None:
    plan = Plan(AllBut(10**9, np.array([7])), 512, seed=3)
    step, _, rows = next(plan.batches(1_000_000))
    assert (step, len(rows), plan.n_steps) == (1_000_000, 512, 1_953_125)
    assert len(set(rows.tolist())) == 512 and rows.max() < 10**9


def test_a_stopped_run_over_many_rows_ends_with_the_same_bits(tmp_path, tiny_model, monkeypatch) -> None:
    monkeypatch.setattr(order, "LARGEST_IN_MEMORY", 10)
    whole = options(tmp_path, tiny_model, output=str(tmp_path / "whole"))
    parts = {**whole, "output": str(tmp_path / "parts")}
    assert train_here(whole).status == "finished"
    plain = Trainer.step

    def step(self, batch):
        if batch.step == 10:
            os.kill(os.getpid(), signal.SIGTERM)
        return plain(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", step)
        assert train_here(parts).status == "stopped"
    assert train_here({**parts, "resume": True}).status == "finished"
    assert_same_run(parts["output"], whole["output"])
