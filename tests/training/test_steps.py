"""Rows, views, batches, learning rates and weight decay of a step; whole steps compared with a plain training loop."""

import copy
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel
from transformers.optimization import get_scheduler

from support.fake_tokens import SETTINGS, FakeTokens, OneText, fake_views, make_trainer, train
from train.config import Run, make_run
from train.distributed import rank_share
from train.encoder.encoder import SentenceEncoder, load_encoder
from train.loop import trainer as trainers
from train.loop.data import Batch, BatchMaker, Plan, Views, cut_by_length, original_text, prefetched
from train.loop.trainer import adamw, learning_rate
from una_fast.errors import InputError
from una_fast.losses import pairs


class TestPlan:
    def test_every_epoch_contains_each_row_once_in_a_different_order(self):
        rows = np.arange(100, 123)
        steps = list(Plan(rows, 5, seed=3, epochs=2).batches())
        assert [step for step, _, _ in steps] == list(range(10))
        assert [epoch for _, epoch, _ in steps] == [0] * 5 + [1] * 5
        assert [len(batch) for _, _, batch in steps] == [5, 5, 5, 5, 3] * 2
        orders = [np.concatenate([batch for _, e, batch in steps if e == epoch]) for epoch in (0, 1)]
        assert all(sorted(order) == rows.tolist() for order in orders)
        assert not np.array_equal(*orders) and not np.array_equal(orders[0], rows)
        other = Plan(rows, 5, seed=4).order(0)
        assert not np.array_equal(orders[0], other)

    def test_the_order_is_that_of_earlier_versions(self):
        order_of_epoch_2 = Plan(np.arange(100, 112), 4, seed=7).order(2)
        assert order_of_epoch_2.tolist() == [106, 100, 102, 104, 103, 109, 101, 105, 107, 111, 108, 110]
        assert Plan(np.delete(np.arange(13), 5), 4, seed=7).order(2)[:5].tolist() == [7, 0, 2, 4, 3]

    @pytest.mark.parametrize("start", [1, 4, 5, 7, 10])
    def test_a_plan_that_starts_later_yields_the_same_rows(self, start):
        plan = Plan(np.arange(23), 5, seed=3, epochs=2)
        whole, rest = list(plan.batches()), list(plan.batches(start))
        assert len(rest) == 10 - start
        for one, other in zip(whole[start:], rest, strict=True):
            assert one[:2] == other[:2] and np.array_equal(one[2], other[2])

    def test_max_steps_only_shortens_a_run(self):
        assert Plan(np.arange(23), 5, 0, epochs=2, max_steps=7).n_steps == 7
        assert Plan(np.arange(23), 5, 0, epochs=2, max_steps=70).n_steps == 10

    @pytest.mark.parametrize(("n", "world"), [(8, 3), (3, 4), (0, 2), (64, 1)])
    def test_rank_shares_are_consecutive_and_even(self, n, world):
        parts = [list(range(n))[rank_share(n, rank, world)] for rank in range(world)]
        assert [row for part in parts for row in part] == list(range(n))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


class ByEpoch(FakeTokens):
    """Negatives that differ in every epoch."""

    def token_ids(self, rows, epoch=0, max_length=32):
        return self.anchor_ids(rows + 10_000 * (epoch + 1), max_length)


class TestViews:
    rows = np.array([4, 0, 9])

    def ids(self, views):
        return [view["input_ids"] for view in views]

    def test_the_positive_is_the_paraphrase_or_the_sentence_itself(self):
        tokens = FakeTokens(0)
        views = Views(original_text(tokens), original_text(tokens, 100), None, 16, 5, 2)
        anchors, positives = self.ids(views.of(0, 0, self.rows))
        for ids, rows in ((anchors, self.rows), (positives, self.rows + 100)):
            assert torch.equal(ids, tokens.anchor_ids(rows, 16)["input_ids"])
        assert torch.equal(*self.ids(replace(views, positive=None).of(0, 0, self.rows)))

    @pytest.mark.parametrize("negative_views", [0, 1, 2])
    def test_every_alpha_th_step_has_negatives(self, negative_views):
        views = Views(original_text(FakeTokens(0)), None, ByEpoch(1).token_ids, 16, 3, negative_views)
        counts = [len(views.of(step, 0, self.rows)) for step in range(7)]
        assert counts == [2 + negative_views, 2, 2] * 2 + [2 + negative_views]
        assert len(replace(views, alpha=0).of(0, 0, self.rows)) == 2

    def test_negatives_depend_only_on_epoch_and_row(self):
        views = Views(original_text(FakeTokens(0)), None, ByEpoch(1).token_ids, 16, 1, 2)
        first, again, later = (self.ids(views.of(step, epoch, self.rows)) for step, epoch in ((0, 0), (7, 0), (7, 1)))
        assert torch.equal(first[2], again[2]) and torch.equal(first[2], first[3])
        assert not torch.equal(first[2], later[2]) and torch.equal(first[0], later[0])


@pytest.mark.parametrize("world", [1, 3, 8])
@pytest.mark.parametrize("settings", [{"n_parts": 1}, {"n_parts": 4, "multiple": 8}, {"rows_of_part": 3}])
def test_batches_contain_every_view_of_every_row_once(world, settings):
    """However a batch is cut into parts, `positions` finds the views of the rank's sentences in them."""
    rows, views = np.array([7, 3, 11, 5, 2]), fake_views(1, 2)
    whole = [view["input_ids"] for view in views.of(0, 0, rows)]
    for rank in range(world):
        batch = BatchMaker(views, rank, world, **settings).make(0, 2, rows)
        assert (batch.step, batch.n_views) == (0, 4)
        assert np.array_equal(batch.rows, rows)
        lines = [line[line > 0] for part in batch.parts for line in part["input_ids"]]
        mine = rank_share(5, rank, world)
        wanted = [ids for view in whole for ids in view[mine]]
        assert len(batch.positions) == len(wanted)
        for position, ids in zip(batch.positions, wanted, strict=True):
            assert torch.equal(lines[position], ids[ids > 0])
        if "rows_of_part" in settings:
            assert max(len(part["input_ids"]) for part in batch.parts) <= 3
        multiple = settings.get("multiple", 1)
        for part in batch.parts:
            longest = int(part["attention_mask"].sum(1).max())
            assert part["input_ids"].shape[1] == -(-longest // multiple) * multiple


class TestPrefetched:
    plan = Plan(np.arange(9), 2, seed=3, epochs=2)

    def test_prefetched_batches_follow_the_plan(self):
        ahead = prefetched(self.plan.batches(2), lambda step, epoch, rows: (step, epoch, rows.tolist()))
        assert [*ahead] == [(step, epoch, rows.tolist()) for step, epoch, rows in self.plan.batches(2)]

    def test_an_error_in_the_thread_follows_the_batches_before_it(self):
        def make(step, epoch, rows):
            if step == 3:
                raise InputError("a file is gone")
            return step

        taken = []
        with pytest.raises(InputError, match="^a file is gone$"):
            for step in prefetched(self.plan.batches(), make):
                taken.append(step)
        assert taken == [0, 1, 2]

    def test_closing_ends_the_thread(self):
        ahead = prefetched(self.plan.batches(), lambda step, epoch, rows: step)
        assert next(ahead) == 0
        ahead.close()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("batches")]


def test_a_batch_moves_to_the_gpu_in_one_asynchronous_copy(monkeypatch):
    copies = []

    class Pinned:
        """Replaces a tensor in pinned memory, which needs a GPU."""

        def __init__(self, tensor):
            self.tensor = tensor

        def to(self, device, non_blocking):
            copies.append((device.type, non_blocking))
            return self.tensor.clone()

    def tensors(batch):
        return [*(ids for part in batch.parts for ids in part.values()), batch.positions]

    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: Pinned(tensor))
    batch = BatchMaker(fake_views(1, 1), 0, 1, n_parts=2).make(0, 0, np.arange(6))
    moved = batch.to(torch.device("meta"))
    assert copies == [("meta", True)] and moved.step == batch.step
    assert all(torch.equal(*pair) for pair in zip(tensors(moved), tensors(batch), strict=True))


def test_steps_equal_those_of_a_plain_training_loop(tiny_model):
    """Whole steps, with negatives and a smaller last batch, equal a plain forward pass and torch's AdamW."""
    run = Run(model=str(tiny_model), augment="una", epochs=2, **SETTINGS)
    trainer, maker = make_trainer(run, sentences=19)
    encoder, views = trainer.encoder, fake_views(run.alpha, 2)
    backbone = AutoModel.from_pretrained(tiny_model, add_pooling_layer=False)
    head = torch.nn.Linear(32, 32)
    own = {name.split(".")[-1]: weight for name, weight in encoder.state_dict().items() if "backbone" not in name}
    head.load_state_dict({"weight": own["weight"].clone(), "bias": own["bias"].clone()})
    optimiser = torch.optim.AdamW([*backbone.parameters(), *head.parameters()], weight_decay=0.0)

    def embed(ids):
        kept = ids[ids > 0][None]
        return torch.tanh(head(backbone(input_ids=kept).last_hidden_state[0, 0]))

    backbone.eval()  # no dropout
    for step, epoch, rows in trainer.plan.batches():
        loss = trainer.step(maker.make(step, epoch, rows)).loss.item()
        texts = [view["input_ids"] for view in views.of(step, epoch, rows)]
        anchors, positives, *negatives = [torch.stack([embed(ids) for ids in view]) for view in texts]
        optimiser.param_groups[0]["lr"] = 3e-4 * (1 - step / 6)
        optimiser.zero_grad()
        plain = pairs(torch.stack([anchors, positives, *negatives]), 0.05)  # see test_losses
        plain.backward()
        optimiser.step()
        assert loss == pytest.approx(plain.item(), abs=2e-5)
    for name, weight in backbone.state_dict().items():
        if not name.endswith("key.bias"):  # see NOISE in test_ddp.py
            trained = encoder.backbone.state_dict()[name]
            assert (trained - weight).norm() <= 1e-4 * weight.norm(), name


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_the_norm_of_unscaled_gradients_is_clipped(tiny_model, precision):
    """After the first step, AdamW's first moment is a tenth of the gradient."""
    run = Run(model=str(tiny_model), augment="una", **{**SETTINGS, "precision": precision, "max_grad_norm": 0.01})
    trainer, maker = make_trainer(run)
    trainer.step(maker.make(*next(iter(trainer.plan.batches()))))
    moments = [state["exp_avg"].flatten() for state in trainer.optimizer.state.values()]
    assert torch.cat(moments).norm().item() == pytest.approx(0.1 * 0.01, rel=1e-3)


def test_the_initial_encoder_embeds_without_dropout(tiny_model, monkeypatch):
    seen = []
    monkeypatch.setattr(trainers, "similarity_distillation", lambda views, start: seen.append(start) or views.sum())
    settings = {**SETTINGS, "dropout": 0.5, "similarity_distillation": 1.0}
    trainer, maker = make_trainer(Run(model=str(tiny_model), augment="una", **settings))
    batch = maker.make(*next(iter(trainer.plan.batches())))
    trainer.step(batch)
    embedded = load_encoder(str(tiny_model), 0.0, trainer.run.seed)(batch.parts).detach()
    views = embedded[batch.positions].unflatten(0, (batch.n_views, -1))
    torch.testing.assert_close(seen[0], torch.stack([views[0], views[-1]]))


@pytest.mark.parametrize("grad_cache", [0, 2, 4])
def test_every_text_of_a_step_has_another_dropout_mask(tiny_model, grad_cache):
    """Each part of --grad-cache has its own seed; with the same seed, its masks would be those of the other parts."""
    run = Run(model=str(tiny_model), augment="una", **{**SETTINGS, "dropout": 0.1, "grad_cache": grad_cache})
    trainer, _ = make_trainer(run)
    maker = BatchMaker(fake_views(0, 0, kind=OneText), 0, 1, rows_of_part=grad_cache)
    cosines = trainer.step(maker.make(0, 0, np.arange(8))).cosines[0].tolist()
    assert len({round(cosine, 6) for cosine in cosines}) == 8 and max(cosines) < 0.999


def overflowing(trainer, batch):
    """Take a step whose loss is scaled far above the largest number of fp16."""
    trainer.scaler._scale.fill_(2.0**30)
    return trainer.step(batch)


def test_a_step_that_overflows_in_fp16_is_skipped(tiny_model):
    """The weights and the moments stay as they were, the scale is halved, and the next steps train again."""
    run = Run(model=str(tiny_model), augment="una", epochs=2, **{**SETTINGS, "precision": "fp16", "max_grad_norm": 1.0})
    trainer, maker = make_trainer(run)
    batches = [maker.make(*batch) for batch in trainer.plan.batches()]
    for batch in batches[:3]:
        trainer.step(batch)
    before = copy.deepcopy(trainer.state())
    step, after = overflowing(trainer, batches[3]), trainer.state()
    assert step.loss.isfinite() and after["scaler"]["scale"] == 2.0**29
    assert all(torch.equal(weights, after["model"][name]) for name, weights in before["model"].items())
    kept = [[state[name] for state in found["optimizer"]["state"].values()] for found in (before, after)
            for name in ("step", "exp_avg", "exp_avg_sq")]  # fmt: skip
    assert all(torch.equal(*pair) for i in range(3) for pair in zip(kept[i], kept[i + 3], strict=True))
    trainer.scaler._scale.fill_(2.0**10)
    trainer.step(batches[4])
    assert any(not torch.equal(weights, trainer.state()["model"][name]) for name, weights in before["model"].items())


def test_cosines_are_of_anchor_with_positive_and_with_negative(tiny_model):
    _, trainer = train(tiny_model)
    views = torch.randn(4, 5, 32, generator=torch.Generator().manual_seed(0))
    for n_views in (4, 2):
        batch = Batch(0, np.arange(5), n_views, [], torch.arange(5 * n_views))
        step = trainer._compare(views[:n_views].flatten(0, 1), batch)
        expected = torch.cosine_similarity(views[:1], views[1 : min(n_views, 3)], dim=-1)
        torch.testing.assert_close(step.cosines, expected)


class PaddedLeft(FakeTokens):
    """The same token ids, padded on the left."""

    def anchor_ids(self, rows, max_length=32):
        batch = super().anchor_ids(rows, max_length)
        order = batch["attention_mask"].argsort(dim=1, stable=True)  # padding first
        return {name: ids.gather(1, order) for name, ids in batch.items()}


def test_parts_contain_the_same_tokens_for_both_padding_sides():
    rows = np.arange(16)
    for multiple in (1, 12):  # 12 makes the columns wider than the batch
        right, left = (
            BatchMaker(fake_views(1, 1, max_length=16, kind=kind), 0, 1, n_parts=3, multiple=multiple).make(0, 0, rows)
            for kind in (FakeTokens, PaddedLeft)
        )
        assert torch.equal(right.positions, left.positions)
        for one, other in zip(right.parts, left.parts, strict=True):
            assert one["input_ids"].shape == other["input_ids"].shape
            masks = one["attention_mask"].bool(), other["attention_mask"].bool()
            assert torch.equal(one["input_ids"][masks[0]], other["input_ids"][masks[1]])
            assert masks[1][:, -1].all() and torch.equal(masks[0].sum(1), masks[1].sum(1))


def test_left_padding_of_texts_with_one_token_is_removed():
    """A decoder's tokenizer adds no special tokens, so a row can be a single token."""
    mask = torch.tensor([[0, 0, 1], [0, 0, 1]])
    parts, _ = cut_by_length({"input_ids": 7 * mask, "attention_mask": mask}, len(mask))
    assert [part["input_ids"].tolist() for part in parts] == [[[7], [7]]]


SIZES = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
PADDING = 1


def padded(rows, side="right"):
    """Make a batch of rows of ids, padded on one side."""
    width = max(map(len, rows))
    pads = [[PADDING] * (width - len(row)) for row in rows]
    ids = torch.tensor([pad + row if side == "left" else row + pad for row, pad in zip(rows, pads, strict=True)])
    return {"input_ids": ids, "attention_mask": (ids != PADDING).long()}


# not BERT on the left: it numbers the positions of a part from its first column on
@pytest.mark.parametrize(("kind", "side"), [("bert", "right"), ("roberta", "right"), ("roberta", "left")])
def test_a_batch_in_parts_gives_the_embeddings_and_gradients_of_the_whole_batch(kind, side):
    torch.manual_seed(0)
    backbone = AutoModel.from_config(AutoConfig.for_model(kind, **SIZES, pad_token_id=PADDING))
    encoder = SentenceEncoder(backbone, seed=0).eval()
    generator = torch.Generator().manual_seed(0)
    rows = [torch.randint(5, 50, (length,), generator=generator).tolist() for length in (3, 4, 4, 6, 9)]
    weight = torch.randn(len(rows), SIZES["hidden_size"], generator=generator)
    results, gradients = [], []
    for parts in ([rows], [rows[:2], rows[2:4], rows[4:]]):
        encoder.zero_grad()
        results.append(encoder([padded(part, side) for part in parts]))
        (results[-1] * weight).sum().backward()
        gradients.append({name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None})
    torch.testing.assert_close(results[0], results[1], rtol=1e-5, atol=1e-6)
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], rtol=1e-4, atol=1e-6, msg=name)


VALUES = {"corpus": "c.txt", "model": "m", "output": "o", "learning_rate": 1e-3}
NAMES = {"linear": "linear", "cosine": "cosine", "constant": "constant_with_warmup"}


@pytest.mark.parametrize("schedule", NAMES)
@pytest.mark.parametrize(("warmup_steps", "n_warmup"), [(0, 0), (3, 3), (0.25, 5), (0.01, 1)])
def test_learning_rates_equal_those_of_transformers(schedule, warmup_steps, n_warmup):
    run = make_run({**VALUES, "schedule": schedule, "warmup_steps": warmup_steps})
    optimizer = torch.optim.AdamW([nn.Parameter(torch.zeros(1))], lr=1e-3)
    theirs = get_scheduler(NAMES[schedule], optimizer, n_warmup, 20)
    for step in range(20):
        assert learning_rate(run, step, 20) == pytest.approx(theirs.get_last_lr()[0], rel=1e-12)
        optimizer.step()
        theirs.step()


class Scale(nn.Module):
    """A normalisation that is not a LayerNorm, with a bias for each of three heads."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(3)), nn.Parameter(torch.zeros(3, 1))


@pytest.mark.parametrize("norm", [nn.LayerNorm(3), Scale()])
def test_biases_and_normalisations_do_not_decay(norm):
    model = nn.Sequential(nn.Linear(2, 3), norm, nn.Linear(3, 1))
    model[2].bias.requires_grad_(False)
    groups = adamw(make_run({**VALUES, "weight_decay": 0.1}), model).param_groups
    (decayed, others) = ([tuple(weight.shape) for weight in group["params"]] for group in groups)
    assert decayed == [(3, 2), (1, 3)] and others == [(3,), (3,), tuple(norm.bias.shape)]
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0]
