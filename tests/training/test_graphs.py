"""Whole steps as CUDA graphs, on one rank and as chains on several, on a stand-in that records and replays kernels."""

import copy
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from support import graph_stand_in
from support.fake_tokens import ALONE, SETTINGS, OneText, fake_views, make_trainer
from support.graph_stand_in import RecordedGraph
from train.config import Run
from train.encoder.encoder import SentenceEncoder, load_encoder
from train.encoder.pretrained import quiet
from train.loop import graphs
from train.loop import trainer as trainers
from train.loop.data import BatchMaker
from train.loop.graphs import Graphs
from train.loop.trainer import Trainer
from una_fast.errors import InputError

STEPS, STOP = 18, 10  # three epochs of 6 steps
SENTENCES = 47  # the last step of an epoch has 7 sentences, so that one of two ranks has as many as in other steps
UNEVEN = 43  # the last step of an epoch has 3 sentences
LONGER = {
    "sentences": UNEVEN,
    "epochs": 4,
    "stop": 24,
}  # on one rank; in 18 steps, moments made by a capture stay unseen


def trained(ranks, model, state=None, stop=STEPS, sentences=SENTENCES, overflow=None, n_parts=1, **settings):
    """Train. Return what the steps computed, read after the last step, the state, and how many graphs were replayed."""
    run = Run(model=str(model), **{**SETTINGS, "dropout": 0.1, "epochs": 3, "augment": "una", **settings})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SentenceEncoder, "_looked_up", lambda encoder, parts: parts)  # as on a GPU
        made = graph_stand_in.install(patch)
        encoder = load_encoder(run.model, run.dropout, run.seed, run.pooling, device="cuda")
        one, maker = make_trainer(run, ranks, encoder, sentences, state, n_parts=n_parts, multiple=8)
        steps, captures, scales = [], [], []
        for batch in one.plan.batches(STOP if state else 0):
            if batch[0] == stop:
                break
            if batch[0] == overflow:
                one.scaler._scale.fill_(2.0**30)
            steps.append(one.step(maker.make(*batch)))
            captures.append(len(one.graphs.captured) if one.graphs else 0)
            scales.append(one.scaler.get_scale())
        found = {
            "numbers": [[step.loss.item(), *step.cosines.flatten().tolist()] for step in steps],
            "state": copy.deepcopy(one.state()), "scales": scales,
            "replays": sum(graph.replays for graph in made), "graphs": len(made),
            "shapes": len(one.graphs.captured) if one.graphs else 0, "captures": captures,
        }  # fmt: skip
        one.close()
    return found


def train_rank(ranks, folder, model, settings, resume):
    """Train as one of several ranks, and leave in FOLDER/RANK.pt what `trained` returns."""
    quiet()
    file = Path(folder) / f"{ranks.rank}.pt"
    state = torch.load(file, weights_only=False)["state"] if resume else None
    torch.save(trained(ranks, model, state, **settings), file)


def compare_one_text(ranks, folder, model):
    """Take steps in which all sentences are the same, under different dropout masks."""
    quiet()
    with pytest.MonkeyPatch.context() as patch:
        graph_stand_in.install(patch)
        run = Run(model=model, augment="una", **{**SETTINGS, "dropout": 0.1, "epochs": 4, "compile": "graphs"})
        one, _ = make_trainer(run, ranks, load_encoder(model, 0.1, 42, device="cuda"))
        maker = BatchMaker(fake_views(0, 0, kind=OneText), ranks.rank, ranks.world, multiple=8)
        cosines = [one.step(maker.make(step, 0, np.arange(8))).cosines[0].tolist() for step in range(4)]
        assert len(one.graphs.captured) == 1
        torch.save(cosines, Path(folder) / f"{ranks.rank}.pt")
        one.close()


@pytest.fixture(scope="module")
def ranks_train(groups, tmp_path_factory, tiny_model):
    """Return a function that trains on `world` ranks, and returns what each rank left. It takes a run only once."""
    done = {}

    def train(world, *, folder=None, resume=False, **settings):
        key = (world, resume, *sorted(settings.items()))
        if key not in done:
            folder = folder or tmp_path_factory.mktemp("ranks")
            request = (str(folder), str(tiny_model), settings, resume)
            if world == 1:
                train_rank(ALONE, *request)
            else:
                groups(world).call(train_rank, *request)
            done[key] = [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(world)]
        return copy.deepcopy(done[key])

    return train


@pytest.fixture
def train_alone(tiny_model):
    """Return a function that trains on one rank, each time it is called."""
    return partial(trained, ALONE, tiny_model, **LONGER)


def weights(found):
    return torch.cat([tensor.flatten() for tensor in found["state"]["model"].values()])


def moments(found):
    return torch.cat([state["exp_avg"].flatten() for state in found["state"]["optimizer"]["state"].values()])


def are_same(some, others):
    """Whether all steps and states of all ranks have the same bits."""
    return all(
        one["numbers"] == other["numbers"]
        and one["scales"] == other["scales"]
        and torch.equal(weights(one), weights(other))
        and torch.equal(moments(one), moments(other))
        for one, other in zip(some, others, strict=True)
    )


def are_close(found, one):
    """Whether the steps and the moments of a rank equal those of a run on one rank, except for rounding."""
    return np.allclose(*(np.concatenate(x["numbers"]) for x in (found, one)), atol=2e-4) and torch.allclose(
        moments(found), moments(one), rtol=1e-2, atol=2e-4
    )


def cases(fast, slow):
    """Return parameters (number of ranks, settings) with a readable name."""
    named = [(case, ()) for case in fast] + [(case, pytest.mark.slow) for case in slow]
    ids = ["-".join(map(str, (world, *settings.values()))) for (world, settings), _ in named]
    return [pytest.param(*case, marks=marks, id=name) for (case, marks), name in zip(named, ids, strict=True)]


BF16 = {"loss": "triplet", "precision": "bf16"}
FP16 = {"precision": "fp16", "max_grad_norm": 0.1, "weight_decay": 0.1}
TWO_GATHERS = {"loss": "soft", "margin_weight": 1.0, "similarity_distillation": 3.0}
FAST = [
    (1, {}),
    (1, {**BF16, "n_parts": 2}),
    (1, {**FP16, "n_parts": 4, "pooling": "mean"}),
    (2, FP16),
    (2, TWO_GATHERS),
]
SLOW = [
    *((1, {"loss": loss}) for loss in ("simcse", "decoupled", "soft")), (1, TWO_GATHERS),
    *((1, {"pooling": pooling}) for pooling in ("max", "last", "weighted_mean")),
    (2, {}), (2, BF16), *((world, kind) for world in (3, 4) for kind in ({}, BF16, FP16, TWO_GATHERS)),
]  # fmt: skip


@pytest.mark.parametrize(("world", "settings"), cases(FAST, SLOW))
def test_replays_are_bit_identical_to_eager_steps(ranks_train, world, settings):
    settings = settings | (LONGER if world == 1 else {})
    eager, replayed = (ranks_train(world, compile=compile, **settings) for compile in ("off", "graphs"))
    assert are_same(eager, replayed)
    pieces = 1 if world == 1 else 4 if "similarity_distillation" in settings else 3
    for found in replayed:
        assert found["numbers"] == replayed[0]["numbers"] and torch.equal(weights(found), weights(replayed[0]))
        assert found["graphs"] == found["shapes"] * pieces and found["shapes"] > 1
        assert found["replays"] >= STEPS // 3 * pieces
    if world > 2:  # some steps are captured by one rank and replayed or eager on another
        assert len({tuple(found["captures"]) for found in replayed}) > 1


CLIPPED, HALF = {"max_grad_norm": 0.1}, {"precision": "fp16"}
OTHERS = [(2, CLIPPED), (2, HALF), *((world, kind) for world in (3, 4) for kind in ({}, CLIPPED, HALF))]


@pytest.mark.parametrize(("world", "settings"), cases([(2, {})], OTHERS))
def test_several_ranks_with_graphs_equal_one_rank(ranks_train, world, settings):
    (one,) = ranks_train(1, compile="graphs", dropout=0.0, **settings)
    for found in ranks_train(world, compile="graphs", dropout=0.0, **settings):
        assert are_close(found, one)


@pytest.mark.parametrize(("world", "settings"), cases([(1, FP16), (2, FP16)], [(1, BF16), (2, {})]))
def test_a_resumed_run_is_bit_identical(ranks_train, tmp_path, world, settings):
    whole = ranks_train(world, compile="graphs", **settings)
    ranks_train(world, compile="graphs", folder=tmp_path, stop=STOP, **settings)
    resumed = ranks_train(world, compile="graphs", folder=tmp_path, resume=True, **settings)
    for found in whole:
        found["numbers"], found["scales"] = found["numbers"][STOP:], found["scales"][STOP:]
    assert are_same(whole, resumed) and all(found["replays"] for found in resumed)


@pytest.mark.slow
def test_all_ranks_skip_a_step_that_overflows_in_fp16(ranks_train):
    settings = {"precision": "fp16", "max_grad_norm": 0.1, "overflow": 9}
    eager, replayed = (ranks_train(2, compile=compile, **settings) for compile in ("off", "graphs"))
    assert are_same(eager, replayed) and eager[0]["scales"] == eager[1]["scales"]
    assert eager[0]["scales"][9:12] == [2.0**29, 2.0**28, 2.0**27]
    assert all(weights(found).isfinite().all() and moments(found).isfinite().all() for found in eager)


@pytest.mark.slow
def test_a_rank_without_sentences_replays_graphs_too(ranks_train):
    """The last step of an epoch has 3 sentences for 4 ranks."""
    settings = {"sentences": UNEVEN, "dropout": 0.0, "alpha": 1}
    eager, replayed = (ranks_train(4, compile=compile, **settings) for compile in ("off", "graphs"))
    assert are_same(eager, replayed) and are_close(eager[0], ranks_train(1, compile="off", **settings)[0])
    assert replayed[0]["replays"] >= STEPS


def test_dropout_masks_differ_between_ranks(groups, tmp_path, tiny_model):
    groups(2).call(compare_one_text, str(tmp_path), str(tiny_model))
    for step in torch.load(tmp_path / "0.pt"):
        assert len({round(cosine, 6) for cosine in step}) == 8


@pytest.mark.slow
def test_a_gradient_cache_of_several_ranks_runs_eagerly(ranks_train):
    (one,) = ranks_train(1, compile="graphs", dropout=0.0)
    for found in ranks_train(2, compile="graphs", dropout=0.0, grad_cache=3):
        assert are_close(found, one) and not found["graphs"]


def test_a_gradient_cache_runs_eagerly(train_alone, capsys):
    eager, same = (train_alone(compile=compile, grad_cache=4) for compile in ("off", "graphs"))
    assert are_same([eager], [same]) and not same["graphs"]
    assert "--grad-cache" in capsys.readouterr().err


@pytest.mark.slow
def test_compiled_layers_are_captured_too(train_alone, monkeypatch, capsys):
    """Results are bit-identical to eager steps with compiled layers, and after a resume."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    whole = train_alone(compile="on")
    assert whole["replays"] >= STEPS // 3 and "not compiled" not in capsys.readouterr().err
    resumed = train_alone(compile="on", state=train_alone(compile="on", stop=STOP)["state"])
    assert resumed["numbers"] == whole["numbers"][STOP:] and torch.equal(weights(resumed), weights(whole))
    monkeypatch.setattr(graphs, "MOST", 0)
    assert are_same([train_alone(compile="on")], [whole])


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
def test_the_stand_in_detects_planted_faults(train_alone, monkeypatch, fault):
    """A fault of Trainer is also in the eager run, because only a replay makes its results wrong."""
    where, name, faulty = FAULTS[fault]
    if where is Trainer:
        monkeypatch.setattr(where, name, faulty)
    eager = train_alone(compile="off", n_parts=2)
    monkeypatch.setattr(where, name, faulty)
    assert not are_same([eager], [train_alone(compile="graphs", n_parts=2)])


def test_a_step_that_waits_stays_eager(train_alone, monkeypatch, capsys):
    plain = Trainer._compare

    def waiting(*given):
        warnings.warn("called a synchronizing CUDA operation", stacklevel=1)
        warnings.warn("another", stacklevel=1)
        return plain(*given)

    eager = train_alone(compile="off")
    monkeypatch.setattr(Trainer, "_compare", waiting)
    with pytest.warns(UserWarning, match="another"):
        same = train_alone(compile="graphs")
    said = [line for line in capsys.readouterr().err.splitlines() if "run eagerly" in line]
    assert are_same([eager], [same]) and not same["graphs"] and said and all(f"{__file__}:" in line for line in said)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("not permitted\nmore")])
def test_after_a_failed_capture_steps_run_eagerly_or_the_run_ends(train_alone, monkeypatch, capsys, error):
    """If memory runs out, the run continues with eager steps; any other error ends it."""
    eager, plain = train_alone(compile="off"), torch.amp.GradScaler.step

    def fail(scaler, optimizer):
        if RecordedGraph.capturing:
            raise error
        return plain(scaler, optimizer)

    monkeypatch.setattr(torch.amp.GradScaler, "step", fail)
    if not isinstance(error, torch.OutOfMemoryError):
        with pytest.raises(InputError, match="not permitted: .*--compile off$"):
            train_alone(compile="graphs")
        return
    assert are_same([eager], [train_alone(compile="graphs")])
    assert capsys.readouterr().err.count("continues without them") == 1


def test_the_number_of_graphs_is_limited(train_alone, monkeypatch):
    monkeypatch.setattr(graphs, "MOST", 1)
    eager, same = (train_alone(compile=compile) for compile in ("off", "graphs"))
    assert are_same([eager], [same]) and same["graphs"] == 1
