"""The folder of a run: no file in it is lost, changed or left behind without a message."""

import dataclasses
import json
from pathlib import Path

import pytest

from support import small_runs as training
from support.small_runs import final_state, flat, metrics, options, train_here
from train.ddp import _with_saved, main
from train.record.folder import (
    foreign_file,
    note_written,
    own_files,
    read_summary,
    read_written,
    remove_own_files,
    writing_into,
)
from train.record.metrics import keep_metrics_until
from train.record.pointer import Pointer, Progress, read_pointer, saved_options, write_pointer
from una_fast.errors import InputError


@pytest.fixture
def pointer(tmp_path):
    """A folder with a checkpoint.json in it."""
    (tmp_path / "last").mkdir()
    progress = Progress(12, 0.5, 0.8123456789, 10, 0.8, 12)
    settings = {"temperature": 0.05, "corpus": ["a.txt"], "output": "runs/a", "index": "runs/a/index", "later": 1}
    write_pointer(tmp_path, Pointer("state-00000012.pt", "ab" * 16, progress, settings, {"corpus": {"x": "é"}}))
    return tmp_path


def test_every_flipped_bit_is_refused_or_changes_nothing(pointer):
    path = pointer / "last" / "checkpoint.json"
    content, whole = path.read_bytes(), read_pointer(pointer)
    refused = 0
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            assert read_pointer(pointer) == whole
        except InputError:
            refused += 1
    assert refused > 4 * len(content)


@pytest.mark.parametrize(
    "change", [{"progress": {"step": "12"}}, {"state": "../x.pt"}, {"progress": {"steps": 1}}, {"settings": 3}]
)
def test_a_sealed_file_of_wrong_types_is_refused(pointer, change):
    from train.record.pointer import seal

    path = pointer / "last" / "checkpoint.json"
    content = {**json.loads(path.read_text()), **change}
    content.pop("seal")
    path.write_text(json.dumps({**content, "seal": seal(content)}))
    with pytest.raises(InputError, match=r"checkpoint.json: damaged \(.*start again without --resume"):
        read_pointer(pointer)


@pytest.mark.parametrize("content", ["[]", "3", '{"version": 1, "state": "x"}', "{", "null"])
def test_another_layout_is_said(pointer, content):
    (pointer / "last" / "checkpoint.json").write_text(content)
    with pytest.raises(InputError, match="its layout is number|cannot be read"):
        read_pointer(pointer)


class TestWhatTheRunWrote:
    def test_files_added_beside_a_user_s_own(self, tmp_path):
        (tmp_path / "best").mkdir()
        with writing_into(tmp_path, "best"):
            (tmp_path / "best" / "a[1].json").touch()
        (tmp_path / "best" / "mine.txt").touch()
        (tmp_path / "notes.txt").touch()
        assert foreign_file(tmp_path) == tmp_path / "best" / "mine.txt"
        remove_own_files(tmp_path)
        assert {path.name for path in tmp_path.rglob("*")} == {"best", "mine.txt", "notes.txt"}

    def test_a_write_that_is_killed_leaves_nothing_foreign(self, tmp_path):
        with pytest.raises(KeyboardInterrupt), writing_into(tmp_path, "best"):
            (tmp_path / "best" / "1_Pooling").mkdir(parents=True)
            (tmp_path / "best" / "1_Pooling" / "config.json").touch()
            raise KeyboardInterrupt
        assert foreign_file(tmp_path) is None
        remove_own_files(tmp_path)
        assert not any(tmp_path.iterdir())

    def test_a_list_that_was_tampered_with_removes_nothing_outside(self, tmp_path):
        outside, output = tmp_path / "outside.txt", tmp_path / "run"
        outside.touch()
        note_written(output, ["../outside.txt", str(outside), "run.json", "best/../../outside.txt"])
        assert read_written(output) == ["run.json"]
        remove_own_files(output)
        assert outside.exists()
        for wrong in ("[]", '{"files": 3}', '{"files": [3, null, ""]}', "{"):
            (output / ".written.json").write_text(wrong)
            assert not own_files(output)


@pytest.mark.parametrize("wrong", ["[]", "3", '"finished"', '{"settings": []}', '{"status": ["finished"]}', "{"])
def test_a_summary_of_wrong_types_is_no_traceback(tmp_path, tiny_model, wrong):
    values = options(tmp_path, tiny_model)
    output = Path(values["output"])
    output.mkdir()
    (output / "run.json").write_text(wrong)
    with pytest.raises(InputError, match="holds run.json, which no run of this program is known to have written"):
        train_here(values)
    assert (output / "run.json").read_text() == wrong
    assert isinstance(read_summary(output), dict)


def test_metrics_of_wrong_types_are_cut_there(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0, "loss": 1}\n7\n{"step": 1, "loss": 1}\n')
    keep_metrics_until(path, 2)
    assert path.read_text() == '{"step": 0, "loss": 1}\n'


def refusal(capsys, values):
    with pytest.raises(SystemExit) as left:
        main(training.command(values)[3:])
    assert left.value.code == 2
    return capsys.readouterr().err


@pytest.fixture(scope="module")
def finished(tmp_path_factory, tiny_model):
    """The option values of a finished run, of 4 steps."""
    values = options(tmp_path_factory.mktemp("finished"), tiny_model, max_steps=4)
    assert train_here(values).status == "finished"
    return values


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


def test_a_finished_run_keeps_its_weights_and_no_optimiser(finished):
    state = final_state(finished["output"])
    assert list(state) == ["model", "scaler"] and flat(state)
    assert [path.name for path in (Path(finished["output"]) / "last").glob("*.pt")] == ["weights-00000004.pt"]


def test_a_run_killed_before_it_said_finished_ends_with_resume(finished, tmp_path):
    import shutil

    output = tmp_path / "copy"
    shutil.copytree(finished["output"], output)
    summary = json.loads((output / "run.json").read_text())
    (output / "run.json").write_text(json.dumps({**summary, "status": "running"}))
    assert train_here({**finished, "output": str(output), "resume": True}).status == "finished"
    assert metrics(output) == metrics(finished["output"])


@pytest.mark.parametrize("gone", ["last", "last/checkpoint.json"])
def test_results_outlive_their_checkpoint(finished, capsys, tmp_path, gone):
    """If last/ was removed to save space, best/, scores and metrics stay, also when the new command is wrong."""
    import shutil

    output = tmp_path / "copy"
    shutil.copytree(finished["output"], output)
    shutil.rmtree(output / gone) if (output / gone).is_dir() else (output / gone).unlink()
    (output / "run.json").write_text('{"status": "stopped"}')
    before = content(output)
    for corpus in (finished["corpus"], (str(tmp_path / "none.txt"),)):
        refusal(capsys, {**finished, "output": str(output), "corpus": corpus})
        assert content(output) == before


def test_files_of_other_software_are_left_alone(finished, capsys, tmp_path):
    for name in ("best/model.bin", "tensorboard/events.out", "metrics.jsonl", "last/x"):
        output = tmp_path / name.split("/")[0]
        (output / name).parent.mkdir(parents=True)
        (output / name).write_text("mine")
        said = refusal(capsys, {**finished, "output": str(output)})
        assert f"holds {name}, which no run of this program is known to have written: choose another folder" in said
        assert (output / name).read_text() == "mine"


def test_a_run_without_a_checkpoint_gives_way(finished, tmp_path):
    output = tmp_path / "run"
    note_written(output, ["run.json", "metrics.jsonl", "best/**/*"])
    (output / "run.json").write_text('{"status": "running"}')
    (output / "metrics.jsonl").write_text('{"step": 99, "loss": 1}\n')
    (output / "notes.txt").write_text("mine")
    assert train_here({**finished, "output": str(output)}).status == "finished"
    assert metrics(output) == metrics(finished["output"]) and (output / "notes.txt").read_text() == "mine"


def test_refused_runs_leave_no_folders(finished, capsys, tmp_path):
    new = {name: value for name, value in finished.items() if name != "index"}
    for change in ({"corpus": (str(tmp_path / "none.txt"),)}, {"batch_size": 69}, {"resume": True}):
        refusal(capsys, {**new, "output": str(tmp_path / "a" / "b"), **change})
        assert not (tmp_path / "a").exists()


class TestResumeAlone:
    def test_every_option_is_the_run_s_own(self, finished):
        output = finished["output"]
        values = _with_saved({"resume": True, "output": output})
        run, first = (training.make_run(one) for one in (values, finished))
        names = [field.name for field in dataclasses.fields(run) if field.name not in ("resume",)]
        same = {name for name in names if getattr(run, name) == getattr(first, name)}
        # only options that depend on the machine or the model were resolved
        assert {*names} - same <= {"schedule", "augment", "compile", "pooling", "head", "learning_rate"}

    def test_a_given_option_wins(self, finished):
        given = {"resume": True, "output": finished["output"], "temperature": 0.1}
        assert _with_saved(given)["temperature"] == 0.1

    def test_the_index_moves_with_the_folder_and_unknown_options_are_left_out(self, pointer):
        assert saved_options(pointer) == {"temperature": 0.05, "corpus": ("a.txt",)}

    def test_a_command_of_two_words(self, finished, capsys):
        assert main(["--resume", "--output", finished["output"]]) == 0
        assert "already finished" in capsys.readouterr().err
