"""Steps of several ranks as chains of CUDA graphs, on the stand-in: equal to eager steps and to one rank."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

from support import graph_stand_in
from support.fake_tokens import ALONE, SETTINGS, OneText, fake_views, make_trainer
from train.config import Run
from train.encoder.encoder import SentenceEncoder, load_encoder
from train.encoder.pretrained import quiet
from train.loop.data import BatchMaker

STEPS, STOP = 18, 10  # three epochs of 6 steps
SENTENCES = 47  # the last step of an epoch has 7 sentences, so that one of two ranks has as many as in other steps


def train_rank(ranks, folder, model, settings, stop=STEPS, resume=False):
    """Train, and leave in FOLDER/RANK.pt the results of all steps, the state, and how many graphs were replayed."""
    quiet()
    settings = {**SETTINGS, "dropout": 0.1, "epochs": 3, "augment": "una", **settings}
    sentences, overflow = settings.pop("sentences", SENTENCES), settings.pop("overflow", None)
    run = Run(model=model, output=folder, **settings)
    file = Path(folder) / f"{ranks.rank}.pt"
    state = torch.load(file, weights_only=False)["state"] if resume else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SentenceEncoder, "_looked_up", lambda encoder, parts: parts)  # as on a GPU
        made = graph_stand_in.install(patch)
        encoder = load_encoder(model, run.dropout, run.seed, device="cuda")
        one, maker = make_trainer(run, ranks, encoder, sentences, state, n_parts=1, multiple=8)
        batches = [batch for batch in one.plan.batches() if (STOP if resume else 0) <= batch[0] < stop]
        steps, captures, scales = [], [], []
        for batch in batches:
            if batch[0] == overflow:
                one.scaler._scale.fill_(2.0**30)
            steps.append(one.step(maker.make(*batch)))
            captures.append(len(one.graphs.captured) if one.graphs else 0)
            scales.append(one.scaler.get_scale())
        torch.save({
            "numbers": [[step.loss.item(), *step.cosines.flatten().tolist()] for step in steps],
            "state": copy.deepcopy(one.state()), "scales": scales,
            "replays": sum(graph.replays for graph in made), "graphs": len(made),
            "shapes": len(one.graphs.captured) if one.graphs else 0, "captures": captures,
        }, file)  # fmt: skip
        one.close()


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

    def train(world, *, folder=None, stop=STEPS, resume=False, **settings):
        key = (world, stop, resume, *sorted(settings.items()))
        if key not in done:
            folder = folder or tmp_path_factory.mktemp("ranks")
            request = (str(folder), str(tiny_model), settings, stop, resume)
            if world == 1:
                train_rank(ALONE, *request)
            else:
                groups(world).call(train_rank, *request)
            done[key] = [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(world)]
        return copy.deepcopy(done[key])

    return train


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


def cases(kinds, fast):
    """Return the pairs of 2 to 4 ranks and a kind; all but 2 ranks of the kinds `fast` are slow."""
    return [
        pytest.param(world, kind, marks=() if world == 2 and kind in fast else pytest.mark.slow, id=f"{world}-{kind}")
        for kind in kinds
        for world in (2, 3, 4)
    ]


KINDS = {
    "negatives": {},
    "triplet-bf16": {"loss": "triplet", "precision": "bf16"},
    "clipped-fp16": {"precision": "fp16", "max_grad_norm": 0.1, "weight_decay": 0.1},
    "two gathers": {"loss": "soft", "margin_weight": 1.0, "similarity_distillation": 3.0},
}


@pytest.mark.parametrize(("world", "kind"), cases(KINDS, fast=("clipped-fp16", "two gathers")))
def test_replays_of_several_ranks_are_bit_identical_to_eager_steps(ranks_train, world, kind):
    eager = ranks_train(world, compile="off", **KINDS[kind])
    replayed = ranks_train(world, compile="graphs", **KINDS[kind])
    assert are_same(eager, replayed)
    for found in replayed:
        assert found["numbers"] == replayed[0]["numbers"] and torch.equal(weights(found), weights(replayed[0]))
        assert found["graphs"] == found["shapes"] * (4 if kind == "two gathers" else 3)
        assert found["replays"] >= STEPS and found["shapes"] > 1
    if world > 2:  # some steps are captured by one rank and replayed or eager on another
        assert len({tuple(found["captures"]) for found in replayed}) > 1


@pytest.mark.parametrize(("world", "settings"), cases([{}, {"max_grad_norm": 0.1}, {"precision": "fp16"}], fast=[{}]))
def test_several_ranks_with_graphs_equal_one_rank(ranks_train, world, settings):
    (one,) = ranks_train(1, compile="graphs", dropout=0.0, **settings)
    for found in ranks_train(world, compile="graphs", dropout=0.0, **settings):
        assert are_close(found, one)


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
    settings = {"sentences": 43, "dropout": 0.0, "alpha": 1}
    eager, replayed = (ranks_train(4, compile=compile, **settings) for compile in ("off", "graphs"))
    assert are_same(eager, replayed) and are_close(eager[0], ranks_train(1, compile="off", **settings)[0])
    assert replayed[0]["replays"] >= STEPS


@pytest.mark.parametrize(
    "settings", [pytest.param({}, marks=pytest.mark.slow), {"precision": "fp16", "max_grad_norm": 0.1}], ids=str
)
def test_resumed_ranks_are_bit_identical(ranks_train, tmp_path, settings):
    settings = {"compile": "graphs", **settings}
    whole = ranks_train(2, **settings)
    ranks_train(2, folder=tmp_path, stop=STOP, **settings)
    resumed = ranks_train(2, folder=tmp_path, resume=True, **settings)
    for found in whole:
        found["numbers"], found["scales"] = found["numbers"][STOP:], found["scales"][STOP:]
    assert are_same(whole, resumed)
    assert all(found["replays"] for found in resumed)


@pytest.mark.slow
def test_a_gradient_cache_of_several_ranks_runs_eagerly(ranks_train):
    (one,) = ranks_train(1, compile="graphs", dropout=0.0)
    for found in ranks_train(2, compile="graphs", dropout=0.0, grad_cache=3):
        assert are_close(found, one)
        assert not found["graphs"]


def test_dropout_masks_differ_between_ranks(groups, tmp_path, tiny_model):
    groups(2).call(compare_one_text, str(tmp_path), str(tiny_model))
    for step in torch.load(tmp_path / "0.pt"):
        assert len({round(cosine, 6) for cosine in step}) == 8
