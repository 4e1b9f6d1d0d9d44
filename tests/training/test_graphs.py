"""CUDA graphs, as far as a CPU can test them: owners of buffers, names, results, batches."""

import functools
import re

import pytest
import torch

from support.fake_tokens import train
from support.graphs_on_cpu import OnCpu, stand_in
from support.small_runs import options, train_here
from train.encoder import graphs
from train.encoder.encoder import SentenceEncoder, load_encoder
from train.encoder.graphs import Graphs, takes_ready_mask
from train.loop.data import gpu_column_multiple
from una_fast.errors import InputError

SHAPES = 8  # of the parts of a run


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


@pytest.fixture(scope="module")
def plain_run(tiny_model):
    """A function that trains without graphs, or returns what it trained with these settings before.

    ids: the encoder takes token ids, as graphs do, and not looked-up embeddings.
    """

    @functools.cache
    def get(ids=False, **settings):
        with pytest.MonkeyPatch.context() as patch:
            if ids:
                patch.setattr(SentenceEncoder, "_looked_up", lambda self, parts: parts)
            return train(tiny_model, compile="off", **settings)

    return get


# one part in bf16: with two, the plain run would add the gradients of a cast weight before it casts them back
@pytest.mark.parametrize("settings", [{}, {"grad_cache": 5}, {"precision": "bf16", "n_parts": 1}])
def test_graphs_change_no_bit(tiny_model, graphs_on_cpu, plain_run, settings):
    losses, plain = plain_run(ids=True, **settings)
    same, graphed = train(tiny_model, compile="graphs", **settings)
    shapes = len(graphed.graphs._captured)
    assert shapes > 2 if settings else shapes == SHAPES
    assert losses == same
    assert_same_weights(plain, graphed)


@pytest.mark.parametrize(
    "settings",
    [{}, pytest.param({"grad_cache": 5}, marks=pytest.mark.slow), {"precision": "bf16"}, {"precision": "fp16"}],
)
def test_auto_uses_graphs_that_prove_themselves_and_the_trial_changes_no_bit(
    tiny_model, graphs_on_cpu, capsys, settings
):
    losses, given = train(tiny_model, compile="graphs", **settings)
    same, tried = train(tiny_model, compile="auto", **settings)
    assert tried.graphs and losses == same and "plain kernels" not in capsys.readouterr().err
    assert_same_weights(given, tried)


class OneGradient(OnCpu):
    """Graphs that are wrong in one element of the gradient of the last weight, by a thousandth of the largest."""

    def backward(self, gradient):
        *right, wrong = super().backward(gradient)
        wrong = wrong.clone()
        wrong.view(-1)[-1] += 1e-3 * wrong.abs().max()
        return *right, wrong


class OneBit(OnCpu):
    """Graphs whose second replay of a shape differs from the first in the last bit of one gradient."""

    def backward(self, gradient):
        right, *others = super().backward(gradient)
        self.replays = getattr(self, "replays", 0) + 1
        if self.replays == 2:
            right = right.clone()
            right.view(-1)[0] = torch.nextafter(right.view(-1)[0], torch.tensor(torch.inf))
        return right, *others


class OneLoss(OnCpu):
    """Graphs that are wrong in one element of an embedding."""

    def forward(self, part):
        output = super().forward(part)
        output[0, 0] += 0.1
        return output


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (OneGradient, "the gradient of .* differs from the plain kernels' by "),
        (OneBit, "the gradient of .* has other bits when a graph is replayed"),
        (OneLoss, "the loss differs from the plain kernels' by "),
    ],
)
def test_auto_goes_on_plain_where_graphs_are_wrong(
    tiny_model, graphs_on_cpu, plain_run, monkeypatch, capsys, kind, reason
):
    losses, plain = plain_run(n_parts=1)
    monkeypatch.setattr(graphs, "Captured", kind)
    same, tried = train(tiny_model, compile="auto", n_parts=1)
    said = [line for line in capsys.readouterr().err.splitlines() if "--compile" in line]
    assert len(said) == 1
    assert re.match(f"--compile auto: plain kernels, because CUDA graphs are wrong here: {reason}", said[0])
    assert tried.graphs is None and losses == same
    assert_same_weights(plain, tried)


def test_auto_goes_on_plain_where_nothing_can_be_captured(tiny_model, graphs_on_cpu, plain_run, monkeypatch, capsys):
    def fail(*args):
        raise RuntimeError("operation not permitted")

    losses, _ = plain_run(n_parts=1)
    monkeypatch.setattr(graphs, "Captured", fail)
    with pytest.warns(UserWarning, match="no CUDA graphs, the run goes on without"):
        same, tried = train(tiny_model, compile="auto", n_parts=1)
    assert tried.graphs is None and same == losses and "plain kernels" not in capsys.readouterr().err


def test_parts_that_shared_a_graph_would_be_noticed(tiny_model, graphs_on_cpu, monkeypatch):
    apart = Graphs.__call__
    monkeypatch.setattr(Graphs, "__call__", lambda self, place, part: apart(self, 0, part))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        train(tiny_model, compile="graphs")


@pytest.mark.parametrize(
    ("at", "error"),
    [
        ("first", RuntimeError("operation not permitted\nmore")), ("third", TypeError("a wrong type")),
        ("last", KeyError()),
    ],
)  # fmt: skip
def test_a_capture_that_fails_ends_no_run(tiny_model, graphs_on_cpu, plain_run, monkeypatch, at, error):
    """For any shape: one warning with the reason, and the weights of a run without graphs."""
    whole = graphs.Captured
    made = []

    def fail(run, trained, part, memory):
        made.append(part["input_ids"].shape)
        torch.rand(3)
        if len(made) == place:
            raise error
        return whole(run, trained, part, memory)

    place = {"first": 1, "third": 3, "last": SHAPES}[at]
    losses, plain = plain_run(ids=True)
    monkeypatch.setattr(SentenceEncoder, "_looked_up", lambda self, parts: parts)
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


def test_a_model_that_waits_for_the_gpu_runs_as_it_is(tiny_model, graphs_on_cpu, plain_run, monkeypatch):
    def wait(*args):
        raise graphs.WaitsError("called a synchronizing CUDA operation")

    losses, _ = plain_run(n_parts=1)
    monkeypatch.setattr(graphs, "Captured", wait)
    with pytest.warns(
        UserWarning, match="no CUDA graphs.* the model waits for the GPU .called a synchronizing"
    ) as said:
        assert train(tiny_model, compile="graphs", n_parts=1)[0] == losses
    assert len([one for one in said if "no CUDA graphs" in str(one.message)]) == 1


def test_a_model_that_takes_no_ready_mask_gets_its_own(tiny_model):
    encoder = load_encoder(str(tiny_model), 0.0, 1)
    assert takes_ready_mask(encoder.backbone) and encoder.backbone.training
    encoder.backbone.config._attn_implementation = "eager"
    assert not takes_ready_mask(encoder.backbone)


@pytest.mark.parametrize(("max_length", "multiple"), [(16, 8), (32, 8), (64, 8), (65, 16), (128, 16), (512, 64)])
def test_few_widths_on_a_gpu(max_length, multiple):
    assert gpu_column_multiple(max_length) == multiple


def test_graphs_need_a_gpu(tmp_path, tiny_model):
    with pytest.raises(InputError, match="--compile graphs needs a GPU, and none is used here"):
        train_here(options(tmp_path, tiny_model, compile="graphs"))
