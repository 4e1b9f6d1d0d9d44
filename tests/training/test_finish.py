"""What follows a finished run: its scores, and its model card with the command that repeats the run."""

import json
import re
import shlex
from typing import Any

import pytest
from huggingface_hub import ModelCard

from support.run_folders import write_evaluation, write_run
from support.small_runs import write_senteval
from train.config import make_run
from train.ddp import command
from train.evaluation.scoring import is_scored
from train.launch.finish import finish

SETTINGS = {
    "augment": "una", "corpus": ("wiki.txt.gz", "news of today.txt"), "dev": "data/sts-dev.csv",
    "beta": 0.25, "surface": "kept",
    "model": "google/bert_uncased_L-2", "lowercase": False, "radius": "1%", "output": "/home/somebody/run",
}  # fmt: skip
PARTS = {
    "resume_fingerprint": {"corpus": "0123abcd"}, "corpus": {"trained_on": 12345}, "resolved": {"radius": 235},
    "progress": {"step": 400, "best_step": 300, "start_score": 0.7, "last_score": 0.74}, "ranks": 2,
}  # fmt: skip


@pytest.fixture
def card(tmp_path) -> Any:
    """Return a function that changes parts of run.json, finishes the run, and returns its card."""
    output = write_run(tmp_path / "my-run", 0.75, **{**SETTINGS, "output": str(tmp_path / "my-run")})
    (output / "best").mkdir()
    write_evaluation(output, 0.8)
    summary = {**json.loads((output / "run.json").read_text()), **PARTS}

    def finished(**changes: Any):
        changed = {name: {**summary[name], **change} for name, change in changes.items()}
        (output / "run.json").write_text(json.dumps({**summary, **changed}))
        finish(make_run({**SETTINGS, "output": str(output)}))
        return (output / "best" / "README.md").read_text(encoding="utf-8")

    return finished


def test_huggingface_hub_parses_the_card(card):
    data = ModelCard(card()).data
    assert (data.library_name, data.pipeline_tag) == ("sentence-transformers", "sentence-similarity")
    assert data.base_model == "google/bert_uncased_L-2"
    assert {"sentence-transformers", "una_fast", "loss:triplet"} <= set(data.tags)
    assert data.model_name == "my-run"
    scores = {result.dataset_name: result.metric_value for result in data.eval_results}
    assert scores == {"sts-dev, best": 0.75, "STS-B": 0.8}  # STS12 has no score
    assert {result.metric_type for result in data.eval_results} == {"spearman_cosine"}


def test_the_card_describes_the_run(card, tmp_path):
    text = card()
    for expected in (
        "# my-run", "0123abcd", "12345 sentences", "shu2024una", "| sts-dev, best | 75.00 |",
        "trained with una_fast: contrastive learning with hard negatives", "- steps: 300 of 400", "- seed: 42",
        "- ranks: 2", "- dev score of the start: 70.00", "- dev score of the last step: 74.00",
        "- hard negatives: una, in every step (alpha)", "- beta: 0.25", "- radius: 235", "- surface: kept",
    ):  # fmt: skip
        assert expected in text
    assert str(tmp_path) not in text
    searched = card(settings={"dev": str(tmp_path)})  # a folder of retrieval sets
    assert re.search(r"^\| \S+, best, nDCG@10 \| 75.00 \|$", searched, re.MULTILINE) and "| STS-B | 80.00 |" in searched
    types = {result.dataset_name[-4:]: result.metric_type for result in ModelCard(searched).data.eval_results}
    assert types == {"best": "cosine_ndcg@10", "TS-B": "spearman_cosine"}
    text = card(settings={"augment": "una_fast.augment.numba:NumbaAugmentation"})  # it ignores two options
    assert "- surface: kept" in text and not re.search("^- (beta|radius):", text, re.MULTILINE)


@pytest.mark.parametrize("settings", [{"augment": "none"}, {"alpha": 0}])
def test_the_card_of_a_run_without_negatives_or_without_a_better_step_says_so(card, settings):
    text = card(settings=settings)
    assert "learning without hard negatives" in text and "- hard negatives: none" in text and "- beta" not in text
    text = card(progress={"best_step": 0})
    assert "The initial model of a training run with una_fast, unchanged" in text and "- steps: 0 of 400" in text


def test_the_card_contains_no_local_path_and_its_command_repeats_the_run(card):
    paths = {"corpus": ["/home/somebody/wiki.txt"], "dev": "/home/somebody/dev.tsv", "model": "/home/somebody/bert"}
    text = card(settings=paths)
    assert "/home" not in text and "--corpus wiki.txt" in text and "--dev=dev.tsv" in text
    assert ModelCard(text).data.base_model is None
    for given, shown in (("my models/model", "my models/model"), ("/home/somebody/x/bert/model", "bert/model")):
        assert f"- started from: `{shown}`" in card(settings={"model": given})
    (line,) = (line for line in card().splitlines() if line.startswith("python -m train.ddp"))
    assert command.read([*shlex.split(line)[3:], "--output", SETTINGS["output"]]) == make_run(SETTINGS)


def test_a_run_against_near_misses_ends_with_the_command_that_measures_it(card, tmp_path, capsys):
    card()
    assert "una-fast" not in capsys.readouterr().err
    card(settings={"augment": "near-misses", "model": "my model"})
    *_, last = capsys.readouterr().err.splitlines()
    best = tmp_path / "my-run" / "best"
    assert last.endswith(f": una-fast probe --model 'my model' {best} --pairs pairs.tsv")
    card(settings={"augment": "near-misses"}, progress={"best_step": 0})  # best/ is the model before training
    assert "una-fast probe" not in capsys.readouterr().err


def test_tasks_that_cannot_be_read_are_not_scored_at_each_resume(tmp_path):
    output = write_run(tmp_path / "run", 0.75)
    data = write_senteval(tmp_path / "data")  # only STSBenchmark
    run = make_run({**SETTINGS, "output": str(output), "evaluate": str(data), "tasks": "STSBenchmark,STS13"})
    assert not is_scored(run)
    write_evaluation(output, 0.8)
    assert is_scored(run)
