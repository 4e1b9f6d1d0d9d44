"""A step on a card, without one: where its tensors lie, and that it waits for none; what ranks exchange."""

import contextlib
import copy

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from support.fake_tokens import BATCH, CPU, SENTENCES, SETTINGS, FakeTokens, fake_views
from train.config.run import Run
from train.encoder.encoder import Masking, load_encoder
from train.encoder.pooling import OF_TRAINING
from train.loop import trainer as trainers
from train.loop.data import BatchMaker, Plan
from train.loop.distributed import Ranks, StopConsensus, join_group
from train.loop.trainer import Trainer
from train.objective.registry import LOSSES, NOISES


def prepared(model, **settings):
    """A run, its encoder and plan, and the batches of its first steps."""
    run = Run(model=str(model), augment="una", **{**SETTINGS, **settings})
    encoder = load_encoder(run.model, run.dropout, run.seed, run.pooling, device="cuda", with_mlm=run.mlm_weight > 0)
    plan, row = Plan(np.arange(SENTENCES), BATCH, run.seed), LOSSES[run.loss]
    masking = Masking(run.seed, 103, 3000, (0,)) if run.mlm_weight else None
    views = fake_views(run.alpha, row.negative_views)
    maker = BatchMaker(views, 0, 1, rows_of_part=run.grad_cache, n_parts=1, multiple=8, masking=masking)
    return run, encoder, plan, [maker.make(*batch) for batch in list(plan.batches())[:STEPS]]


def train(device, run, encoder, plan, batches):
    """What each step computed, and the trainer."""
    trainer = Trainer(run, Ranks(0, 1, 0, device), copy.deepcopy(encoder), plan)
    return [trainer.step(batch.to(device)) for batch in batches], trainer


STEPS = 2
KINDS = [
    *({"loss": name, "gate_sigma": 4.0} for name in LOSSES),
    *({"pooling": name} for name in OF_TRAINING),
    *({"noise": name} for name in NOISES),
    *({"precision": precision, "grad_cache": grad_cache} for precision in ("fp32", "bf16") for grad_cache in (0, 5)),
    {"similarity_distillation": 1.0, "max_grad_norm": 0.1, "weight_decay": 0.1},
    {"precision": "bf16", "max_grad_norm": 0.1, "mlm_weight": 0.5},
]


@pytest.fixture
def card(monkeypatch):
    """The device "meta", whose tensors have no values: what would wait for one, or read a tensor of the host, fails.

    PyTorch's autocast, gradient scaler and fused AdamW refuse this device: their forms for a CPU take their place, so
    that fp16, whose scaler reads a value unless AdamW is fused, is tested in tests/gpu alone.
    """
    autocast, scaler, adamw = torch.autocast, torch.amp.GradScaler, torch.optim.AdamW
    monkeypatch.setattr(torch, "autocast", lambda device_type, *args, **named: autocast("cpu", *args, **named))
    monkeypatch.setattr(torch.amp, "GradScaler", lambda device, **named: scaler("cpu", **named))
    monkeypatch.setattr(torch.optim, "AdamW", lambda groups, lr, fused: adamw(groups, lr=lr))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
    return torch.device("meta")


@pytest.mark.parametrize("settings", KINDS, ids=lambda settings: "-".join(map(str, settings.values())))
def test_a_step_lies_on_the_card_and_waits_for_nothing(tiny_model, card, settings):
    steps, trainer = train(card, *prepared(tiny_model, **settings))
    results = [tensor for step in steps for tensor in (step.loss, step.cosines)]
    assert {tensor.device for tensor in (*results, *trainer.encoder.parameters())} == {card}
    assert all(step.loss.dtype == torch.float32 and not step.loss.ndim for step in steps)


FAULTS = {
    "item.. cannot be called": lambda views: views.sum().item(),
    "Tensor on device cpu is not on": lambda views: (views * torch.ones(views.shape[-1])).sum(),
    "nonzero": lambda views: views[views > 0].sum(),
    "Cannot copy out of": lambda views: float(views.detach().cpu().sum()),
}


@pytest.mark.parametrize("message", FAULTS)
def test_planted_faults_are_noticed(tiny_model, card, monkeypatch, message):
    compare = Trainer._compare

    def faulty(trainer, encoded, batch):
        step = compare(trainer, encoded, batch)
        return step._replace(loss=step.loss + 0.0 * FAULTS[message](encoded))

    monkeypatch.setattr(Trainer, "_compare", faulty)
    parts = prepared(tiny_model)
    with pytest.raises((RuntimeError, NotImplementedError), match=message):
        train(card, *parts)


def collectives_of(model, rank, world, **settings):
    """What a rank exchanges in two steps, the second with fewer sentences than ranks, an evaluation and a stop."""
    calls, averaging, exchanged = [], trainers.averaging_gradients, {name: getattr(dist, name) for name in EXCHANGES}

    def noted(name, value):
        calls.append((name, tuple(value.shape)))

    def averaged(bucket):
        noted("gradients", bucket.buffer())
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    def averaging_noted(encoder, ranks):
        model = averaging(encoder, ranks)
        model.register_comm_hook(None, lambda state, bucket: averaged(bucket))
        return model

    dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
    with pytest.MonkeyPatch.context() as patch:
        for name, exchange in exchanged.items():
            patch.setattr(dist, name, lambda *args, name=name, exchange=exchange: (
                noted(name, args[-1] if name == "all_gather" else args[0]), exchange(*args))[1])  # fmt: skip
        patch.setattr(trainers, "averaging_gradients", averaging_noted)
        run, encoder, plan, _ = prepared(model, **settings)
        ranks = Ranks(rank, world, rank, CPU)
        masking = Masking(run.seed, 103, 3000, (0,)) if run.mlm_weight else None
        maker = BatchMaker(fake_views(1, 2), rank, world, rows_of_part=run.grad_cache, masking=masking)
        trainer = Trainer(run, ranks, encoder, plan)
        for step, rows in enumerate((np.arange(world + 3), np.arange(3))):
            trainer.step(maker.make(step, 0, rows))
        with torch.no_grad():
            trainer.embed(FakeTokens(0).anchor_ids(range(5)))
        StopConsensus(ranks).now()
    dist.destroy_process_group()
    return calls


EXCHANGES = ("all_gather", "all_reduce")


@pytest.mark.parametrize("settings", [{}, {"grad_cache": 1, "precision": "bf16"}, {"mlm_weight": 0.5}], ids=str)
@pytest.mark.parametrize(("world", "ranks"), [(4, (0, 1, 3)), (256, (0, 255))])
def test_every_rank_takes_part_in_the_same_exchanges(tiny_model, world, ranks, settings):
    first, *others = [collectives_of(tiny_model, rank, world, **settings) for rank in ranks]
    names = [name for name, _ in first]
    assert names.count("all_gather") == 3 and names.count("gradients") >= 3 and names[-1] == "all_reduce"
    assert all(other == first for other in others)


def test_a_rank_that_skips_an_exchange_is_noticed(tiny_model, monkeypatch):
    step = Trainer.step

    def skip(trainer, batch):
        with trainer.model.no_sync() if trainer.ranks.rank == 2 and batch.step else contextlib.nullcontext():
            return step(trainer, batch)

    monkeypatch.setattr(Trainer, "step", skip)
    first, second, skipping = (collectives_of(tiny_model, rank, 4) for rank in range(3))
    assert first == second != skipping


def test_a_rank_takes_its_card_before_it_allocates_anything(monkeypatch):
    calls = []
    for name, value in {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "CUDA_VISIBLE_DEVICES": "6,7"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: calls.append(("set_device", device)))
    monkeypatch.setattr(dist, "init_process_group", lambda *how, **named: calls.append((how, named["device_id"])))
    ranks = join_group("cuda")
    assert calls == [("set_device", torch.device("cuda", 1)), (("cpu:gloo,cuda:nccl",), torch.device("cuda", 1))]
    assert ranks == Ranks(5, 8, 1, torch.device("cuda", 1))
