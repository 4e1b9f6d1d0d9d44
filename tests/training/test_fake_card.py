"""A step on a card, without one: where its tensors lie, what it waits for, and that it computes what a CPU does."""

import contextlib
import copy

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from support.fake_card import CARD, fake_card
from support.fake_tokens import BATCH, CPU, SENTENCES, SETTINGS, FakeTokens, fake_views
from train.config.run import Run
from train.encoder.encoder import Masking, load_encoder
from train.encoder.pooling import OF_TRAINING
from train.loop import trainer as trainers
from train.loop.data import BatchMaker, Plan
from train.loop.distributed import Ranks, StopConsensus, join_group
from train.loop.trainer import Trainer
from train.objective.registry import LOSSES, NOISES
from train.record.metrics import LATE_STEPS, AsyncLossReader


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
    *({"precision": precision, "grad_cache": 5} for precision in ("fp32", "bf16", "fp16")),
    {"precision": "bf16"},
    {"similarity_distillation": 1.0, "max_grad_norm": 0.1, "weight_decay": 0.1},
    {"precision": "fp16", "max_grad_norm": 0.1, "mlm_weight": 0.5},
]


@pytest.mark.parametrize("settings", KINDS, ids=lambda settings: "-".join(map(str, settings.values())))
def test_a_step_lies_on_the_card_and_waits_for_nothing(tiny_model, settings):
    parts = prepared(tiny_model, **settings)
    on_cpu, _ = train(CPU, *parts)
    with fake_card() as (findings, kernels):
        on_card, trainer = train(CARD, *parts)
        assert {step.loss.device for step in on_card} == {CARD} and {step.cosines.device for step in on_card} == {CARD}
        assert {weight.device for weight in trainer.encoder.parameters()} == {CARD}
        state = trainer.optimizer.state.values()
        assert {value.device for entry in state for value in entry.values()} == {CARD}
    assert not findings and len(kernels) > 100
    assert [step.cosines.shape for step in on_card] == [step.cosines.shape for step in on_cpu]
    assert all(step.loss.dtype == torch.float32 and not step.loss.ndim for step in on_card)
    assert [float(step.loss) for step in on_card] == pytest.approx([float(step.loss) for step in on_cpu], rel=2e-2)


def test_the_loss_is_read_late_by_one_copy_a_step(tiny_model):
    parts = prepared(tiny_model)
    with fake_card() as (findings, _):
        steps, _ = train(CARD, *parts)
        findings.clear()
        reader = AsyncLossReader(CARD)
        for step in steps * LATE_STEPS:
            reader.push(step.loss, {"step": 0}, step.cosines)
        assert findings == ["a copy to the host"] * len(steps * LATE_STEPS)
        assert len(list(reader.due())) == len(steps * LATE_STEPS) - LATE_STEPS
        assert set(findings) == {"a copy to the host"}


FAULTS = {
    "aten::_local_scalar_dense waits for the card": lambda views: views.sum().item(),
    "aten::mul reads a tensor of the host": lambda views: (views * torch.ones(views.shape[-1])).sum(),
    "aten::index waits for the card": lambda views: views[views > 0].sum(),
    "a list as an index makes a tensor on the host": lambda views: views[[0, 1]].sum(),
    "a copy to the host, which waits": lambda views: float(views.detach().cpu().sum()),
}


@pytest.mark.parametrize("finding", FAULTS)
def test_planted_faults_are_noticed(tiny_model, monkeypatch, finding):
    compare = Trainer._compare

    def faulty(trainer, encoded, batch):
        step = compare(trainer, encoded, batch)
        return step._replace(loss=step.loss + 0.0 * FAULTS[finding](encoded))

    monkeypatch.setattr(Trainer, "_compare", faulty)
    parts = prepared(tiny_model)
    with fake_card() as (findings, _):
        train(CARD, *parts)
    assert finding in findings


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
