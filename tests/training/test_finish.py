"""What follows a finished run: its model card, whose command repeats the run, and `--push-to` a hub."""

import dataclasses
import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, create_autospec

import pytest
from huggingface_hub import HfApi, ModelCard, constants
from huggingface_hub.utils import HfHubHTTPError, filter_repo_objects

from support.run_folders import write_evaluation, write_run
from support.small_runs import write_senteval
from train.config import make_parser, make_run
from train.launch import finish as launcher
from train.launch import seeds
from train.launch.start import Start
from una_fast.errors import InputError

SETTINGS = {
    "augment": "una", "corpus": ("wiki.txt.gz", "news of today.txt"), "dev": "data/sts-dev.csv", "beta": 0.25,
    "model": "google/bert_uncased_L-2", "lowercase": False, "radius": "1%", "output": "/home/somebody/run",
}  # fmt: skip
PARTS = {
    "resume_fingerprint": {"corpus": "0123abcd"}, "corpus": {"trained_on": 12345}, "resolved": {"radius": 235},
    "progress": {"step": 400, "best_step": 300, "start_score": 0.7, "last_score": 0.74}, "ranks": 2,
}  # fmt: skip


@pytest.fixture
def card(tmp_path: Path) -> Any:
    """A function that finishes a run, with changed parts of run.json, and returns its card."""
    output = write_run(tmp_path / "my-run", 0.75, **{**SETTINGS, "output": str(tmp_path / "my-run")})
    (output / "best").mkdir()
    write_evaluation(output, 0.8)
    summary = {**json.loads((output / "run.json").read_text()), **PARTS}

    def finished(**changes: Any) -> str:
        changed = {name: {**summary[name], **change} for name, change in changes.items()}
        (output / "run.json").write_text(json.dumps({**summary, **changed}))
        assert launcher.finish(make_run({**SETTINGS, "output": str(output)})) == 0
        return (output / "best" / "README.md").read_text(encoding="utf-8")

    return finished


def test_the_hub_reads_it(card: Any) -> None:
    data = ModelCard(card()).data
    assert (data.library_name, data.pipeline_tag) == ("sentence-transformers", "sentence-similarity")
    assert data.base_model == "google/bert_uncased_L-2"
    assert {"sentence-transformers", "una_fast", "loss:triplet"} <= set(data.tags)
    assert data.model_name == "my-run"
    scores = {result.dataset_name: result.metric_value for result in data.eval_results}
    assert scores == {"sts-dev, best": 0.75, "STS-B": 0.8}  # STS12 has no score
    assert {result.metric_type for result in data.eval_results} == {"spearman_cosine"}


def test_a_person_reads_it(card: Any, tmp_path: Path) -> None:
    text = card()
    for expected in (
        "# my-run", "0123abcd", "12345 sentences", "shu2024una", "| sts-dev, best | 75.00 |",
        "trained with una_fast: contrastive learning with hard negatives", "- steps: 300 of 400", "- seed: 42",
        "- ranks: 2", "- dev score of the start: 70.00", "- dev score of the last step: 74.00",
        "- hard negatives: una, in the first of every 1 steps", "- beta: 0.25", "- radius: 235", "- surface: kept",
    ):  # fmt: skip
        assert expected in text
    assert str(tmp_path) not in text


def test_a_card_leaves_out_what_an_own_augmentation_ignores(card: Any) -> None:
    text = card(settings={"augment": "una_fast.augment.numba:NumbaAugmentation"})
    assert "- surface: kept" in text and not re.search("^- (beta|radius):", text, re.MULTILINE)


@pytest.mark.parametrize("settings", [{"augment": "none"}, {"alpha": 0}])
def test_a_run_without_negatives_or_better_step_says_so(card: Any, settings: dict[str, Any]) -> None:
    text = card(settings=settings)
    assert "learning without hard negatives" in text and "- hard negatives: none" in text and "- beta" not in text
    text = card(progress={"best_step": 0})
    assert "The model from which a training with una_fast began, unchanged" in text and "- steps: 0 of 400" in text


def test_no_path_of_the_machine_is_in_it_and_its_command_is_the_run(card: Any) -> None:
    paths = {"corpus": ["/home/somebody/wiki.txt"], "dev": "/home/somebody/dev.tsv", "model": "/home/somebody/bert"}
    text = card(settings=paths)
    assert "/home" not in text and "--corpus wiki.txt" in text and "--dev=dev.tsv" in text
    assert ModelCard(text).data.base_model is None
    (line,) = (line for line in card().splitlines() if line.startswith("python -m train.ddp"))
    given = make_parser().given([*shlex.split(line)[3:], "--output", SETTINGS["output"]])
    assert make_run(given) == make_run(SETTINGS)


def files_in(folder):
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def hub(monkeypatch):
    """A stand-in for the hub's client, with its signatures; it keeps the repositories, and which are private."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_tests")
    hub = create_autospec(HfApi, instance=True, endpoint="https://hub", repositories={}, private={}, refusal=None)

    def create_repo(name, private, exist_ok):
        name = name if "/" in name else f"somebody/{name}"
        assert exist_ok or name not in hub.private
        hub.private[name] = bool(private)
        return SimpleNamespace(repo_id=name)

    def upload_folder(repo_id, folder_path, commit_message, ignore_patterns):
        if hub.refusal:
            raise HfHubHTTPError(f"{hub.refusal} No", response=Mock(status_code=hub.refusal, headers={}))
        paths = (path.relative_to(folder_path).as_posix() for path in files_in(folder_path))
        kept = filter_repo_objects(paths, ignore_patterns=ignore_patterns)
        hub.repositories[repo_id] = {name: (folder_path / name).read_bytes() for name in kept}
        return SimpleNamespace(commit_url=f"https://hub/{repo_id}/commit/1")

    hub.create_repo.side_effect, hub.upload_folder.side_effect = create_repo, upload_folder
    monkeypatch.setattr(launcher, "HfApi", lambda endpoint: hub)
    return hub


@pytest.fixture
def run(tmp_path: Path):
    """A finished run, and its options."""
    settings = {"corpus": ("c.txt",), "model": "google/bert_uncased_L-2", "output": str(tmp_path / "run")}
    folder = write_run(tmp_path / "run", 0.75, **settings, loss="pairs", dev="dev.csv")
    (folder / "best" / "1_Pooling").mkdir(parents=True)
    (folder / "best" / "model.safetensors").write_bytes(b"weights" * 1000)
    (folder / "best" / "config.json").write_text("{}")
    (folder / "best" / "1_Pooling" / "config.json").write_text('{"pooling": "cls"}')
    (folder / "best" / ".model.safetensors.partial").write_bytes(b"what a killed process leaves")
    return make_run({**settings, "push_to": "una-model"})


def test_best_and_its_card_are_pushed(hub, run, capsys):
    assert launcher.finish(run) == 0
    assert list(hub.repositories) == ["somebody/una-model"] and hub.private == {"somebody/una-model": False}
    files, best = hub.repositories["somebody/una-model"], Path(run.output) / "best"
    assert files == {
        path.relative_to(best).as_posix(): path.read_bytes() for path in files_in(best) if path.suffix != ".partial"
    }
    card = files["README.md"].decode()
    assert (
        'SentenceTransformer("somebody/una-model")' in card and ModelCard(card).data.model_name == "somebody/una-model"
    )
    assert "pushed: https://hub/somebody/una-model/commit/1" in capsys.readouterr().err
    assert launcher.finish(dataclasses.replace(run, push_to="lab/una-model", push_private=True)) == 0
    assert hub.private["lab/una-model"]


@pytest.mark.parametrize(("refusal", "reason"), [(403, "403 No"), (None, "(http://127.0.0.1:9)")])
def test_a_hub_that_refuses_or_is_not_there_costs_nothing(hub, run, capsys, monkeypatch, refusal, reason):
    hub.refusal = refusal
    if not refusal:
        monkeypatch.setattr(launcher, "HfApi", HfApi)
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    before = files_in(Path(run.output))
    assert launcher.finish(run) == launcher.EXIT_NOT_PUSHED
    said = capsys.readouterr().err
    assert "\nerror: --push-to una-model: " in said and reason in said and "Traceback" not in said
    assert "best is complete, and the same command with --resume pushes it again" in said
    assert before < files_in(Path(run.output)) and (Path(run.output) / "best" / "README.md").is_file()


def test_what_cannot_be_pushed_is_said_before_training(hub, tiny_model, tmp_path, monkeypatch):
    values = {"corpus": "c.txt", "model": str(tiny_model), "output": str(tmp_path / "run"), "device": "cpu"}
    Start(make_run({**values, "push_to": "a/b"}))
    with pytest.raises(InputError, match="--push-to: Repo id must .*'a b'"):
        Start(make_run({**values, "push_to": "a b"}))
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(InputError, match="there is no token for the hub"):
        launcher.check_finish(make_run({**values, "push_to": "a/b"}))


@pytest.mark.parametrize(("codes", "launched", "code"), [([3, 0, 0], 3, 3), ([3, 2, 0], 2, 2), ([0, 0, 0], 3, 0)])
def test_each_seed_has_a_repository_and_none_stops_the_next(run, monkeypatch, tmp_path, codes, launched, code):
    """After a failed push the other seeds are trained; after a run that did not finish they are not."""
    pushed_to = []
    monkeypatch.setattr(seeds, "_write_table", lambda output, folders: None)
    monkeypatch.setattr(seeds, "launch", lambda run: pushed_to.append(run.push_to) or codes[len(pushed_to) - 1])
    assert seeds.train_seeds(dataclasses.replace(run, output=str(tmp_path / "seeds"), seeds=(42, 0, 1))) == code
    assert pushed_to == [f"una-model-seed-{seed}" for seed in (42, 0, 1)][:launched]


def test_tasks_that_cannot_be_read_are_not_scored_at_each_resume(tmp_path: Path) -> None:
    output = write_run(tmp_path / "run", 0.75)
    data = write_senteval(tmp_path / "data")  # of STSBenchmark alone
    run = make_run({**SETTINGS, "output": str(output), "evaluate": str(data), "tasks": "STSBenchmark,STS13"})
    assert not launcher.is_scored(run)
    write_evaluation(output, 0.8)
    assert launcher.is_scored(run)
