"""N ranks compute the same as one rank: equal losses and weights for any world size, on the same batches."""

import os
from pathlib import Path

import pytest
import torch

from support.fake_tokens import ALONE, SETTINGS, STEPS, FakeTokens, make_trainer
from train import distributed as ranks
from train.config import Run
from train.encoder.pretrained import quiet
from una_fast.parallel import n_cores

# The gradient of a key's bias is 0 in exact arithmetic: it shifts all scores of a softmax alike. Adam scales the
# rounding errors of this gradient to full steps, so these weights are not compared.
NOISE = "key.bias"


def train_rank(group, folder, model, settings):
    """Train, and embed three sentences; rank 0 leaves its losses and weights in `folder`."""
    quiet()
    trainer, maker = make_trainer(Run(model=model, output=folder, **settings), group)
    losses = [trainer.step(maker.make(*batch)).loss.item() for batch in trainer.plan.batches()]
    with torch.no_grad():
        embeddings = trainer.embed(FakeTokens(0).anchor_ids(range(3)))
    if group.first:
        moments = {i: state["exp_avg"] for i, state in trainer.optimizer.state_dict()["state"].items()}
        result = {"losses": losses, "moments": moments, "embeddings": embeddings}
        torch.save({**result, "weights": trainer.encoder.state_dict()}, Path(folder) / "result.pt")


@pytest.fixture(scope="module")
def trained(groups, tiny_model, tmp_path_factory):
    """Return a function that returns the results of a run, and trains it at the first call with its settings."""
    done = {}

    def get(world, **settings):
        key = (world, *sorted(settings.items()))
        if key not in done:
            folder = str(tmp_path_factory.mktemp("ranks"))
            request = (folder, str(tiny_model), {**SETTINGS, **settings})
            train_rank(ALONE, *request) if world == 1 else groups(world).call(train_rank, *request)
            done[key] = torch.load(Path(folder) / "result.pt")
        return done[key]

    return get


def difference(a, b):
    """Return the largest relative difference of a weight tensor, by norm."""
    compared = [name for name in a if not name.endswith(NOISE) and a[name].norm()]
    return max(float((a[name] - b[name]).norm() / a[name].norm()) for name in compared)


KINDS = {
    "negatives": {"augment": "una"},
    "plain": {"augment": "none"},
    "triplet": {"augment": "una", "loss": "triplet"},
    "soft": {"augment": "una", "loss": "soft", "margin_weight": 1.0, "similarity_distillation": 3.0},
    "neighbours": {"augment": "una", "loss": "margin", "alpha": 1, "neighbours": True},
    "clipped": {"augment": "una", "warmup_steps": 2, "weight_decay": 0.1, "max_grad_norm": 0.5, "schedule": "cosine"},
}


FAST = [(2, "negatives"), (2, "soft"), (2, "neighbours"), (2, "clipped")]
SLOW = [(2, "plain"), (2, "triplet"), *((4, kind) for kind in KINDS)]


@pytest.mark.parametrize(("world", "kind"), [*FAST, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)])
def test_losses_and_weights_are_equal_for_any_world_size(trained, world, kind):
    one, many = trained(1, **KINDS[kind]), trained(world, **KINDS[kind])
    assert len(one["losses"]) == STEPS
    assert many["losses"] == pytest.approx(one["losses"], abs=1e-5)
    assert difference(one["weights"], many["weights"]) < 1e-5
    largest = max(one["moments"], key=lambda i: one["moments"][i].norm())
    assert torch.allclose(one["moments"][largest], many["moments"][largest], rtol=1e-3, atol=1e-5)
    assert many["embeddings"].shape == (3, 32)  # a rank of 4 has none
    assert torch.allclose(one["embeddings"], many["embeddings"], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("world", "kind"), [(n, kind) for n in (1, 2) for kind in ("negatives", "soft")])
def test_gradient_caching_gives_the_gradients_of_one_rank(trained, world, kind):
    one, many = trained(1, **KINDS[kind]), trained(world, grad_cache=5, **KINDS[kind])
    assert many["losses"] == pytest.approx(one["losses"], abs=1e-5)
    assert difference(one["weights"], many["weights"]) < 1e-5


def test_a_single_process_is_one_rank_with_all_cores_and_no_group(monkeypatch):
    monkeypatch.delenv("LOCAL_WORLD_SIZE")
    threads = torch.get_num_threads()
    try:
        assert ranks.join_group("cpu") == ALONE
        assert torch.get_num_threads() == n_cores(None) and not torch.distributed.is_initialized()
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("deterministic", [True, False])
def test_numerics_of_a_gpu_are_set(monkeypatch, deterministic):
    """The settings are those of PyTorch's page on reproducibility. A value that the user set is kept."""
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    matmul, gpu = torch.backends.cuda.matmul, torch.device("cuda", 0)
    try:
        ranks.set_numerics(gpu, "bf16", deterministic)
        assert os.environ.get("CUBLAS_WORKSPACE_CONFIG") == (":4096:8" if deterministic else None)
        assert torch.are_deterministic_algorithms_enabled() is deterministic
        assert not torch.utils.deterministic.fill_uninitialized_memory and matmul.fp32_precision == "tf32"
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":16:8"
        ranks.set_numerics(gpu, "fp32", deterministic=True)
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":16:8" and matmul.fp32_precision == "ieee"
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_float32_matmul_precision("highest")
