"""CUDA graphs and compiled layers, as far as a CPU can test them: owners of buffers, names, results, batches."""

import sys
from pathlib import Path

import pytest
import torch

from support.fake_tokens import train
from support.graphs_on_cpu import stand_in
from support.small_runs import final_state, flat, metrics, options, train_here
from train.encoder import graphs
from train.encoder.compiled import compile_layers, uncompiled
from train.encoder.encoder import SentenceEncoder, load_config, load_encoder
from train.encoder.graphs import Graphs
from train.encoder.ready_mask import takes_ready_mask
from train.steps.batches import gpu_column_multiple
from train.steps.trainer import Trainer
from una_fast.errors import InputError


@pytest.fixture(autouse=True)
def one_thread():
    """Use one thread: a tiny model gains nothing from more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def graphs_on_cpu(monkeypatch):
    """Stand-ins for CUDA graphs, with their use of memory."""
    stand_in(monkeypatch.setattr)


# one part in bf16: with two, the plain run would add the gradients of a cast weight before it casts them back
@pytest.mark.parametrize("settings", [{}, {"grad_cache": 5}, {"precision": "bf16", "n_parts": 1}])
def test_graphs_change_no_bit(tiny_model, graphs_on_cpu, monkeypatch, settings):
    monkeypatch.setattr(SentenceEncoder, "_looked_up", lambda self, parts: parts)  # as graphs do: they take token ids
    losses, plain = train(tiny_model, compile="off", **settings)
    same, graphed = train(tiny_model, compile="graphs", **settings)
    assert len(graphed.encoder.graphs._captured) > 2
    assert losses == same
    assert_same_weights(plain, graphed)


def test_parts_that_shared_a_graph_would_be_noticed(tiny_model, graphs_on_cpu, monkeypatch):
    apart = Graphs.__call__
    monkeypatch.setattr(Graphs, "__call__", lambda self, place, part: apart(self, 0, part))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        train(tiny_model, compile="graphs")


@pytest.mark.parametrize(
    "error", [RuntimeError("operation not permitted\nmore"), TypeError("a wrong type"), KeyError()]
)
@pytest.mark.parametrize("at", ["first", "third", "last"])
def test_a_capture_that_fails_ends_no_run(tiny_model, graphs_on_cpu, monkeypatch, at, error):
    """For any shape: one warning with the reason, and the weights of a run without graphs."""
    whole = graphs.Captured
    made = []

    def fail(run, trained, part, memory):
        made.append(part["input_ids"].shape)
        torch.rand(3)
        if len(made) == place:
            raise error
        return whole(run, trained, part, memory)

    shapes = len(train(tiny_model, compile="graphs")[1].encoder.graphs._captured)
    place = {"first": 1, "third": 3, "last": shapes}[at]
    assert shapes > 3
    monkeypatch.setattr(SentenceEncoder, "_looked_up", lambda self, parts: parts)
    losses, plain = train(tiny_model, compile="off")
    monkeypatch.setattr(graphs, "Captured", fail)
    with pytest.warns(
        UserWarning, match="no CUDA graphs, the run goes on without: .* tokens cannot be captured"
    ) as said:
        same, graphed = train(tiny_model, compile="graphs")
    assert len([one for one in said if "no CUDA graphs" in str(one.message)]) == 1 and len(made) == place
    assert same == losses
    assert_same_weights(plain, graphed)


def test_memory_that_runs_out_ends_the_rank(tiny_model, graphs_on_cpu, monkeypatch):
    def fail(*args):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(graphs, "Captured", fail)
    with pytest.raises(torch.OutOfMemoryError):
        train(tiny_model, compile="graphs", n_parts=1)


def assert_same_weights(one, other):
    """Both trainers have the same names of weights, and the same bits."""
    states = one.state()["model"], other.state()["model"]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_a_model_that_waits_for_the_gpu_runs_as_it_is(tiny_model, graphs_on_cpu, monkeypatch):
    def wait(*args):
        raise graphs.WaitsError("called a synchronizing CUDA operation")

    losses, _ = train(tiny_model, compile="off", n_parts=1)
    monkeypatch.setattr(graphs, "Captured", wait)
    with pytest.warns(
        UserWarning, match="no CUDA graphs.* the model waits for the GPU .called a synchronizing"
    ) as said:
        assert train(tiny_model, compile="graphs", n_parts=1)[0] == losses
    assert len([one for one in said if "no CUDA graphs" in str(one.message)]) == 1


@pytest.fixture
def quick_compiler():
    """torch.compile traces forward and backward as usual, but compiles no code."""
    with torch.compiler.set_stance("default", force_backend="aot_eager"):
        yield
    torch._dynamo.reset()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_compiled_layers_train_as_the_plain_ones(tiny_model, quick_compiler, precision):
    losses, plain = train(tiny_model, dropout=0.0, compile="off", n_parts=1, precision=precision)
    close, compiled = train(tiny_model, dropout=0.0, compile="layers", n_parts=1, precision=precision)
    assert losses == pytest.approx(close, abs=1e-5)
    states = plain.state()["model"], compiled.state()["model"]
    assert states[0].keys() == states[1].keys()
    for name, weight in states[0].items():
        if not name.endswith("key.bias"):  # see tests/training/test_ddp.py
            assert (weight - states[1][name]).norm() <= 1e-4 * weight.norm(), name


def test_compiled_layers_inside_graphs_change_no_bit(tiny_model, graphs_on_cpu, quick_compiler):
    losses, _ = train(tiny_model, compile="layers", n_parts=1)
    assert train(tiny_model, compile="both", n_parts=1)[0] == losses


def test_one_layer_is_compiled_for_all(tiny_model, quick_compiler):
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    _, trainer = train(tiny_model, compile="layers", n_parts=1)
    shapes = counters["stats"]["unique_graphs"]
    assert 0 < shapes <= 6 and not counters["graph_break"]  # 2 widths, with and without negatives, the last batch
    with trainer.plain_kernels(), torch.no_grad():
        trainer.encoder.eval().backbone(input_ids=torch.ones(3, 5, dtype=torch.int64))
    assert counters["stats"]["unique_graphs"] == shapes


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere PyTorch may find no compiler with OpenMP")
def test_a_run_with_compiled_layers_resumes_bit_equal(tmp_path, tiny_model):
    """With the real compiler and whole runs: an uneven last batch, evaluations, best/ and last/."""
    values = options(tmp_path, tiny_model, compile="layers", epochs=1, output=str(tmp_path / "whole"))
    assert train_here(values).status == "finished"
    first = {**values, "output": str(tmp_path / "cut"), "max_steps": 9}
    with pytest.MonkeyPatch.context() as patch:
        plain = Trainer.step

        def step(trainer, batch):
            if batch.step == 5:
                raise ZeroDivisionError
            return plain(trainer, batch)

        patch.setattr(Trainer, "step", step)
        with pytest.raises(ZeroDivisionError):
            train_here({**first, "max_steps": None})
    train_here({**first, "max_steps": None, "resume": True})
    assert metrics(tmp_path / "cut") == metrics(tmp_path / "whole")
    states = [flat(final_state(tmp_path / name)) for name in ("whole", "cut")]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not any("_orig_mod" in name for name in states[0])
    from transformers import AutoModel

    assert AutoModel.from_pretrained(tmp_path / "whole" / "best").state_dict().keys() == (
        AutoModel.from_pretrained(tiny_model).state_dict().keys()
    )


def test_a_model_that_takes_no_ready_mask_gets_its_own(tiny_model):
    encoder = load_encoder(str(tiny_model), load_config(str(tiny_model), 0.0), 1)
    assert takes_ready_mask(encoder.backbone) and encoder.backbone.training
    encoder.backbone.config._attn_implementation = "eager"
    assert not takes_ready_mask(encoder.backbone)


def test_layers_are_found_wherever_a_model_keeps_them():
    class Odd(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.linear(x)

    model = Odd()
    compile_layers(model)
    with uncompiled():
        assert model(torch.ones(1, 2)).shape == (1, 2)
    assert list(model.state_dict()) == ["linear.weight", "linear.bias"]


@pytest.mark.parametrize(("max_length", "multiple"), [(16, 8), (32, 8), (64, 8), (65, 16), (128, 16), (512, 64)])
def test_few_widths_on_a_gpu(max_length, multiple):
    assert gpu_column_multiple(max_length) == multiple


def test_graphs_need_a_gpu(tmp_path, tiny_model):
    with pytest.raises(InputError, match="--compile graphs needs a GPU, and none is used here"):
        train_here(options(tmp_path, tiny_model, compile="graphs"))


def test_fp16_on_the_cpu_keeps_its_scale(tmp_path, tiny_model, capsys):
    values = options(tmp_path, tiny_model, precision="fp16", max_steps=4, dropout=0.0)
    assert train_here(values).status == "finished"
    assert "warning: fp16 takes some 30 times as long as bf16 on a CPU" in capsys.readouterr().err
    assert final_state(Path(values["output"]))["scaler"]["scale"] > 0
    train_here({**values, "precision": "fp32", "output": str(tmp_path / "exact")})
    close, exact = ([m["loss"] for m in metrics(o) if "loss" in m] for o in (values["output"], tmp_path / "exact"))
    assert close == pytest.approx(exact, rel=0.05) and close != exact


@pytest.mark.parametrize("error", [RuntimeError("no compiler was found\nmore"), OSError("g++ is gone"), KeyError()])
@pytest.mark.parametrize("fails_at", [1, 3])
def test_a_compilation_that_fails_ends_no_run(tiny_model, monkeypatch, error, fails_at):
    """For any call: one warning with the reason, and the weights of a run that compiles nothing."""
    calls = []

    def compile(function, **settings):
        def call(*args, **kwargs):
            calls.append(function)
            if len(calls) >= fails_at:
                raise error
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(torch, "compile", compile)
    monkeypatch.setattr("train.steps.trainer.takes_ready_mask", lambda backbone: False)
    losses, plain = train(tiny_model, compile="off", dropout=0.0)
    with pytest.warns(UserWarning, match="no compiled layers, the run goes on without: ") as said:
        same, run = train(tiny_model, compile="layers", dropout=0.0)
    assert len([one for one in said if "no compiled layers" in str(one.message)]) == 1 and len(calls) == fails_at
    assert same == losses
    assert_same_weights(plain, run)


def test_an_error_of_the_layer_itself_is_raised(monkeypatch):
    class Layer(torch.nn.Module):
        def forward(self, x):
            raise ZeroDivisionError("of the layer")

    layer = Layer()
    compile_layers(layer)
    with pytest.raises(ZeroDivisionError, match="of the layer"):
        layer(torch.ones(2))
