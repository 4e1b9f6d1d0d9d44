"""The folder of a run: no file in it is lost, changed or left behind without a message."""

import dataclasses
import errno
import json
import os
import resource
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from support import small_runs as training
from support.small_runs import at_step, final_state, flat, metrics, options, refusal, train_here
from train import evaluate
from train.ddp import _with_saved, main
from train.demo.demo import demo_settings, free_folder, prepare_demo
from train.encoder.encoder import load_encoder
from train.encoder.pretrained import load_tokenizer
from train.record.best import check_encoder, save_encoder, with_best
from train.record.checkpoint import (
    VERSION,
    Pointer,
    Progress,
    load_checkpoint,
    read_pointer,
    saved_options,
    write_checkpoint,
)
from train.record.folder import (
    MARK,
    POINTER,
    RUN,
    OutputFolder,
    check_inside,
    is_own,
    read_sealed,
    read_summary,
    write_json,
)
from train.record.metrics import NOTHING, read_metrics
from train.record.old_files import new_file, partial_of
from train.report.runs import find_runs
from una_fast.errors import InputError
from una_fast.storage.files import checksum_of


@pytest.fixture
def pointer(tmp_path):
    """A folder with a checkpoint.json in it."""
    (tmp_path / "last").mkdir()
    progress = Progress(12, 0.5, 0.8123456789, 10, 0.8, 12)
    settings = {"temperature": 0.05, "corpus": ["a.txt"], "output": "runs/a", "index": "runs/a/index", "later": 1}
    saved = Pointer(progress, settings, {"corpus": {"x": "é"}}, NOTHING, "state-00000012.pt")
    write_json(tmp_path / POINTER, {"version": VERSION, **dataclasses.asdict(saved)})
    return tmp_path


@pytest.mark.slow
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


@pytest.mark.parametrize("content", ["[]", "3", '{"version": 1, "state": "x"}', "{", "null"])
def test_another_layout_is_said(pointer, content):
    (pointer / "last" / "checkpoint.json").write_text(content)
    with pytest.raises(InputError, match="cannot be read: it was changed, or another version"):
        read_pointer(pointer)


@pytest.mark.parametrize("wrong", ["[]", "3", '"finished"', '{"settings": []}', '{"status": ["finished"]}', "{"])
def test_a_summary_of_wrong_types_is_no_traceback(tmp_path, wrong):
    (tmp_path / "run.json").write_text(wrong)
    assert isinstance(read_summary(tmp_path), dict)


class TestMetrics:
    """metrics.jsonl up to the checkpoint has to be as the run wrote it; lines after it are written again."""

    STEP = b'{"step": %d, "loss": 1.5e-05, "negatives": true, "lr": 3e-05, "cosine_positive": 0.9, '
    STEP += b'"sentences_per_second": 10.0}\n'
    LINES = (b'{"step": 0, "stsb_dev": 0.5}\n', STEP % 0, STEP % 1)
    LATER = (STEP % 2, b'{"step": 3, "stsb_dev": null}\n', STEP % 3, b'{"step": 4, "lo')

    @pytest.fixture
    def path(self, tmp_path):
        """The metrics of a run whose checkpoint of step 2 was written after the three LINES."""
        kept = b"".join(self.LINES)
        written = {"bytes": len(kept), "xxh3_64": checksum_of([kept])}
        write_json(
            tmp_path / POINTER,
            {"version": VERSION, **dataclasses.asdict(Pointer(Progress(2, evaluated_step=0), {}, {}, written))},
        )
        return tmp_path / "metrics.jsonl"

    def test_lines_after_the_checkpoint_are_written_again(self, path):
        for n in range(len(self.LATER) + 1):
            path.write_bytes(b"".join([*self.LINES, *self.LATER[:n]]))
            assert read_metrics(path.parent) == (b"".join(self.LINES), True)

    def test_lines_that_were_moved_away_are_missing(self, path):
        assert read_metrics(path.parent) == (b"", True)
        for n in range(len(self.LATER) + 1):
            path.write_bytes(b"".join(self.LATER[:n]))
            assert read_metrics(path.parent) == (b"", True)

    @pytest.mark.parametrize(
        "line", [b"# mine\n", b"7\n", b"\xff\n", b"[" * 5000 + b"\n", b"{}\n", b'{"step": "1"}\n', STEP % 7]
    )
    def test_another_line_is_told_wherever_it_is(self, path, line):
        lines = [*self.LINES, *self.LATER]
        for at in range(len(lines)):
            path.write_bytes(b"".join([*lines[:at], line, *lines[at:]]))
            assert read_metrics(path.parent) == (b"".join(self.LINES), False)

    def test_a_changed_figure_and_a_missing_line_are_told(self, path):
        whole = b"".join(self.LINES)
        for content in (whole.replace(b"0.5", b"0.6"), whole[:-1], b"".join(self.LINES[1:])):
            path.write_bytes(content)
            found, is_intact = read_metrics(path.parent)
            assert not is_intact and found.split(b"\n")[:-1] == content.split(b"\n")[: found.count(b"\n")]
        (
            path.parent / POINTER
        ).unlink()  # without a checkpoint, the first lines of a run may stand there, and no others
        path.write_bytes(whole)
        assert read_metrics(path.parent) == (b"", True)
        for mine in (b"my,own,metrics\n1,2,3\n", self.STEP % 1, whole + b'{"step": 2, "loss": 1, "note": "mine"}\n'):
            path.write_bytes(mine)
            assert read_metrics(path.parent) == (b"", False)

    @pytest.mark.parametrize("tail", [b"mine", b"my precious note", b"{}"])
    def test_a_text_without_a_line_end_is_told(self, path, tail):
        for before in (b"", b"".join(self.LINES), b"".join([*self.LINES, *self.LATER[:2]])):
            path.write_bytes(before + tail)
            assert not read_metrics(path.parent)[1]
        path.write_bytes(b"".join(self.LINES) + b'{"st')  # which a kill cut short
        assert read_metrics(path.parent) == (b"".join(self.LINES), True)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, tiny_model):
    """The option values of a finished run, of 4 steps."""
    values = options(tmp_path_factory.mktemp("finished"), tiny_model, max_steps=4)
    assert train_here(values).status == "finished"
    return values


@pytest.fixture(scope="module")
def other(finished, tmp_path_factory):
    """The folder of a finished run that differs in its seed alone."""
    output = tmp_path_factory.mktemp("other") / "run"
    assert train_here({**finished, "output": str(output), "seed": 7}).status == "finished"
    return output


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_finished_run_keeps_its_weights_and_no_optimiser(finished):
    state = final_state(finished["output"])
    assert list(state) == ["model", "scaler"] and flat(state)
    assert [path.name[:16] for path in (Path(finished["output"]) / "last").glob("*.pt")] == ["weights-00000004"]


def test_a_run_killed_before_it_said_finished_ends_with_resume(finished, tmp_path):
    output = tmp_path / "copy"
    shutil.copytree(finished["output"], output)
    write_json(output / "run.json", {**read_sealed(output / "run.json"), "status": "running"})
    assert train_here({**finished, "output": str(output), "resume": True}).status == "finished"
    assert metrics(output) == metrics(finished["output"])


@pytest.mark.parametrize("gone", ["last", "last/checkpoint.json"])
def test_results_outlive_their_checkpoint(finished, capsys, tmp_path, gone):
    """If last/ was removed to save space, best/, scores and metrics stay, also when the new command is wrong."""
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
        assert f"holds {name.split('/')[0]}: give a folder that is new or empty" in said
        assert (output / name).read_text() == "mine"


def test_two_dots_after_a_link_lead_to_the_same_mark(tmp_path):
    (tmp_path / "far" / "sub").mkdir(parents=True)
    (tmp_path / "L").symlink_to(tmp_path / "far" / "sub")
    output = tmp_path / "L" / ".." / "run"
    with OutputFolder(output, RUN, False):
        write_json(output / POINTER, {"step": 1})
    assert read_sealed(tmp_path / "far" / "run" / POINTER) == {"step": 1}
    (output / "tensorboard").symlink_to(tmp_path)
    with pytest.raises(InputError, match="tensorboard: is a link"):
        check_inside(output / "tensorboard")


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

    def test_a_run_that_was_killed_before_its_first_save_begins_anew(self, finished, tmp_path):
        output = str(tmp_path / "run")
        with OutputFolder(Path(output), RUN, False, {**finished, "output": output}):
            pass
        values = _with_saved({"resume": True, "output": output})
        assert train_here(values).status == "finished" and metrics(output) == metrics(finished["output"])

    @pytest.mark.parametrize("settings", [[1], None, {"corpus": 5}, {"seeds": "abc"}, {"seed": [1]}, {"model": 3}])
    def test_settings_of_wrong_types_get_a_sentence(self, finished, capsys, tmp_path, settings):
        (tmp_path / "run").mkdir()
        given = {**finished, **settings} if isinstance(settings, dict) else settings
        write_json(tmp_path / "run" / MARK, {"command": RUN, "settings": given})
        assert main(["--resume", "--output", str(tmp_path / "run")]) == 2
        assert capsys.readouterr().err.startswith("error: ")

    def test_no_folder_asks_to_run_a_model_s_code(self, finished, tmp_path):
        settings = {**finished, "trust_remote_code": True}
        with OutputFolder(tmp_path / "run", RUN, False, settings):
            pass
        saved = saved_options(tmp_path / "run")
        assert saved["batch_size"] == finished["batch_size"] and "trust_remote_code" not in saved

    def test_the_index_moves_with_the_folder_and_unknown_options_are_left_out(self, pointer):
        assert saved_options(pointer) == {"temperature": 0.05, "corpus": ("a.txt",)}

    def test_a_finished_run_has_its_settings(self, finished, capsys):
        assert main(["--resume", "--output", finished["output"], "--beta", "0.3"]) == 2
        said = capsys.readouterr().err
        assert "--resume: --beta was 0.5 when" in said and "already finished" not in said


class TestTheRule:
    """A new folder, an empty one, or an own one with --resume; all others are refused before a byte is written."""

    @pytest.fixture
    def precious(self, tmp_path):
        """A file of the user's beside the output folder."""
        path = tmp_path / "outside" / "precious.txt"
        path.parent.mkdir()
        path.write_text("mine")
        return path

    @pytest.mark.parametrize("files", [["best/**/*"], ["**/*"]])
    def test_no_list_of_files_makes_a_folder_ours(self, finished, capsys, tmp_path, precious, files):
        output = tmp_path / "run"
        output.mkdir()
        (output / "best").symlink_to(precious.parent)
        (output / "notes.txt").write_text("mine")
        (output / ".written.json").write_text(json.dumps({"files": files}))
        refusal(capsys, {**finished, "output": str(output)})
        assert precious.read_text() == (output / "notes.txt").read_text() == "mine"

    @pytest.mark.parametrize("name", [".lock", MARK])
    def test_a_file_of_the_lock_s_name_stays(self, finished, capsys, tmp_path, precious, name):
        output = tmp_path / "run"
        output.mkdir()
        (output / name).symlink_to(precious)
        for change in ({}, {"resume": True}):
            refusal(capsys, {**finished, "output": str(output), **change})
        assert precious.read_text() == "mine" and [*output.iterdir()] == [output / name]

    def test_files_of_temporary_names_stay(self, finished, tmp_path):
        """Of names that earlier versions gave to temporary files, and in a folder that goes on."""
        output = tmp_path / "run"
        stopped_before_the_first_save(finished, output)
        (output / ".best.partial").mkdir()
        (output / "last").mkdir()
        names = (".run.json.partial", ".best.partial/mine", "last/.checkpoint.json.partial", ".metrics.jsonl.partial")
        for name in names:
            (output / name).write_text("mine")
        assert train_here({**finished, "output": str(output), "resume": True}).status == "finished"
        assert all((output / name).read_text() == "mine" for name in names)

    def test_what_a_killed_process_left_is_removed(self, tmp_path):
        output, left = tmp_path / "run", "0123456789abcdef" * 2
        with OutputFolder(output, RUN, False):
            (output / f".best.{left}.partial").mkdir()
            (output / f".best.{left}.partial" / "weights").touch()
            (output / "last").mkdir()
            (output / "last" / f".checkpoint.json.{left}.partial").touch()
        with OutputFolder(output, RUN, True):
            assert sorted(path.name for path in output.rglob("*")) == [MARK, "last"]

    @pytest.mark.parametrize("moment", ["link", "unlink"])
    def test_a_start_that_is_killed_while_it_makes_its_mark_blocks_no_other(self, tmp_path, monkeypatch, moment):
        """The mark appears with its content: before, the folder counts as empty, and after, it is the run's own."""
        output = tmp_path / "a" / "run"
        if not (child := os.fork()):
            monkeypatch.setattr(os, moment, lambda *_: os._exit(9))
            OutputFolder(output, RUN, False, {"seed": 1})
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        assert is_own(output, RUN) == (moment == "unlink") and len([*output.iterdir()]) == 1 + (moment == "unlink")
        with pytest.raises(ZeroDivisionError), OutputFolder(output, RUN, is_own(output, RUN), {"seed": 1}):
            raise ZeroDivisionError
        assert is_own(output, RUN) or not [*output.iterdir()]

    def test_without_hard_links_a_mark_is_made_too_and_keeps_what_is_there(self, tmp_path, monkeypatch):
        def no_links(*_):
            raise PermissionError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", no_links)
        with OutputFolder(tmp_path / "run", RUN, False, {"seed": 1}):
            assert [path.name for path in (tmp_path / "run").iterdir()] == [MARK] and is_own(tmp_path / "run", RUN)
        with pytest.raises(FileExistsError), new_file(tmp_path / "run" / MARK, replace=False):
            pass
        assert [path.name for path in (tmp_path / "run").iterdir()] == [MARK]

    @pytest.mark.parametrize("left", ["nothing", "to_nowhere"])
    def test_a_folder_that_cannot_be_marked_is_not_left(self, tmp_path, monkeypatch, left):
        output = tmp_path / "a" / "run"
        if left == "to_nowhere":
            output.parent.mkdir()
            output.symlink_to("nowhere")
        else:
            monkeypatch.setattr(os, "fsync", lambda _: os.write(os.open("/dev/full", os.O_WRONLY), b"1"))
        with pytest.raises(InputError, match="cannot be made or written: (No space left|File exists)"):
            OutputFolder(output, RUN, False)
        assert os.path.lexists(tmp_path / "a") == (left == "to_nowhere")

    def test_what_another_command_is_writing_there_stays(self, tmp_path):
        OutputFolder(tmp_path, RUN, False).close()
        with new_file(tmp_path / "negatives.jsonl") as file:
            file.write(b"whole")
            OutputFolder(tmp_path, RUN, True).close()
        assert (tmp_path / "negatives.jsonl").read_bytes() == b"whole"

    def test_of_two_commands_one_begins(self, tmp_path):
        output = tmp_path / "run"
        with OutputFolder(output, RUN, False):
            with pytest.raises(InputError, match="in use by another run: wait for it, stop it, or choose"):
                OutputFolder(output, RUN, True)
        with pytest.raises(InputError, match="holds a run of train.ddp: give --resume to go on with it"):
            OutputFolder(output, RUN, False)
        with pytest.raises(InputError, match="holds a run of train.ddp: start without --resume in a new --output"):
            OutputFolder(output, "bench.paper", True)
        OutputFolder(output, RUN, True).close()

    def test_an_error_leaves_no_new_folder_and_keeps_what_others_put_there(self, tmp_path):
        for name in ("", "notes.txt"):
            with pytest.raises(ZeroDivisionError), OutputFolder(tmp_path / "a" / "b", RUN, False):
                if name:
                    (tmp_path / "a" / "b" / name).write_text("mine")
                raise ZeroDivisionError
            assert (tmp_path / "a").exists() == bool(name)
        assert (tmp_path / "a" / "b" / "notes.txt").read_text() == "mine" and is_own(tmp_path / "a" / "b", RUN)

    def test_no_link_of_an_own_folder_is_followed(self, finished, capsys, tmp_path, precious):
        """Not to the index, nor to the folder of a seed or of a table; a link that is not in it may lead to one."""
        output = tmp_path / "run"
        stopped_before_the_first_save({**finished, "index": str(output / "index")}, output)
        for name in ("index", "seed-1", "tables"):
            (output / name).symlink_to(precious.parent)
        values = {"output": str(output), "resume": True}
        assert "index: is a link, and a run writes into its own folder alone" in refusal(capsys, values)
        with pytest.raises(InputError, match="seed-1: is a link"):
            OutputFolder(output / "seed-1", RUN, False)
        with pytest.raises(InputError, match="tables: is a link"):
            write_json(output / "tables" / "main.json", {})
        assert [*precious.parent.iterdir()] == [precious]
        (tmp_path / "link").symlink_to(output)
        OutputFolder(tmp_path / "link", RUN, True).close()

    def test_a_name_that_is_no_utf_8_is_refused(self, finished, capsys, tmp_path):
        said = refusal(capsys, {**finished, "output": f"{tmp_path}/\udcff"})
        assert "is no name in UTF-8: choose another folder" in said and not [*tmp_path.iterdir()]

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["best", "last", "tensorboard", "metrics.jsonl"])
    def test_no_link_leads_out_of_the_folder(self, finished, tmp_path, precious, name):
        output = tmp_path / "run"
        stopped_before_the_first_save(finished, output)
        target = tmp_path / "new.txt" if name == "metrics.jsonl" else precious.parent
        (output / name).symlink_to(target)
        outcome = train_here({**finished, "output": str(output), "resume": True})
        assert outcome.status == "failed" and ("is a link" in outcome.message or "cannot be written" in outcome.message)
        assert [*precious.parent.iterdir()] == [precious] and not (tmp_path / "new.txt").exists()


class TestOneRun:
    """The files of a run's folder are known by the id in its mark, so one of another run is noticed."""

    @pytest.fixture
    def copy(self, finished, tmp_path):
        """A copy of the finished run."""
        return Path(shutil.copytree(finished["output"], tmp_path / "copy"))

    def refused(self, capsys, copy, *more):
        assert main(["--resume", "--output", str(copy), *more]) == 2
        said = capsys.readouterr().err
        assert "Traceback" not in said
        return said

    def test_a_copy_of_the_whole_folder_is_the_same_run(self, copy, capsys):
        (left := partial_of(copy / "best" / "README.md")).touch()
        assert main(["--resume", "--output", str(copy)]) == 0
        assert "copy: already finished" in capsys.readouterr().err
        assert find_runs([copy])
        assert not left.exists()  # a kill had left it

    @pytest.mark.parametrize("name", ["run.json", "last/checkpoint.json", "best/best.json", MARK])
    def test_a_file_of_another_run_is_refused(self, copy, other, capsys, monkeypatch, name):
        monkeypatch.setattr("train.launch.run.train_on_ranks", training.train_on_ranks_here)
        shutil.copy(other / name, copy / name)
        before = content(copy)
        assert str(copy) in self.refused(capsys, copy)
        assert content(copy) == before

    @pytest.mark.parametrize("name", ["best", "last"])
    def test_a_stopped_run_takes_no_folder_of_another(self, finished, other, tmp_path, name):
        copy = shutil.copytree(other.parent / "run", tmp_path / "copy")
        write_json(copy / "run.json", {**read_sealed(copy / "run.json"), "status": "stopped"})
        shutil.rmtree(copy / name)
        shutil.copytree(Path(finished["output"]) / name, copy / name)
        with pytest.raises(InputError, match=f"{name}/.*is of another run") if name == "last" else nullcontext():
            outcome = train_here(_with_saved({**finished, "seed": 7, "output": str(copy), "resume": True}))
            assert outcome.status == "failed" and "best: is not as the run saved it" in outcome.message


class TestWhatWasSaved:
    """best/ is used as the run saved it, or not at all."""

    DAMAGES = ("best", "best/model.safetensors", "best/best.json", "changed")

    def damage(self, output, name):
        if name == "changed":
            with (output / "best" / "model.safetensors").open("r+b") as file:
                file.seek(-4, os.SEEK_END)
                file.write(b"xxxx")
        else:
            path = output / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    @pytest.mark.parametrize("name", DAMAGES)
    def test_a_finished_run_scores_and_describes_no_other_encoder(self, finished, capsys, tmp_path, name):
        copy = Path(shutil.copytree(finished["output"], tmp_path / "copy"))
        self.damage(copy, name)
        before = content(copy)
        (tmp_path / "data").mkdir()
        data = training.write_senteval(tmp_path / "data")
        words = ["--evaluate", str(data), "--tasks", "STSBenchmark"]
        assert main(["--resume", "--output", str(copy), *words]) == 2
        assert "best: is not as the run saved it at step" in capsys.readouterr().err
        assert content(copy) == before
        if name in ("best/model.safetensors", "changed"):
            assert evaluate.main(["--model", str(copy / "best"), "--data", str(data), *words[2:]]) == 2
            assert "model.safetensors: is missing, or was changed since the run saved it" in capsys.readouterr().err

    @pytest.mark.parametrize("name", ["model.safetensors", "config.json", "weights-*.pt"])
    def test_a_finished_run_with_another_last_step_says_so(self, finished, capsys, tmp_path, name):
        copy = Path(shutil.copytree(finished["output"], tmp_path / "copy"))
        (path,) = (copy / "last").glob(name)
        path.write_bytes(path.read_bytes()[:-1])
        assert main(["--resume", "--output", str(copy)]) == 2
        said = capsys.readouterr().err
        assert path.name in said and ("was changed since the run saved it" in said or "cut short or altered" in said)

    @pytest.mark.parametrize("name", DAMAGES)
    def test_a_stopped_run_does_not_go_on_without_its_best_encoder(self, finished, tmp_path, name):
        copy = Path(shutil.copytree(finished["output"], tmp_path / "copy"))
        write_json(copy / "run.json", {**read_sealed(copy / "run.json"), "status": "stopped"})
        self.damage(copy, name)
        outcome = train_here({**finished, "output": str(copy), "resume": True})
        assert outcome.status == "failed"
        assert "is not as the run saved it at step" in outcome.message or "was changed since the run" in outcome.message

    def test_an_encoder_that_was_saved_after_the_checkpoint_counts(self, finished, tmp_path):
        best = Path(shutil.copytree(Path(finished["output"]) / "best", tmp_path / "best"))
        note = read_sealed(Path(finished["output"]) / "best" / "best.json")
        step, score = note["step"], note["stsb_dev"]
        (best / "best.json").unlink()
        write_json(best / "best.json", note)
        earlier, same = Progress(step, score - 1, score - 1, 0, score - 1, 0), Progress(9, 0, score, step, 0, 8)
        assert with_best(tmp_path, earlier) == dataclasses.replace(earlier, best_step=step, best_score=score)
        assert with_best(tmp_path, same) == same
        for wrong in (dataclasses.replace(same, best_step=step + 1), dataclasses.replace(same, best_score=2.0)):
            with pytest.raises(InputError, match="is not as the run saved it at step .*put it back, or start again"):
                with_best(tmp_path, wrong)
        (best / "model.safetensors").unlink()  # a kill came before the file had its name
        assert with_best(tmp_path, earlier) == earlier
        with pytest.raises(InputError, match="model.safetensors is missing"):
            with_best(tmp_path, same)


def test_a_demo_takes_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("runs/demo", "runs/demo-2", "runs/demo-3"):
        settings = demo_settings(free_folder())
        assert (settings["output"], settings["corpus"]) == (name, (f"{name}/corpus.txt",))
        run = training.make_run({**settings, "model": "m", "demo": True})
        with OutputFolder(Path(name), RUN, False):
            prepare_demo(run)
        assert Path(run.corpus[0]).stat().st_size > 100_000


def stopped_before_the_first_save(finished, output):
    """Make the folder of a run that was killed at once."""
    with OutputFolder(output, RUN, False, {**finished, "output": str(output)}):
        pass


class TestChangesOfTheUser:
    """What a user added to a run, or changed in it, stays."""

    @pytest.fixture
    def stopped(self, tmp_path, tiny_model):
        """The option values of a run that broke off after step 3 of 6, its checkpoint is of step 2."""
        values = options(tmp_path, tiny_model, max_steps=6)
        with at_step(3, lambda trainer: 1 / 0), pytest.raises(ZeroDivisionError):
            train_here(values)
        return {**values, "resume": True}

    def test_added_files(self, stopped, tmp_path):
        output = Path(stopped["output"])
        other = f"last/state-00000002-{'ab' * 16}-{checksum_of([b'mine'])}.pt"  # of another run
        mine = (other, "last/state-00000036-backup.pt", "best/my-notes.md", "best/1_Pooling/x", "x")
        for name in mine:
            (output / name).write_text("mine")
        assert train_here(stopped).status == "finished"
        assert all((output / name).read_text() == "mine" for name in mine)
        assert len([*(output / "last").glob("weights-*.pt")]) == 1

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["best/model.safetensors", "best/config.json", "best/best.json", "run.json"])
    def test_a_changed_file_stops_the_run_before_its_first_step(self, stopped, name):
        path = Path(stopped["output"]) / name
        path.write_bytes(content := path.read_bytes().replace(b":", b": ", 1).replace(b"e", b"E", 1) + b" ")
        before = metrics(stopped["output"])
        outcome = train_here(stopped)
        advice = "and stays: move it away" if name == "run.json" else "put it back"
        assert outcome.status == "failed" and advice in outcome.message
        assert path.read_bytes() == content and metrics(stopped["output"]) == before
        path.rename(path.with_name("mine"))
        assert train_here(stopped).status == ("finished" if name == "run.json" else "failed")

    def test_changed_metrics_stay_and_the_run_goes_on(self, stopped, capsys):
        path = Path(stopped["output"]) / "metrics.jsonl"
        path.write_bytes(content := b"# mine\n" + path.read_bytes())
        assert train_here(stopped).status == "finished"
        assert "metrics.jsonl was changed: it is now metrics-" in capsys.readouterr().err
        (aside,) = path.parent.glob("metrics-*.jsonl")
        assert aside.read_bytes() == content
        assert [line["step"] for line in metrics(stopped["output"]) if "loss" in line] == [*range(6)]

    def test_without_its_metrics_a_run_goes_on(self, stopped, capsys):
        path = Path(stopped["output"]) / "metrics.jsonl"
        path.rename(path.with_name("mine.jsonl"))
        assert train_here(stopped).status == "finished"
        assert "was moved away: a new one begins with step 2" in capsys.readouterr().err
        assert [line["step"] for line in metrics(stopped["output"]) if "loss" in line] == [*range(2, 6)]

    def test_a_changed_figure_of_a_finished_run_goes_into_no_card(self, finished, capsys, tmp_path):
        output = tmp_path / "copy"
        shutil.copytree(finished["output"], output)
        assert main(["--resume", "--output", str(output)]) == 0
        content = (output / "run.json").read_text().replace('"stsb_dev": 0.', '"stsb_dev": 0.1')
        (output / "run.json").write_text(content)
        card = (output / "best" / "README.md").read_text()
        assert main(["--resume", "--output", str(output)]) == 2
        assert "run.json: is not as this program wrote it, and stays: move it away" in capsys.readouterr().err
        assert (output / "best" / "README.md").read_text() == card and (output / "run.json").read_text() == content


@pytest.mark.parametrize("saved", [False, True])
def test_a_file_that_comes_while_best_is_written_stays(tmp_path, tiny_model, monkeypatch, saved):
    encoder, tokenizer = load_encoder(str(tiny_model), 0.0, 1, "cls"), load_tokenizer(str(tiny_model))
    told = (encoder, tokenizer, {}, encoder.backbone.state_dict())
    if saved:
        save_encoder(tmp_path, "best", *told)
    path = tmp_path / "best" / "model.safetensors"

    def write(*arguments):
        write_json(*arguments)
        path.write_text("my own text")

    monkeypatch.setattr("train.record.best.write_json", write)
    with pytest.raises(InputError, match=r"model\.safetensors: was changed since the run wrote it, and stays"):
        save_encoder(tmp_path, "best", *told)
    assert path.read_text() == "my own text" and not [*tmp_path.glob(".*")]


def test_a_state_that_was_changed_stays(tmp_path):
    last = tmp_path / "last"
    for step in (1, 2, 2, 3):
        pointer = Pointer(Progress(step), {}, {}, NOTHING)
        write_checkpoint(tmp_path, pointer, {"optimizer": torch.full((2,), step)})
        (state,) = last.glob(f"state-{step:08d}-*.pt")
        assert load_checkpoint(tmp_path, {})[1]["optimizer"].tolist() == [step, step]
        if step == 1:
            state.write_text("my own text")
            mine = state
    assert {path.name for path in last.iterdir()} == {"checkpoint.json", state.name, mine.name}
    assert mine.read_text() == "my own text"


def test_weights_that_do_not_fit_on_the_disk(tmp_path, tiny_model):
    """safetensors has an error of its own for it."""
    encoder = load_encoder(str(tiny_model), 0.0, 1, "cls")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(InputError, match="best: cannot be written .*; what was saved before is intact"):
            save_encoder(tmp_path, "best", encoder, load_tokenizer(str(tiny_model)), {}, encoder.backbone.state_dict())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not [*(tmp_path / "best").iterdir()]


@pytest.mark.slow
def test_a_kill_between_the_files_of_best_changes_nothing_for_resume(tmp_path, tiny_model, monkeypatch):
    """However far the renames of the new files have come, they are known as the run's."""
    encoder = load_encoder(str(tiny_model), 0.0, 1, "cls")
    tokenizer = load_tokenizer(str(tiny_model))

    def save(step, factor):
        weights = {name: factor * value for name, value in encoder.backbone.state_dict().items()}
        save_encoder(tmp_path, "best", encoder, tokenizer, {"step": step}, weights)

    plain, renames = Path.replace, []

    def replace(self, target):
        if len(renames) == kill_at:
            raise KeyboardInterrupt
        renames.append(target)
        return plain(self, target)

    kill_at = -1
    save(1, 1.0)
    files = {path.name for path in (tmp_path / "best").rglob("*") if path.is_file()} - {"best.json"}
    for kill_at in range(len(files)):
        renames.clear()
        monkeypatch.setattr(Path, "replace", replace)
        with pytest.raises(KeyboardInterrupt):
            save(2 + kill_at, 2.0 + kill_at)
        monkeypatch.undo()
        check_encoder(tmp_path, "best")
    save(99, 1.0)
    assert read_sealed(tmp_path / "best" / "best.json")["step"] == 99
