"""GPU behaviour tested without a GPU: tensor devices, waits of the host, collectives, and running out of memory."""

import copy
import sys
from functools import cache, partial
from itertools import zip_longest
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from transformers import BertConfig

from bench.training.memory import fake_batch, fake_trainer
from support.fake_tokens import BATCH, CPU, SETTINGS, FakeTokens, make_trainer
from support.small_runs import options, train_here
from train.config import Run
from train.distributed import Ranks, StopConsensus, join_group, process_group
from train.encoder.encoder import SentenceEncoder, load_encoder
from train.encoder.pooling import OF_TRAINING
from train.loop.telemetry import LATE_STEPS, StepReader
from train.loop.trainer import Trainer
from train.losses import LOSSES
from una_fast.errors import InputError

STEPS = 2
GPU = torch.device("meta")


class Autocast(TorchFunctionMode):
    """torch.autocast, which refuses the device "meta": products and attention compute in `dtype`, a norm in fp32."""

    def __init__(self, device_type, dtype, enabled=True):
        super().__init__()
        self.half = dtype if enabled else torch.float32

    def __torch_function__(self, function, types, args=(), kwargs=None):
        dtypes = {functional.linear: self.half, torch.matmul: self.half, functional.layer_norm: torch.float32}
        dtypes |= {functional.scaled_dot_product_attention: self.half}
        if dtype := dtypes.get(function):
            cast = partial(tree_map_only, torch.Tensor, lambda x: x.to(dtype) if x.is_floating_point() else x)
            args, kwargs = cast((args, kwargs))
        return function(*args, **(kwargs or {}))


class HostData(TorchFunctionMode):
    """Refuses Python numbers that PyTorch would copy to the GPU, because the host waits for such a copy."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result, name = function(*args, **(kwargs or {})), getattr(function, "__name__", "")
        if name in ("__getitem__", "__setitem__"):
            indices = args[1] if isinstance(args[1], tuple) else (args[1],)
            assert not any(isinstance(index, (list, np.ndarray)) for index in indices), "a list as an index"
        if name in ("tensor", "as_tensor", "asarray", "new_tensor"):
            assert result.device != GPU, "a tensor made of numbers"
        return result


class Copies(TorchDispatchMode):
    """Refuses operations that make the host wait for a GPU, and counts asynchronous copies to the host."""

    def __init__(self):
        super().__init__()
        self.to_host = 0

    def __torch_dispatch__(self, kernel, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, kernel._schema.name
        if name.startswith("aten::index"):
            assert not any(index is not None and index.dtype == torch.bool for index in args[1]), "a mask as an index"
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        devices = {tensor.device for tensor in tensors if tensor.ndim} | {kwargs.get("device")}
        if {CPU, GPU} <= devices and "empty" not in name:
            is_awaited = not (kwargs.get("non_blocking") or args[2:3] == (True,))
            assert name in ("aten::copy_", "aten::_to_copy") and not is_awaited, f"{name} mixes host and GPU"
            if name == "aten::copy_" and args[0].device == CPU:
                self.to_host += 1
                return args[0]
        return kernel(*args, **kwargs)


@pytest.fixture
def gpu(monkeypatch):
    """Make PyTorch treat the device "meta" as a GPU. Its tensors have no values, so code that needs a value fails."""
    empty_like = torch.empty_like
    monkeypatch.setattr(torch, "autocast", Autocast)
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda kind: False)
    monkeypatch.setattr(sys.modules["torch.optim.optimizer"], "_get_fused_kernels_supported_devices", lambda: ["meta"])
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
    monkeypatch.setattr(torch, "empty_like", lambda x, pin_memory=False, **named: empty_like(x, **named))
    event = SimpleNamespace(record=lambda: None, synchronize=lambda: None, elapsed_time=lambda end: 500.0)
    monkeypatch.setattr(torch.cuda, "Event", lambda enable_timing: event)


@pytest.fixture(scope="module")
def encoders(tiny_model):
    """Return a function that copies a run's encoder, loaded once for all tests."""

    @cache
    def load(pooling, dropout):
        encoder = load_encoder(str(tiny_model), dropout, 42, pooling, device="cuda")
        del encoder.backbone.encoder.layer[1:]  # one layer makes the same kernels in half the time
        return encoder

    return lambda run: copy.deepcopy(load(run.pooling, run.dropout))


def train(encoders, **settings):
    """Train on the GPU. Return the trainer, and what each of its steps computed."""
    run = Run(model="", augment="una", **{**SETTINGS, "dropout": 0.1, **settings})
    trainer, maker = make_trainer(run, Ranks(0, 1, 0, GPU), encoders(run), n_parts=1, multiple=8)
    with HostData(), Copies() as copies:
        steps = [trainer.step(maker.make(*batch).to(GPU)) for batch in list(trainer.plan.batches())[:STEPS]]
    assert not copies.to_host
    return trainer, steps


PRECISIONS = ("fp32", "bf16", "fp16")
KINDS = [
    *(
        {kind: name for kind, name in zip(("loss", "pooling"), names, strict=True) if name}
        for names in zip_longest(LOSSES, OF_TRAINING)
    ),
    *({"precision": precision, "grad_cache": 16} for precision in PRECISIONS),
    {"similarity_distillation": 1.0, "max_grad_norm": 0.1, "weight_decay": 0.1},
    *({"precision": precision, "max_grad_norm": 0.1} for precision in PRECISIONS),
]


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("settings", KINDS, ids=lambda settings: "-".join(map(str, settings.values())))
def test_a_step_stays_on_the_gpu_and_never_waits(encoders, settings):
    trainer, steps = train(encoders, **settings)
    moments = [value for state in trainer.optimizer.state.values() for value in state.values()]
    results = [tensor for step in steps for tensor in (step.loss, step.cosines)]
    assert {tensor.device for tensor in (*results, *trainer.encoder.parameters(), *moments)} == {GPU}
    assert {tensor.dtype for tensor in (*results, *moments)} == {torch.float32}
    assert all(not step.loss.ndim and step.cosines.shape[1] == BATCH for step in steps)


@pytest.mark.usefixtures("gpu")
def test_losses_are_read_late_with_one_copy_per_step(encoders):
    _, steps = train(encoders)
    reader = StepReader(torch.device("cuda"))
    with HostData(), Copies() as copies:
        for step in steps * LATE_STEPS:
            reader.push(step.loss, {"step": 0}, step.cosines, reader.now())
    assert copies.to_host == STEPS * LATE_STEPS
    due = [*reader.due()]
    assert len(due) == copies.to_host - LATE_STEPS
    assert {record["sentences_per_second"] for record in due} == {BATCH / 0.5}  # by the GPU's clock, not the CPU's


FAULTS = {
    "item.. cannot be called": lambda views: views.sum().item(),
    "mul mixes host and GPU": lambda views: views * torch.ones(views.shape[-1]),
    "index mixes host and GPU": lambda views: views[torch.tensor([0, 1])],
    "_to_copy mixes host and GPU": lambda views: float(views.detach().sum(0).cpu()[0]),
    "copy_ mixes host and GPU": lambda views: views.detach()[0].copy_(torch.ones(views.shape[-1])),
    "a tensor made of numbers": lambda views: views * torch.tensor([2.0], device=GPU),
    "a list as an index": lambda views: views[[0, 1]],
    "a mask as an index": lambda views: views[views > 0],
}


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("message", FAULTS)
def test_planted_faults_are_detected(encoders, monkeypatch, message):
    compare = Trainer._compare

    def faulty(trainer, encoded, batch):
        FAULTS[message](encoded)
        return compare(trainer, encoded, batch)

    monkeypatch.setattr(Trainer, "_compare", faulty)
    with pytest.raises((RuntimeError, NotImplementedError, AssertionError), match=message):
        train(encoders)


class Exchanges(TorchDispatchMode):
    """Records the collectives of the trainer and the loop, in order, by name and shapes."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, kernel, types, args=(), kwargs=None):
        if kernel.namespace == "c10d":
            shapes = [tuple(leaf.shape) for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor)]
            self.calls.append((kernel._schema.name, shapes))
        return kernel(*args, **(kwargs or {}))


def exchanges_of(encoders, rank, world, **settings):
    """Return what a rank exchanges in two steps, an evaluation and a stop. Step 2 has fewer sentences than ranks."""
    run = Run(model="", augment="una", **{**SETTINGS, "alpha": 1, **settings})
    dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
    with Exchanges() as noted:
        trainer, maker = make_trainer(run, Ranks(rank, world, rank, CPU), encoders(run))
        for step, rows in enumerate((np.arange(world + 3), np.arange(3))):
            trainer.step(maker.make(step, 0, rows))
        with torch.no_grad():
            trainer.embed(FakeTokens(0).anchor_ids(range(5)))
        StopConsensus(trainer.ranks).check()
    dist.destroy_process_group()
    return noted.calls


@pytest.mark.parametrize("settings", [{"grad_cache": 4, "precision": "bf16"}, {}], ids=str)
@pytest.mark.parametrize(("world", "ranks"), [(4, (0, 1, 3)), (256, (0, 255))])
def test_all_ranks_make_the_same_collective_calls(encoders, world, ranks, settings):
    first, *others = [exchanges_of(encoders, rank, world, **settings) for rank in ranks]
    # in each of two steps the rows and the gradients, then the embeddings of the evaluation and the stop
    assert [name for name, _ in first] == ["c10d::allreduce_"] * 6
    assert all(other == first for other in others)


def test_a_rank_chooses_its_gpu_before_it_allocates_memory(monkeypatch):
    calls = []
    for name, value in {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "CUDA_VISIBLE_DEVICES": "6,7"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: calls.append(("set_device", device)))
    monkeypatch.setattr(dist, "init_process_group", lambda *how, **named: calls.append((how, named["device_id"])))
    ranks = join_group("cuda")
    assert calls == [("set_device", torch.device("cuda", 1)), (("cpu:gloo,cuda:nccl",), torch.device("cuda", 1))]
    assert ranks == Ranks(5, 8, 1, torch.device("cuda", 1))


BERT = BertConfig(hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=1024)


def test_a_run_that_exceeds_the_memory_is_warned_before_it_starts(capsys, monkeypatch):
    with fake_trainer(BERT, 256, precision="fp32") as (trainer, counted):
        trainer.try_memory()
        assert not capsys.readouterr().err
        weights, tried = sum(weight.nbytes for weight in trainer.encoder.parameters()), counted.peak
        assert all(weight.grad is None for weight in trainer.encoder.parameters())
        for step in range(2):
            trainer.step(fake_batch(step, 256, 32, 0))
        assert tried == pytest.approx(counted.peak, rel=0.1) and tried > 4 * weights
        monkeypatch.setattr(SentenceEncoder, "embed", full)
        allocated = []
        monkeypatch.setattr(torch, "empty_like", allocated.append)
        trainer.try_memory()
        assert not allocated  # AdamW has its moments, as after --resume
    (said,) = capsys.readouterr().err.splitlines()
    assert "--grad-cache 128, --precision bf16" in said


def full(*args, **named):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nmore")


def test_running_out_of_memory_ends_the_run_with_a_clear_error(tmp_path, tiny_model, monkeypatch):
    plain = Trainer.step
    monkeypatch.setattr(Trainer, "step", lambda trainer, batch: full() if batch.step else plain(trainer, batch))
    with pytest.raises(InputError, match="--grad-cache 4, --precision bf16, .*--batch-size .*--max-length .*2 GiB"):
        train_here(options(tmp_path, tiny_model))


def test_a_rank_with_an_error_does_not_wait_for_the_others(monkeypatch):
    monkeypatch.setattr("train.distributed.join_group", lambda device: Ranks(1, 2, 0, torch.device(device)))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: pytest.fail("waits for the others"))
    with pytest.raises(torch.OutOfMemoryError), process_group("cpu"):
        full()
