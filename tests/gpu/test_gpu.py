"""Tests that need a GPU, and are skipped without one. CUDA_VISIBLE_DEVICES chooses the GPU."""

import json

import numpy as np
import pytest
import torch

from support import fake_tokens
from support.fake_tokens import SETTINGS
from support.small_runs import assert_resume_is_bit_identical, metrics, options, start, train_here
from train.config import Run
from train.distributed import Ranks
from train.loop.telemetry import LATE_STEPS, StepReader
from train.losses import LOSSES

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that PyTorch can use")
COMPILE = ["off", "graphs", pytest.param("on", marks=pytest.mark.slow)]


@pytest.fixture(autouse=True)
def defaults_again():
    """Switch off deterministic algorithms after each test, because training switches them on."""
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Make a folder for the runs of all tests."""
    return tmp_path_factory.mktemp("gpu")


def make_trainer(model, precision="fp32", compile="off", dropout=0.1, n_parts=2):
    """Make a trainer on the GPU and the batches of its run, also on the GPU."""
    gpu = torch.device("cuda", 0)
    settings = {"precision": precision, "compile": compile, "dropout": dropout, "learning_rate": 1e-4, "device": "cuda"}
    run = Run(model=str(model), augment="una", **{**SETTINGS, **settings})
    trainer, maker = fake_tokens.make_trainer(run, Ranks(0, 1, 0, gpu), n_parts=n_parts, multiple=8)
    return trainer, [maker.make(*batch).to(gpu) for batch in trainer.plan.batches()]


@pytest.mark.parametrize("compile", COMPILE)
def test_training_on_a_gpu_gives_the_losses_of_the_cpu(tiny_model, compile):
    """In fp32 without dropout, the losses differ only by rounding, because sums are computed in another order."""
    losses, _ = fake_tokens.train(tiny_model, dropout=0.0, learning_rate=1e-4, schedule="linear", compile="off")
    trainer, batches = make_trainer(tiny_model, compile=compile, dropout=0.0)
    assert [trainer.step(batch).loss.item() for batch in batches] == pytest.approx(losses, abs=1e-4)


@pytest.mark.parametrize("name", LOSSES)
def test_loss_functions_on_a_gpu_equal_those_on_the_cpu(name):
    spec, n_views = LOSSES[name], 2 + LOSSES[name].negative_views
    views, start = torch.randn(2, n_views, 8, 16, generator=torch.Generator().manual_seed(0))

    def loss_on(device):
        further = {"start": start[-2:].to(device)} if spec.takes_start else {}
        return spec.load()(views.to(device), 0.05, **further).item()

    assert loss_on("cuda") == pytest.approx(loss_on("cpu"), rel=1e-4)


def losses_and_weights(trainer, batches):
    losses = [trainer.step(batch).loss for batch in batches]
    weights = {name: weight.cpu() for name, weight in trainer.encoder.state_dict().items()}
    return [loss.item() for loss in losses], weights


@pytest.mark.parametrize("n_parts", [1, 2])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_graphs_are_bit_identical_to_eager_steps(tiny_model, precision, n_parts):
    """A replay runs the same kernels with the same dropout masks."""
    runs = []
    for compile in ("off", "graphs"):
        trainer, batches = make_trainer(tiny_model, precision, compile, n_parts=n_parts)
        runs.append(losses_and_weights(trainer, 4 * batches))
    assert len(trainer.graphs.captured) > 1 and runs[0][0] == runs[1][0]
    assert all(torch.equal(weight, runs[1][1][name]) for name, weight in runs[0][1].items())


def test_a_model_that_waits_runs_eagerly(tiny_model, capsys):
    trainer, batches = make_trainer(tiny_model, compile="graphs")
    trainer.encoder.bias_as_mask = False  # the model then reads the mask in every step
    assert np.isfinite(losses_and_weights(trainer, 3 * batches)[0]).all() and not trainer.graphs.captured
    assert "some steps run eagerly" in capsys.readouterr().err


@pytest.mark.parametrize("compile", COMPILE)
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_no_step_waits_for_the_gpu(tiny_model, precision, compile):
    trainer, batches = make_trainer(tiny_model, precision, compile)
    reader = StepReader(torch.device("cuda", 0))
    for batch in 3 * batches:  # every shape is captured here
        trainer.step(batch)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for batch in (2 * batches)[:LATE_STEPS]:
            begun, step = reader.now(), trainer.step(batch)
            reader.push(step.loss, {"step": batch.step}, step.cosines, begun)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert not list(reader.due())  # none is due before another LATE_STEPS steps
    assert len(list(reader.due(all_of_them=True))) == LATE_STEPS


@pytest.mark.parametrize("compile", COMPILE)
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_losses_in_half_precision_are_finite_and_close_to_fp32(tiny_model, precision, compile):
    trainer, batches = make_trainer(tiny_model, precision, compile, dropout=0.0)
    exact, _ = make_trainer(tiny_model, "fp32", "off", dropout=0.0)
    losses = [trainer.step(batch).loss.item() for batch in batches]
    assert losses[0] == pytest.approx(exact.step(batches[0]).loss.item(), rel=0.05)
    assert np.isfinite(losses).all() and losses[-1] < losses[1]
    assert (trainer.state()["scaler"].get("scale", 0) > 0) == (precision == "fp16")


@pytest.mark.parametrize(("compile", "precision", "grad_cache"), [
    ("off", "bf16", 0), ("graphs", "bf16", 0), ("graphs", "fp16", 0), ("off", "bf16", 5),
    pytest.param("on", "bf16", 0, marks=pytest.mark.slow),
])  # fmt: skip
def test_a_resumed_run_is_bit_identical(shared, tiny_model, compile, precision, grad_cache):
    settings = {"compile": compile, "precision": precision, "grad_cache": grad_cache}
    values = options(shared, tiny_model, device="cuda", **settings)
    state = assert_resume_is_bit_identical(values, shared / f"{compile}-{precision}-{grad_cache}")
    assert not any("_orig_mod" in weight for weight in state["model"])
    assert ("scale" in state["scaler"]) == (precision == "fp16")


def test_run_json_has_the_gpus_time_and_memory(shared, tiny_model):
    train_here(options(shared, tiny_model, device="cuda", output=str(shared / "profile")))
    about = json.loads((shared / "profile" / "run.json").read_text())["this_process"]
    assert 0 < about["share_of_time"]["data"] < 1
    assert 0 < about["peak_memory"]["gpu_bytes"] <= about["peak_memory"]["gpu_reserved_bytes"]


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("compile", COMPILE)
def test_two_gpus_give_the_losses_of_one(shared, tiny_model, compile):
    """Embeddings, gradients and dev scores go over NCCL; stop requests and messages over gloo."""
    losses = []
    for nproc in (1, 2):
        output = shared / f"{nproc}-gpus-{compile}"
        settings = {"nproc": nproc, "dropout": 0.0, "learning_rate": 1e-4, "compile": compile, "output": str(output)}
        process = start(options(shared, tiny_model, device="cuda", **settings))
        _, said = process.communicate(timeout=240)
        assert process.returncode == 0, said
        losses.append([line["loss"] for line in metrics(output) if "loss" in line])
        assert (output / "best" / "model.safetensors").stat().st_size
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
