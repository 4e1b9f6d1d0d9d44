"""Whole steps as CUDA graphs, on a stand-in that records and replays kernels: bit-identical results, planted faults."""

import copy
import warnings
from functools import cache, partial

import pytest
import torch

from support import graph_stand_in
from support.fake_tokens import SETTINGS, make_trainer
from train.config import Run
from train.encoder.encoder import SentenceEncoder, load_encoder
from train.loop import graphs
from train.loop import trainer as trainers
from train.loop.graphs import Graphs
from train.loop.trainer import Trainer
from una_fast.errors import InputError

STEPS, STOP = 24, 13  # four epochs of 6 steps, the last of which has 3 sentences


@pytest.fixture(scope="module")
def encoder_of(tiny_model):
    """Return a function that copies a run's encoder, loaded once for all tests, as it is on a GPU."""

    @cache
    def load(pooling):
        return load_encoder(str(tiny_model), 0.1, 42, pooling, device="cuda")

    return lambda run: copy.deepcopy(load(run.pooling))


@pytest.fixture
def made(monkeypatch):
    """Install the stand-in, and return the list of graphs that it makes."""
    monkeypatch.setattr(SentenceEncoder, "_looked_up", lambda encoder, parts: parts)  # as on a GPU
    return graph_stand_in.install(monkeypatch)


def train(encoder_of, compile, state=None, stop=STEPS, n_parts=2, **settings):
    """Train. Return what the steps computed, read after the last step, and the trainer's state."""
    run = Run(model="", augment="una", **{**SETTINGS, "dropout": 0.1, "epochs": 4, "compile": compile, **settings})
    trainer, maker = make_trainer(run, encoder=encoder_of(run), state=state, n_parts=n_parts, multiple=8)
    first = 0 if state is None else STOP
    steps = [trainer.step(maker.make(*batch)) for batch in trainer.plan.batches(first) if batch[0] < stop]
    numbers = [[step.loss.item(), *step.cosines.flatten().tolist()] for step in steps]
    state = copy.deepcopy(trainer.state())
    trainer.close()
    return numbers, state


def weights(state):
    return torch.cat([tensor.flatten() for tensor in state["model"].values()])


FAST = [
    {"precision": "fp32", "n_parts": 1},
    {"precision": "bf16", "n_parts": 2, "loss": "triplet"},
    {"precision": "fp16", "n_parts": 4, "max_grad_norm": 0.1},
    {"similarity_distillation": 1.0, "max_grad_norm": 0.1, "weight_decay": 0.1, "pooling": "mean"},
]
SLOW = [
    *({"loss": loss} for loss in ("simcse", "decoupled", "soft")),
    *({"pooling": pooling} for pooling in ("max", "last", "weighted_mean")),
]
KINDS = [*FAST, *(pytest.param(settings, marks=pytest.mark.slow) for settings in SLOW)]


@pytest.mark.parametrize("settings", KINDS, ids=lambda settings: "-".join(map(str, settings.values())))
def test_replays_are_bit_identical_to_eager_steps(encoder_of, made, settings):
    numbers, state = train(encoder_of, "off", **settings)
    same, replayed = train(encoder_of, "graphs", **settings)
    assert same == numbers and torch.equal(weights(replayed), weights(state))
    assert sum(graph.replays for graph in made) >= STEPS // 2


@pytest.mark.parametrize("precision", [pytest.param("bf16", marks=pytest.mark.slow), "fp16"])
def test_a_resumed_run_is_bit_identical(encoder_of, made, precision):
    numbers, state = train(encoder_of, "graphs", precision=precision)
    _, stopped = train(encoder_of, "graphs", precision=precision, stop=STOP)
    rest, resumed = train(encoder_of, "graphs", state=stopped, precision=precision)
    assert rest == numbers[STOP:] and torch.equal(weights(resumed), weights(state))


@pytest.mark.slow
def test_compiled_layers_are_captured_too(encoder_of, made, monkeypatch, capsys):
    """Results are bit-identical to eager steps with compiled layers, and after a resume."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    numbers, state = train(encoder_of, "on")
    assert sum(graph.replays for graph in made) >= STEPS // 2 and "not compiled" not in capsys.readouterr().err
    _, stopped = train(encoder_of, "on", stop=STOP)
    rest, resumed = train(encoder_of, "on", state=stopped)
    assert rest == numbers[STOP:] and torch.equal(weights(resumed), weights(state))
    monkeypatch.setattr(graphs, "MOST", 0)
    same, eager = train(encoder_of, "on")
    assert same == numbers and torch.equal(weights(eager), weights(state))


def seeded_inside(trainer, batch, plain=Trainer.eager_step):
    trainers.torch.manual_seed(batch.step)
    return plain(trainer, batch)


def numbered(trainer, encoded, batch, plain=Trainer._compare):
    step = plain(trainer, encoded, batch)
    return step._replace(loss=step.loss * (1 + batch.step))


def captured_at_once(self, shape, batch):
    self._ready.add(shape)
    return self(batch)


FAULTS = {  # object and name that are replaced, and the replacement; Trainer: also in the eager run
    "inputs are not copied": (torch, "_foreach_copy_", lambda mine, given: None),
    "the rate is replaced": (torch.Tensor, "fill_", lambda tensor, value: torch.full_like(tensor, value)),
    "the seed is set inside": (Trainer, "eager_step", seeded_inside),
    "gradients stay": (torch.optim.AdamW, "zero_grad", lambda optimizer: None),
    "the moments are made by the capture": (Graphs, "_step_eagerly", captured_at_once),
    "the number of the batch is read": (Trainer, "_compare", numbered),
    "results are not copied": (graphs, "tree_map", lambda function, tree: tree),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_detected(encoder_of, made, monkeypatch, fault):
    """A fault of Trainer is also in the eager run, because only a replay makes its results wrong."""
    where, name, faulty = FAULTS[fault]
    if where is Trainer:
        monkeypatch.setattr(where, name, faulty)
    numbers, state = train(encoder_of, "off")
    monkeypatch.setattr(where, name, faulty)
    same, replayed = train(encoder_of, "graphs")
    assert same != numbers or not torch.equal(weights(replayed), weights(state))


def test_a_step_that_waits_stays_eager(encoder_of, made, monkeypatch, capsys):
    plain = Trainer._compare

    def waiting(*given):
        warnings.warn("called a synchronizing CUDA operation", stacklevel=1)
        warnings.warn("another", stacklevel=1)
        return plain(*given)

    numbers, _ = train(encoder_of, "off")
    monkeypatch.setattr(Trainer, "_compare", waiting)
    with pytest.warns(UserWarning, match="another"):
        same, _ = train(encoder_of, "graphs")
    said = [line for line in capsys.readouterr().err.splitlines() if "run eagerly" in line]
    assert same == numbers and not made and said and all(f"{__file__}:" in line for line in said)


def test_steps_that_cannot_be_captured_run_eagerly(encoder_of, made, capsys):
    numbers, _ = train(encoder_of, "off", grad_cache=4)
    same, _ = train(encoder_of, "graphs", grad_cache=4)
    assert same == numbers and not made
    assert capsys.readouterr().err == "--compile graphs: with --grad-cache, steps run eagerly\n"


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("not permitted\nmore")])
def test_after_a_failed_capture_steps_run_eagerly_or_the_run_ends(encoder_of, made, monkeypatch, capsys, error):
    """If memory runs out, the run continues with eager steps; any other error ends it."""
    numbers, state = train(encoder_of, "off")
    plain = torch.amp.GradScaler.step

    def fail(scaler, optimizer):
        if made:
            raise error
        return plain(scaler, optimizer)

    monkeypatch.setattr(torch.amp.GradScaler, "step", fail)
    if not isinstance(error, torch.OutOfMemoryError):
        with pytest.raises(InputError, match="not permitted: .*--compile off$"):
            train(encoder_of, "graphs")
        return
    monkeypatch.setattr(Graphs, "close", lambda self, plain=Graphs.close: (plain(self), made.clear()))
    same, alike = train(encoder_of, "graphs")
    assert same == numbers and torch.equal(weights(alike), weights(state))
    assert capsys.readouterr().err.count("continues without them") == 1


def test_the_number_of_graphs_is_limited(encoder_of, made, monkeypatch):
    monkeypatch.setattr(graphs, "MOST", 1)
    numbers, _ = train(encoder_of, "off")
    same, _ = train(encoder_of, "graphs")
    assert same == numbers and len(made) == 1
