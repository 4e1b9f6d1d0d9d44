"""--neighbours: the nearest sentences compared with plain loops, the rows of a step, the distillation, and the file."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from support.fake_tokens import CPU, FakeTokens, train
from support.staged import flip
from train.config import Run
from train.encoder.encoder import load_encoder
from train.loop.data import Plan, on_share
from train.neighbours import FILE, HIGHEST, draw_pool, embed, find_nearest, load_neighbours
from una_fast.errors import InputError
from una_fast.losses import neighbour_distillation


def test_the_nearest_sentence_is_another_one_and_not_a_duplicate(monkeypatch):
    monkeypatch.setattr("train.neighbours.BLOCK_ROWS", 7)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3))
    rows[11], rows[30] = rows[4], 2 * rows[4]  # duplicates
    unit = functional.normalize(torch.from_numpy(rows), dim=-1)
    cosines = (unit @ unit.T).numpy()
    for i, found in enumerate(find_nearest(unit).tolist()):
        others = [j for j in range(40) if j != i and cosines[i, j] <= HIGHEST]
        assert cosines[i, found] == max(cosines[i, others])
    assert find_nearest(unit[[4, 11, 30]]).tolist() == [-1, -1, -1]


def test_the_pool_has_frozen_random_numbers_of_its_own():
    """Other numbers would be a hidden new option; those of the data order would tie the pool to it."""
    assert draw_pool(np.arange(100), 5, 0).tolist() == [4, 15, 17, 33, 81]
    assert draw_pool(np.arange(100), 5, 1).tolist() == [14, 37, 43, 48, 80]


def test_the_second_half_of_a_step_contains_the_neighbours_of_the_first():
    rows = np.arange(3, 24)
    plan = Plan(rows, 8, 1, epochs=2, nearest=rows[::-1].copy())
    batches = [*plan.batches()]
    assert len(batches) == plan.n_steps == 12 and [len(batch) for *_, batch in batches[:6]] == [8] * 5 + [2]
    for epoch in (0, 1):
        halves = [np.split(batch, 2) for _, of, batch in batches if of == epoch]
        assert sorted(np.concatenate([own for own, _ in halves])) == rows.tolist()
        assert all((own + near == 26).all() for own, near in halves)
    again = [*plan.batches(7)]
    assert all((one == other).all() for (*_, one), (*_, other) in zip(again, batches[7:], strict=True))


def test_the_distillation_is_the_mean_squared_change_of_the_cosines_of_neighbours():
    views, start = torch.randn(3, 6, 4), torch.randn(2, 6, 4)
    now, before = ([functional.cosine_similarity(of[0, i], of[0, i + 3], 0) for i in range(3)] for of in (views, start))
    expected = sum(float(x - y) ** 2 for x, y in zip(now, before, strict=True)) / 3
    assert neighbour_distillation(views, start) == pytest.approx(expected)
    assert neighbour_distillation(start.repeat(2, 1, 1), start) == 0


def test_the_weight_of_the_distillation_reaches_the_steps(tiny_model):
    settings = {"loss": "margin", "alpha": 1, "neighbours": True}
    first, plain = (train(tiny_model, neighbour_distillation=w, **settings)[0] for w in (10.0, 0.0))
    assert first[0] > plain[0] and first[1:] != plain[1:]


def test_a_share_of_the_rows_drawn_by_seed_epoch_and_row_gets_the_edited_positive():
    made, plain = FakeTokens(1).token_ids, FakeTokens(0).token_ids
    rows = np.arange(400)

    def chosen(rows, epoch=0, seed=3, share=0.25):
        ids, own, other = (of(rows, epoch, 16) for of in (on_share(made, plain, share, seed), made, plain))
        is_made = (ids["input_ids"] == own["input_ids"]).all(1)
        for name, part in ids.items():
            assert torch.equal(part, torch.where(is_made[:, None], own[name], other[name]))
        return is_made.numpy()

    first = chosen(rows)
    assert 70 < first.sum() < 130
    assert (chosen(rows[::-1])[::-1] == first).all() and (chosen(rows[9:]) == first[9:]).all()
    assert (chosen(rows, epoch=1) != first).any() and (chosen(rows, seed=4) != first).any()
    assert on_share(made, plain, 1, 3) is made
    assert np.flatnonzero(chosen(np.arange(40))).tolist() == [1, 17, 20, 21, 24, 27, 28, 32]


def test_the_stored_neighbours_are_reused_unless_anything_differs(tiny_model, tmp_path, monkeypatch):
    run = Run(model=str(tiny_model), output=str(tmp_path), neighbours_pool=30, batch_size=8, max_length=16)
    encoder = load_encoder(run.model, 0.1, 0, "auto").train()
    tokens, rows = FakeTokens(0), np.arange(100, 150)
    found = load_neighbours(run, "corpus", tokens, rows, encoder, CPU)
    pool = draw_pool(rows, 30, run.seed)
    assert encoder.training and len({*pool}) == 30 and {*found.nearest} <= {*pool} and {*found.rows} <= {*rows}
    embeddings = embed(encoder, tokens, pool, 16, CPU)
    one = embed(encoder, tokens, pool[3:4], 16, CPU)
    assert torch.allclose(embeddings[3], one[0], atol=1e-6) and torch.allclose(embeddings.norm(dim=1), torch.ones(30))

    calls = []
    monkeypatch.setattr("train.neighbours.embed", lambda *a: calls.append(a) or embeddings[: len(a[2])])
    again = load_neighbours(run, "corpus", tokens, rows, encoder, CPU)
    assert not calls and again.digest() == found.digest() and (again.nearest == found.nearest).all()
    load_neighbours(run, "other corpus", tokens, rows, encoder, CPU)
    assert len(calls) == 1
    for changed in (replace(run, seed=1), replace(run, max_length=15), replace(run, neighbours_pool=29)):
        calls.clear()
        load_neighbours(changed, "other corpus", tokens, rows, encoder, CPU)
        load_neighbours(run, "other corpus", tokens, rows, encoder, CPU)
        assert len(calls) == 2, changed  # each replaces the other's file
    calls[1:] = []
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-30])
    load_neighbours(run, "other corpus", tokens, rows, encoder, CPU)
    assert len(calls) == 2
    content = (tmp_path / FILE).read_bytes()
    for bit in range(0, 8 * len(content), 71):  # the compression method, the header of an array, and all other parts
        flip(tmp_path / FILE, bit)
        assert load_neighbours(run, "other corpus", tokens, rows, encoder, CPU).digest() == found.digest()
        (tmp_path / FILE).write_bytes(content)
    monkeypatch.setattr("train.neighbours.embed", lambda *a: torch.ones(30, 2))
    with pytest.raises(InputError, match="--neighbours: 0 sentences of 30 have a neighbour"):
        load_neighbours(run, "third corpus", tokens, rows, encoder, CPU)
