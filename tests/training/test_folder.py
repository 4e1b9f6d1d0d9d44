"""The folder of a run: its owner, complete files, what --resume reads and refuses, and what a user may change."""

import dataclasses
import json
import os
import resource
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerBase

from support import small_runs as training
from support.small_runs import assert_same_run, at_step, final_state, flat, metrics, options, refused, train_here
from support.staged import Killed, disk_full, failing, flip
from train.ddp import main, read_run
from train.demo import demo_settings, free_folder, prepare_demo
from train.encoder.encoder import load_encoder
from train.encoder.pretrained import load_tokenizer
from train.loop.telemetry import trim_metrics
from train.record import checkpoint
from train.record.checkpoint import Progress, check_encoder, load_checkpoint, save_encoder, write_checkpoint
from train.record.folder import MARK, POINTER, RUN, output_folder, resume_advice, saved_step
from una_fast.errors import InputError
from una_fast.storage.files import read_json, write_json


@pytest.fixture(scope="module")
def finished(tmp_path_factory, tiny_model):
    """Return the option values of a finished run of 6 steps."""
    values = options(tmp_path_factory.mktemp("finished"), tiny_model, max_steps=6)
    assert train_here(values).status == "finished"
    return values


@pytest.fixture
def copy(finished, tmp_path):
    return Path(shutil.copytree(finished["output"], tmp_path / "copy"))


@pytest.fixture
def stopped(tmp_path, tiny_model):
    """Return the option values of the same run, interrupted after step 3 with a checkpoint of step 2."""
    values = options(tmp_path, tiny_model, max_steps=6)
    with at_step(3, lambda trainer: 1 / 0), pytest.raises(ZeroDivisionError):
        train_here(values)
    return {**values, "resume": True}


def enter(*arguments):
    with output_folder(*arguments):
        pass


class TestOwnership:
    """A command starts in a new or empty folder and continues only in its own. Two never write into one folder."""

    def test_a_folder_with_other_content_is_refused_before_a_byte_is_written(self, tmp_path):
        (tmp_path / "mine" / "best").mkdir(parents=True)
        (tmp_path / "mine" / "best" / "model.bin").write_text("mine")
        words = {False: "contains best: give a folder that is new", True: f"contains no run of {RUN}: start"}
        for resume, said in words.items():
            with pytest.raises(InputError, match=said):
                enter(tmp_path / "mine", RUN, resume)
        assert [path.name for path in (tmp_path / "mine").rglob("*")] == ["best", "model.bin"]

    def test_only_one_of_two_simultaneous_commands_starts(self, tmp_path):
        output = tmp_path / "run"
        with output_folder(output, RUN, False), pytest.raises(InputError, match="in use by another run: wait for it"):
            enter(output, RUN, True)
        (output / "run.json").touch()
        with pytest.raises(InputError, match="contains a run of train.ddp: give --resume to continue it"):
            enter(output, RUN, False)
        with pytest.raises(InputError, match="contains a run of train.ddp: start without --resume in a new --output"):
            enter(output, "bench.paper", True)
        enter(output, RUN, True)

    def test_partial_files_of_a_killed_process_are_deleted_by_the_next_command(self, tmp_path):
        enter(tmp_path, RUN, False)
        names = [".run.json.0123456789abcdef.partial", "best/.best.json.0123456789abcdef.partial", "last/.partial"]
        for name in names:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
        enter(tmp_path, RUN, True)
        assert [name for name in names if (tmp_path / name).exists()] == ["last/.partial"]

    def test_a_refused_or_killed_start_does_not_block_the_next(self, tmp_path):
        (tmp_path / MARK).touch()  # a kill before the mark was written
        for name in ("", "notes.txt"):
            with pytest.raises(ZeroDivisionError), output_folder(tmp_path, RUN, False):
                if name:
                    (tmp_path / name).write_text("mine")
                raise ZeroDivisionError
        with pytest.raises(InputError, match="contains a run of"):
            enter(tmp_path, RUN, False)
        assert (tmp_path / "notes.txt").read_text() == "mine"

    def test_a_demo_uses_a_new_folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for name in ("runs/demo", "runs/demo-2"):
            settings = demo_settings(free_folder())
            assert (settings["output"], settings["corpus"]) == (name, (f"{name}/corpus.txt",))
            run = training.make_run({**settings, "model": "m", "demo": True})
            with output_folder(Path(name), RUN, False):
                prepare_demo(run)
            assert Path(run.corpus[0]).stat().st_size > 100_000


class TestResumeWithoutOptions:
    """`--resume --output FOLDER`: all other options are read from the run."""

    def test_every_option_is_read_from_the_run(self, finished):
        run, first = read_run({"resume": True, "output": finished["output"]}), training.make_run(finished)
        names = {field.name for field in dataclasses.fields(run)} - {"resume"}
        # only options that depend on the machine or the model were resolved
        resolved = {"schedule", "augment", "compile", "pooling", "head", "learning_rate", "precision"}
        assert {name for name in names if getattr(run, name) != getattr(first, name)} <= resolved
        assert read_run({"resume": True, "output": finished["output"], "beta": 0.1}).beta == 0.1

    def test_a_run_killed_before_its_first_save_starts_again(self, finished, tmp_path):
        output = str(tmp_path / "run")
        enter(Path(output), RUN, False, {**finished, "output": output})
        values = vars(read_run({"resume": True, "output": output}))
        assert train_here(values).status == "finished" and metrics(output) == metrics(finished["output"])

    def test_the_index_moves_with_the_folder_and_trust_remote_code_is_not_saved(self, tmp_path):
        settings = {"temperature": 0.05, "corpus": ["a.txt"], "trust_remote_code": True, "later": 1}
        write_json(tmp_path / MARK, {"settings": {**settings, "output": "runs/a", "index": "runs/a/index"}})
        run = read_run({"resume": True, "output": str(tmp_path), "model": "m"})
        assert (run.temperature, run.corpus, run.index, run.trust_remote_code) == (0.05, ("a.txt",), "", False)

    def test_a_finished_run_refuses_other_settings(self, finished, capsys):
        assert main(["--resume", "--output", finished["output"], "--beta", "0.3"]) == 2
        said = capsys.readouterr().err
        assert "--resume: --beta was 0.5 when" in said and "already finished" not in said

    @pytest.mark.parametrize(("content", "said"), [
        ('{"version": 1, "state": "x"}', "written by another version of una_fast"),
        ("{", "cannot be read"),
        ('{"version": 9}', "checkpoint.json: the checkpoint is missing, truncated or altered"),
        ('{"version": 9, "state": 3}', "altered"),
        ('{"version": 9, "state": "../run.json"}', "altered"),
        ('{"version": 9, "state": "state-0.pt"}', "altered"),
    ])  # fmt: skip
    def test_a_checkpoint_in_another_format_is_refused(self, copy, content, said):
        (copy / POINTER).write_text(content)
        with pytest.raises(InputError, match=said):
            load_checkpoint(copy)
        assert saved_step(copy) == 0

    def test_every_flipped_bit_of_the_pointer_is_detected(self, tmp_path):
        write_checkpoint(tmp_path, Progress(12, 0.5), {"weights": torch.zeros(9)})
        path, expected = tmp_path / POINTER, load_checkpoint(tmp_path)[0]
        content = path.read_bytes()
        for bit in range(8 * len(content)):
            path.write_bytes(content)
            flip(path, bit)
            with suppress(InputError):
                assert load_checkpoint(tmp_path)[0] == expected, bit  # the bit is in a name that is not read


class TestWhatAUserChanges:
    """A user may move, link and edit files of a run; the run continues to the same result."""

    def test_a_run_continues_in_a_folder_with_links_and_files_of_the_user(self, stopped, finished, tmp_path):
        output, lines = Path(stopped["output"]), Path(stopped["output"]) / "metrics.jsonl"
        (output / "last").rename(tmp_path / "disk")
        (output / "last").symlink_to(tmp_path / "disk")
        lines.write_text(f"# my notes\n{lines.read_text()}" + '{"mine": 1}\n' + "cut sho")
        mine = ("last/state-00000036-backup.pt", "best/my-notes.md", "best/1_Pooling/x", "x", ".run.json.partial")
        for name in mine:
            (output / name).write_text("mine")
        assert train_here(stopped).status == "finished"
        assert all((output / name).read_text() == "mine" for name in mine)
        assert (output / "last").is_symlink() and (tmp_path / "disk" / "model.safetensors").is_file()
        kept = [line for line in lines.read_text().splitlines() if line in ("# my notes", '{"mine": 1}')]
        assert len(kept) == 2
        lines.write_text("".join(f"{line}\n" for line in lines.read_text().splitlines() if line not in kept))
        assert_same_run(output, finished["output"])

    def test_a_copied_run_continues_without_its_hidden_files(self, stopped, finished, tmp_path):
        """The copy has no hidden files, because `cp -r run/* there` skips them."""
        there = tmp_path / "there"
        shutil.copytree(stopped["output"], there, ignore=shutil.ignore_patterns(".*"))
        shutil.rmtree(stopped["output"])
        assert train_here(vars(read_run({"resume": True, "output": str(there)}))).status == "finished"
        assert_same_run(there, finished["output"])

    def test_a_run_without_its_checkpoint_keeps_its_results(self, copy, finished):
        """The checkpoint was deleted, or is on a disk that is not mounted."""
        shutil.rmtree(copy / "last")
        write_json(copy / "run.json", {**read_json(copy / "run.json"), "status": "stopped"})
        write_json(copy / "best" / "best.json", {"step": 4})
        before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
        assert "has no checkpoint" in refused({**finished, "output": str(copy), "resume": True})
        assert {path: path.read_bytes() for path in before} == before


class TestCheckpoint:
    """last/ always contains one complete state, named by the pointer."""

    def test_a_finished_run_keeps_only_its_weights_and_can_be_finished_again(self, finished, copy):
        state = final_state(copy)
        assert list(state) == ["model", "scaler"] and flat(state) and len([*copy.glob("last/*.pt")]) == 1
        write_json(copy / "run.json", {**read_json(copy / "run.json"), "status": "running"})
        assert train_here({**finished, "output": str(copy), "resume": True}).status == "finished"
        assert metrics(copy) == metrics(finished["output"])

    def test_the_old_state_stays_until_the_pointer_names_the_new_one(self, tmp_path, monkeypatch):
        def write(step):
            write_checkpoint(tmp_path, Progress(step), {"weights": torch.full((2,), step)})

        write(1)
        for n_renames in (1, 2):  # before the state has its name, and before the pointer has
            with monkeypatch.context() as patch, pytest.raises(Killed):
                failing(patch, os, "replace", n_renames, Killed())
                write(2)
            progress, state = load_checkpoint(tmp_path)
            assert progress.step == 1 and state["weights"].tolist() == [1, 1]
        full = pytest.raises(InputError, match="last: the disk is full: free some space; .* before is intact")
        with monkeypatch.context() as patch, full:
            failing(patch, torch, "save", 1, disk_full())
            write(2)
        assert load_checkpoint(tmp_path)[0].step == 1
        for step in (3, 4):
            write(step)
            assert load_checkpoint(tmp_path)[1]["weights"].tolist() == [step, step]
        assert len([*(tmp_path / "last").glob("*.pt")]) == 1

    @pytest.mark.parametrize("damage", ["cut", "bit", "gone"])
    def test_a_damaged_state_is_refused(self, tmp_path, damage):
        write_checkpoint(tmp_path, Progress(1), {"weights": torch.zeros(9)})
        path = next((tmp_path / "last").glob("*.pt"))
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content if damage == "bit" else content[:-1])
        if damage == "gone":
            path.unlink()
        with pytest.raises(InputError, match=r"\.pt: the checkpoint is missing, truncated or altered"):
            load_checkpoint(tmp_path)

    def test_lines_after_the_checkpoint_are_written_again(self, tmp_path):
        path = tmp_path / "metrics.jsonl"
        kept = ['{"step": 0, "dev/dev": 0.5}', '{"step": 0, "loss": 1}', "[1]", '{"step": 1, "loss": 1}']
        later = ['{"step": 2, "loss": 1}', '{"step": 2, "dev/dev": null}', '{"step": 3, "lo']
        path.write_text("\n".join([*kept, *later]))
        trim_metrics(tmp_path, Progress(2, evaluated_step=0))
        assert path.read_text() == "".join(f"{line}\n" for line in kept)
        trim_metrics(tmp_path, Progress())
        assert path.read_text() == "[1]\n"


class TestBest:
    """best/ receives complete files one by one, and best.json last."""

    @pytest.fixture
    def save(self, tmp_path, tiny_model):
        encoder, tokenizer = load_encoder(str(tiny_model), 0.0, 1, "cls"), load_tokenizer(str(tiny_model))

        def run(step, factor):
            weights = {name: factor * value for name, value in encoder.backbone.state_dict().items()}
            save_encoder(tmp_path, "best", encoder, tokenizer, {"step": step, "dev_score": step / 10}, weights)

        return run

    @pytest.mark.slow
    def test_a_kill_between_two_files_leaves_complete_files(self, save, tmp_path, monkeypatch):
        save(1, 1.0)
        old = {path: path.read_bytes() for path in (tmp_path / "best").rglob("*") if path.is_file()}
        save(2, 2.0)
        new = {path: path.read_bytes() for path in old}
        for n_files in range(1, len(old)):
            save(1, 1.0)
            with monkeypatch.context() as patch, pytest.raises(Killed):
                failing(patch, Path, "replace", n_files, Killed())
                save(2, 2.0)
            note = tmp_path / "best" / "best.json"
            assert all(path.read_bytes() in (old[path], new[path]) for path in old if path != note)
            assert json.loads(note.read_text())["step"] == 1
            check_encoder(tmp_path, "best")
        save(3, 3.0)
        assert not [*(tmp_path / "best").glob(".*")]

    def test_a_flipped_bit_or_a_missing_file_is_noticed(self, save, tmp_path):
        save(1, 1.0)
        check_encoder(tmp_path, "best")
        save(2, 2.0)
        check_encoder(tmp_path, "best")
        paths = [path for path in (tmp_path / "best").rglob("*") if path.is_file() and path.name != "best.json"]
        assert {"model.safetensors", "config.json", "tokenizer.json"} <= {path.name for path in paths}
        for path in paths:
            content = path.read_bytes()
            for damage in (lambda path: flip(path, 4 * path.stat().st_size), lambda path: path.unlink()):
                damage(path)
                with pytest.raises(InputError, match=f"{path}: missing, truncated or altered since the run wrote it"):
                    check_encoder(tmp_path, "best")
                path.write_bytes(content)

    def test_every_folder_is_flushed_before_the_note_names_its_files(self, save, tmp_path, monkeypatch):
        calls = []
        monkeypatch.setattr(checkpoint, "sync_folder", calls.append)
        monkeypatch.setattr(checkpoint, "write_json", lambda path, note: calls.append(path))
        save(1, 1.0)
        best = tmp_path / "best"
        assert calls[-1] == best / "best.json" and {*calls[:-1]} == {best, best / "1_Pooling"}

    def test_a_full_disk_leaves_what_was_saved_before(self, save, tmp_path, monkeypatch):
        """safetensors raises its own type of error, and the tokenizers library a bare Exception."""
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            with pytest.raises(InputError, match="best: cannot be written .*; what was saved before is intact"):
                save(1, 1.0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert not [*(tmp_path / "best").iterdir()]
        save(1, 1.0)
        full = Exception("No space left on device (os error 28)")
        failing(monkeypatch, PreTrainedTokenizerBase, "save_pretrained", 1, full)
        with pytest.raises(InputError, match="best: the disk is full: free some space"):
            save(2, 2.0)
        assert json.loads((tmp_path / "best" / "best.json").read_text())["step"] == 1


def test_a_stopped_run_says_how_to_continue_and_where_its_encoder_is(tmp_path):
    assert resume_advice(tmp_path) == "no checkpoint was saved yet"
    write_json(tmp_path / POINTER, {"progress": {"step": 7}})
    assert resume_advice(tmp_path) == "continue from step 7 with --resume"
    write_json(tmp_path / "best/config.json", {})
    said = f"continue from step 7 with --resume; {tmp_path / 'best'} contains the encoder so far"
    assert resume_advice(tmp_path) == said
