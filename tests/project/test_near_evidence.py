"""bench.evidence: the recipe against near-misses, its ablations, and the folder that travels to a GPU."""

import json

import torch
from safetensors.torch import load_file

from bench.evidence.bases import copy_encoder
from bench.evidence.conditions import BASES, NEAR, PRESETS, STAGES
from bench.evidence.near_card import PARTS, all_runs
from bench.evidence.runs import of_pairs
from train.config import make_run


def test_every_run_is_a_valid_command_and_differs_from_the_recipe() -> None:
    runs = all_runs()
    assert len({*runs}) == len(runs)
    settings = []
    for one in dict.fromkeys(condition for condition, _ in runs):
        run = make_run({"corpus": ["c.txt"], "model": "m", "output": "o", **one.settings()})
        settings.append((one.base, run))
        assert run.precision in ("fp32", "bf16") and BASES[one.base].half
    assert all(settings.index(one) == place for place, one in enumerate(settings))  # each differs from all others
    recipe = STAGES["near"].conditions({})[0].settings()
    assert recipe == {**recipe, **PRESETS["near_misses"]} and len(STAGES["near"].conditions({})) == len(NEAR)
    assert "near_miss" in PARTS and all(base.corpus.startswith("near_miss/") for base in BASES.values() if base.corpus)


def test_half_precision_there_and_back_is_the_same_encoder(tiny_model, tmp_path) -> None:
    half = copy_encoder(tiny_model, tmp_path / "half", torch.half)
    back = copy_encoder(half, tmp_path / "back", torch.float)
    at_once = copy_encoder(tiny_model, tmp_path / "at-once", torch.half, torch.float)
    paths = [folder / "model.safetensors" for folder in (tiny_model, back, at_once)]
    assert paths[1].read_bytes() == paths[2].read_bytes()
    weights, rounded = map(load_file, paths[:2])
    assert all(torch.allclose(rounded[name], weights[name], rtol=1e-3, atol=1e-6) for name in weights)
    assert (back / "config.json").read_text() == (tiny_model / "config.json").read_text()


def test_groups_of_pairs_are_scores_too(tmp_path) -> None:
    groups = {"number": {"auc": 0.25}, "name": {"auc": 0.5}}
    file = tmp_path / "scores.json"
    file.write_text(json.dumps({"near-miss": {"sick_auc": 0.7, "qqp_near": {"recall": 0.1, "groups": groups}}}))
    assert of_pairs(file) == {"qqp_near recall": 0.1, "qqp_near number": 0.25, "qqp_near name": 0.5}
