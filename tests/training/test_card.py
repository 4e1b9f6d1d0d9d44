"""The model card of a run: the fields that the hub reads, and the command that repeats the run."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

from support.run_folders import write_evaluation, write_run
from train.config.run import make_parser, make_run
from train.launch.finish import hub_name
from train.launch.run import finish

SETTINGS = {
    "augment": "una", "corpus": ("wiki.txt.gz", "news of today.txt"), "dev": "data/sts-dev.csv", "beta": 0.25,
    "model": "google/bert_uncased_L-2", "lowercase": False, "radius": "1%", "output": "/home/somebody/run",
}  # fmt: skip


@pytest.fixture
def output(tmp_path: Path) -> Path:
    folder = write_run(tmp_path / "my-run", 0.75, **{**SETTINGS, "output": str(tmp_path / "my-run")})
    (folder / "best").mkdir()
    summary = json.loads((folder / "run.json").read_text())
    summary |= {"resume_fingerprint": {"corpus": "0123abcd"}, "corpus": {"trained_on": 12345}}
    (folder / "run.json").write_text(json.dumps(summary))
    return folder


def finished(output: Path) -> str:
    """The card of a finished run."""
    assert finish(make_run({**SETTINGS, "output": str(output)})) == 0
    return (output / "best" / "README.md").read_text(encoding="utf-8")


def test_the_hub_reads_it(output: Path) -> None:
    write_evaluation(output, 0.8)
    data = ModelCard(finished(output)).data
    assert (data.library_name, data.pipeline_tag) == ("sentence-transformers", "sentence-similarity")
    assert data.base_model == "google/bert_uncased_L-2"
    assert {"sentence-transformers", "una_fast", "loss:triplet"} <= set(data.tags)
    assert data.model_name == "my-run"
    scores = {result.dataset_name: result.metric_value for result in data.eval_results}
    assert scores == {"dev (sts-dev.csv)": 0.75, "STSBenchmark": 0.8}  # STS12 has no score
    assert {result.metric_type for result in data.eval_results} == {"spearman_cosine"}


def test_a_person_reads_it(output: Path) -> None:
    text = finished(output)
    for expected in ("# my-run", "0123abcd", "12,345 sentences", "shu2024una", "| dev (sts-dev.csv) | 75.00 |"):
        assert expected in text
    assert "/home/somebody" not in text and str(output.parent) not in text


def changed(output: Path, **parts: Any) -> str:
    """The card of the run with other settings and progress: a part of run.json is updated with each argument."""
    summary = json.loads((output / "run.json").read_text())
    for name, part in parts.items():
        summary[name] = {**summary.get(name, {}), **part} if isinstance(part, dict) else part
    (output / "run.json").write_text(json.dumps(summary))
    return finished(output)


def test_it_says_how_the_model_was_trained(output: Path) -> None:
    progress = {"step": 400, "best_step": 300, "start_score": 0.7, "last_score": 0.74}
    text = changed(output, progress=progress, resolved={"radius": 235}, ranks=2)
    for expected in (
        "trained with una_fast: contrastive learning with UNA's hard negatives",
        "- steps: 300 of 400, after which the dev score was best", "- seed: 42", "- ranks: 2",
        "- dev score before training: 70.00", "- dev score after the last step: 74.00",
        "- hard negatives: una, in every step", "- beta: 0.25", "- radius: 235",
        "- surface: kept",
    ):  # fmt: skip
        assert expected in text


def test_a_model_that_no_step_improved_is_not_called_trained(output: Path) -> None:
    text = changed(output, progress={"step": 40, "best_step": 0})
    assert "The model from which a training began, unchanged" in text and "- steps: 0 of 40" in text
    assert "trained with una_fast:" not in text


@pytest.mark.parametrize("settings", [{"augment": "none"}, {"alpha": 0}])
def test_a_run_without_negatives_says_so(output: Path, settings: dict[str, Any]) -> None:
    text = changed(output, settings=settings)
    assert "contrastive learning without hard negatives" in text and "- hard negatives: none" in text
    assert "UNA's" not in text and "- beta" not in text


def test_no_path_of_the_machine_is_in_it(output: Path) -> None:
    cached = "/home/somebody/hub/models--google--bert_uncased_L-2/snapshots/" + 40 * "a"
    paths = {"corpus": ["/home/somebody/wiki.txt"], "dev": "/home/somebody/dev.tsv", "model": cached}
    text = changed(output, settings={**paths, "word_tokenizer": "whitespace"})
    assert "/home" not in text and "--corpus wiki.txt" in text and "--dev=dev.tsv" in text
    assert ModelCard(text).data.base_model == "google/bert_uncased_L-2"


def test_its_command_is_the_run(output: Path) -> None:
    (line,) = (line for line in finished(output).splitlines() if line.startswith("python -m train.ddp"))
    given = make_parser().given([*shlex.split(line)[3:], "--output", str(output)])
    assert make_run(given) == make_run({**SETTINGS, "output": str(output)})


def test_a_folder_is_no_name_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("org").mkdir()
    Path("org/model").mkdir()
    assert hub_name("org/model") is None and hub_name("/models/bert") is None and hub_name("../bert") is None
    assert hub_name("bert-base-uncased") == "bert-base-uncased"
