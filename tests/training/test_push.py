"""`--push-to`: the files that reach the hub, and the message if the upload fails."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, create_autospec

import pytest
from huggingface_hub import HfApi, ModelCard, constants
from huggingface_hub.utils import HfHubHTTPError, filter_repo_objects

from support.run_folders import write_run
from train.config.run import make_run
from train.launch import finish as launcher
from train.launch import seeds
from train.launch.prepare import resolve_options
from una_fast.errors import InputError


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


def test_a_repository_may_be_private_and_have_an_owner(hub, run):
    assert launcher.finish(dataclasses.replace(run, push_to="lab/una-model", push_private=True)) == 0
    assert hub.private == {"lab/una-model": True}


@pytest.mark.parametrize(("refusal", "reason"), [(403, "403 No"), (None, "(http://127.0.0.1:9)")])
def test_a_hub_that_refuses_or_is_not_there_costs_nothing(hub, run, capsys, monkeypatch, refusal, reason):
    hub.refusal = refusal
    if not refusal:
        monkeypatch.setattr(launcher, "HfApi", HfApi)
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    before = files_in(Path(run.output))
    assert launcher.finish(run) == launcher.EXIT_NOT_PUSHED
    said = capsys.readouterr().err
    assert said.startswith("error: --push-to una-model: ") and reason in said and "Traceback" not in said
    assert "best is complete, and the same command with --resume pushes it again" in said
    assert before < files_in(Path(run.output)) and (Path(run.output) / "best" / "README.md").is_file()


def test_what_cannot_be_pushed_is_said_before_training(hub, tiny_model, tmp_path, monkeypatch):
    values = {"corpus": "c.txt", "model": str(tiny_model), "output": str(tmp_path / "run"), "device": "cpu"}
    resolve_options(make_run({**values, "push_to": "a/b"}))
    with pytest.raises(InputError, match="--push-to: Repo id must .*'a b'"):
        resolve_options(make_run({**values, "push_to": "a b"}))
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(InputError, match="there is no token for the hub"):
        launcher.check_finish(make_run({**values, "push_to": "a/b"}))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="HF_HUB_OFFLINE"):
        launcher.check_finish(make_run({**values, "push_to": "a/b"}))
    with pytest.raises(InputError, match="--push-private: nothing is pushed: give --push-to NAME too"):
        make_run({**values, "push_private": True})


@pytest.mark.slow
def test_each_seed_has_a_repository_and_none_stops_the_next(run, monkeypatch):
    """After a failed push the other seeds are trained; after a run that did not finish they are not."""
    runs = [seeds.of_seed(run, seed) for seed in (42, 0, 1)]
    assert [one.push_to for one in runs] == ["una-model-seed-42", "una-model-seed-0", "una-model-seed-1"]
    for codes, launched, code in [([3, 0, 0], 3, 3), ([3, 2, 0], 2, 2), ([0, 0, 0], 3, 0)]:
        left = iter(codes)
        monkeypatch.setattr(seeds, "launch", lambda one, left=left: next(left))
        assert seeds._train_each(runs) == code and len(list(left)) == 3 - launched
