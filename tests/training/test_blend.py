"""--blend: best/ is part of the way from the initial encoder to the trained one; training itself does not change."""

import torch
from safetensors.torch import load_file

from support.small_runs import options, train_here
from train.evaluation.model import DevScorer, load_model
from train.evaluation.tasks.reading import read_dev


def weights(folder):
    return load_file(folder / "model.safetensors")


def test_best_is_on_the_way_and_last_is_the_trained_encoder(tmp_path, tiny_model):
    blended, plain = (
        options(tmp_path / name, tiny_model, epochs=1, dev="", pooling="mean", blend=share)
        for name, share in (("blended", 0.25), ("plain", 1.0))
    )
    for values in (blended, plain):
        train_here(values)
    best, last = (weights(tmp_path / "blended" / "run" / name) for name in ("best", "last"))
    initial, trained = weights(tiny_model), weights(tmp_path / "plain" / "run" / "best")
    for name, weight in trained.items():
        assert torch.equal(last[name], weight)
        assert torch.equal(best[name], weight.lerp(initial[name], 0.75))
    assert any(not torch.equal(initial[name], weight) for name, weight in trained.items())


def test_dev_scores_are_those_of_the_blend(tmp_path, tiny_model):
    values = options(tmp_path, tiny_model, epochs=1, pooling="mean", blend=0.5, eval_every=100)
    progress = train_here(values).progress
    chosen = load_model(str(tmp_path / "run" / "best"), device="cpu")
    score = DevScorer(read_dev(values["dev"]), chosen.tokenizer)(chosen.encode)
    assert round(score, 6) == round(progress.best_score, 6)
