"""`python -m train.evaluate` on small files in SentEval's layout: what it prints and saves, and its messages."""

import io
import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from support.small_runs import write_senteval
from train.evaluate import main
from train.evaluation.model import pick_device
from train.evaluation.tasks.registry import TASKS, TaskSpec, suite, task_names
from una_fast.errors import InputError
from una_fast.storage.files import write_json


@pytest.fixture
def data(tmp_path) -> Path:
    """A folder with STS-B, SICK, STS13 and CR of a few lines each."""
    folder = write_senteval(tmp_path / "data")
    downstream = folder / "senteval" / "downstream"
    rows = [row.split("\t") for row in (folder / "pairs.tsv").read_text().splitlines()]  # 24 of score and two texts
    write(downstream / "STS/STSBenchmark/sts-dev.csv", [f"g\tf\ty\t0\t{s}\t{a}\t{b}" for s, a, b in rows[:12]])
    for name in ("SICK_test_annotated.txt", "SICK_trial.txt"):
        write(downstream / "SICK" / name, ["heading", *(f"0\t{a}\t{b}\t{s}\tN" for s, a, b in rows)])
    for part, subset in enumerate(("FNWN", "headlines", "OnWN")):
        of = rows[part * 8 : part * 8 + 8]
        write(downstream / f"STS/STS13-en-test/STS.input.{subset}.txt", [f"{a}\t{b}" for _, a, b in of])
        write(downstream / f"STS/STS13-en-test/STS.gs.{subset}.txt", [s for s, _, _ in of])
    write(downstream / "CR/custrev.pos", [f"good {a}" for _, a, _ in rows])
    write(downstream / "CR/custrev.neg", [f"stone {b} bridge" for _, _, b in rows])
    return folder


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def run(data, tiny_model, capsys):
    """Return a function that runs the command, and returns its exit code, its output and its messages."""

    def call(*arguments, model=tiny_model):
        code = main([*map(str, ("--model", model, "--data", data, *arguments))])
        return code, *capsys.readouterr()

    return call


def test_scores_and_their_protocol_are_printed_and_saved(run, tmp_path):
    kept = tmp_path / "out" / "scores.json"
    code, out, _ = run("--tasks", "STS13,STSBenchmark", "--json", kept)
    assert code == 0
    for said in ("STS13", "STS-B", "mean of 2", "aggregate: all", "pooling: cls_before_pooler", "max_length: 128",
                 "lower_case: False", "mode: test", "precision: fp32", "sts13: without SMT"):  # fmt: skip
        assert said in out
    scores = json.loads(kept.read_text())
    assert scores["protocol"]["aggregate"] == "all"
    task = scores["sts"]["STS13"]
    assert task["pairs"] == 24
    assert set(task["spearman"]) == set(task["pearson"]) == {"all"}
    both = [scores["sts"][name]["spearman"]["all"] for name in ("STS13", "STSBenchmark")]
    assert scores["averages"]["sts"] == pytest.approx(sum(both) / 2)
    assert f"{100 * both[0]:.2f}" in out


def test_dev_mode_scores_dev_splits_and_fits_transfer_classifiers_fast(run, tmp_path):
    kept, words = tmp_path / "dev.json", "--mode dev --tasks STSBenchmark,CR --precision bf16 --whiten --pooling mean"
    code, out, _ = run(*words.split(), "--json", kept)
    scores = json.loads(kept.read_text())
    assert code == 0 and scores["sts"]["STSBenchmark"]["pairs"] == 12
    assert scores["averages"]["transfer"] == scores["transfer"]["CR"]["dev_accuracy"]
    for said in ("Accuracy, %, dev", "rmsprop, 5 folds", "precision: bf16", "each task's own", "pooling: avg"):
        assert said in out
    assert task_names("sts", "dev") == ["STSBenchmark", "SICKRelatedness"]


def test_tasks_that_cannot_be_scored_become_notes_and_do_not_count_in_the_average(run, data, tmp_path):
    write(data / "senteval/downstream/STS/STS13-en-test/STS.gs.OnWN.txt", ["1.0"] * 7 + ["high"])
    rows = [f"g\tf\ty\t0\t3.0\t{text}" for text in ("a\tb", "a c\td", "a dog runs\t ")]
    write(data / "senteval/downstream/STS/STSBenchmark/sts-test.csv", rows)
    kept = tmp_path / "scores.json"
    code, out, _ = run("--json", kept)
    scores = json.loads(kept.read_text())
    assert code == 0 and "2 of 7 tasks" in out
    assert "note: STS12 left out: " in out and "STS.gs.OnWN.txt, line 8: score 'high' is not a number" in out
    assert "note: STSBenchmark: no score is defined: all gold scores or all similarities are equal" in out
    assert scores["sts"]["STSBenchmark"]["spearman"]["all"] is None
    assert scores["averages"]["sts"] == scores["sts"]["SICKRelatedness"]["spearman"]["all"]
    assert "NaN" not in kept.read_text() and "nan" not in out
    code, _, err = run("--tasks", "STS12,STS14")
    assert code == 2 and err.startswith("error: none of the tasks could be read")


def test_cls_needs_the_checkpoints_pooler(run, tiny_model, tmp_path):
    arguments = ("--tasks", "STSBenchmark", "--pooling", "cls")
    code, _, err = run(*arguments)
    assert code == 2 and "--pooling cls: the checkpoint has no pooler: give cls_before_pooler" in err
    folder = tmp_path / "with_pooler"
    BertModel(BertConfig.from_pretrained(tiny_model)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_model).save_pretrained(folder)
    code, out, _ = run(*arguments, model=folder)
    assert code == 0 and "pooling: cls" in out


def test_a_damaged_model_gets_a_one_line_error(run, tiny_model, tmp_path):
    folder = Path(shutil.copytree(tiny_model, tmp_path / "damaged"))
    weights, config = folder / "model.safetensors", folder / "config.json"
    whole = weights.read_bytes(), config.read_text()
    for content, width in ((whole[0][:5000], 32), (whole[0], 64), (whole[0], "wide")):
        weights.write_bytes(content)
        config.write_text(json.dumps({**json.loads(whole[1]), "hidden_size": width}))
        code, _, err = run("--tasks", "sts-b", model=folder)
        assert code == 2 and err.startswith(f"error: model {folder}: ") and err.count("\n") == 1, err


def test_the_folder_of_a_run_means_its_best_in_any_spelling(run, tiny_model, tmp_path, monkeypatch):
    """The scores of that encoder may be overwritten, others may not."""
    shutil.copytree(tiny_model, tmp_path / "moved" / "best")
    for name in ("evaluation", "others"):
        write_json(tmp_path / "moved" / f"{name}.json", {"model": "run/best"})
    monkeypatch.chdir(tmp_path)
    words = ("--tasks", "STSBenchmark", "--json")
    for model in ("moved/best", "./moved/best/", "moved"):
        code, out, err = run(*words, "moved/evaluation.json", model=model)
        assert code == 0 and "model: " in out and "Avg." not in out
    assert "model: moved/best" in out and "moved is the folder of a training run: its best/ is evaluated" in err
    assert run(*words, "moved/others.json", model="moved/best")[0] == 2


def test_bad_options_are_refused(run, tmp_path):
    kept, summary = tmp_path / "scores.json", tmp_path / "run.json"  # of another model, and of a run
    write_json(kept, {"model": "another"})
    write_json(summary, {"status": "finished"})
    for arguments, named in (
        (("--model", tmp_path / "none"), "none"), (("--tasks", "STSBenchmrk"), "STSBenchmark?"),
        (("--tasks", ","), "--tasks"), (("--data", tmp_path / "none"), "none"),
        (("--max-length", "2"), "--max-length"), (("--device", "gpu"), "--device"),
        (("--json", tmp_path), "--json"), (("--json", kept), "scores.json"), (("--json", summary), "run.json"),
        (("--mode", "dev", "--held-out"), "--held-out"),
    ):  # fmt: skip
        code, _, err = run("--tasks", "STSBenchmark", *arguments)
        assert code == 2 and err.startswith("error: ") and named in err, (arguments, err)


def test_a_device_must_exist(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    names = {"auto": "cuda", "cuda": "cuda", "cuda:3": "cuda:3", "cpu": "cpu"}
    assert {name: str(pick_device(name)) for name in names} == names
    with pytest.raises(InputError, match="--device cuda:4: .* 4 GPUs"):
        pick_device("cuda:4")


def test_tasks_are_named_by_suite_or_by_name():
    assert len(task_names("full", "test")) == 14
    assert task_names("mr, sts12,MR", "test") == ["MR", "STS12"]
    assert task_names("sts-b,stsb, STS_B,sick-r", "test") == ["STSBenchmark", "SICKRelatedness"]
    assert len(task_names("near-miss,stsb")) == 13 and task_names("sts,replace-obj", "dev")[2:] == ["replace_obj"]


NEW_TASK = """
import numpy as np
from train.evaluation.tasks.reading import read_rows, parse_score
from train.evaluation.tasks.sts import StsTask
def read(folder, name, split):
    gold, *sides = zip(*read_rows(folder / name / f"{split}.tsv", (0, 1, 2), parse_score))
    return StsTask(name, [*map(list, sides)], {split: len(gold)}, np.array(gold))
"""


def test_a_new_task_needs_only_a_file_and_a_row(run, data, tmp_path, monkeypatch):
    (tmp_path / "pairs_of_a_test.py").write_text(NEW_TASK)
    monkeypatch.syspath_prepend(tmp_path)
    row = TaskSpec("NEWPAIRS", "sts", {"test": 24}, short="NEW", module="pairs_of_a_test")
    monkeypatch.setitem(TASKS, row.name, row)
    write(data / "senteval/downstream/NEWPAIRS/test.tsv", (data / "pairs.tsv").read_text().splitlines())
    assert "NEWPAIRS" not in suite("sts") and task_names("new, sts-b") == ["NEWPAIRS", "STSBenchmark"]
    kept = tmp_path / "scores.json"
    code, out, _ = run("--tasks", "new-pairs,sts-b", "--json", kept)
    sys.modules.pop("pairs_of_a_test")
    scores = json.loads(kept.read_text())["sts"]
    assert code == 0 and scores["NEWPAIRS"]["spearman"] == scores["STSBenchmark"]["spearman"]  # of the same pairs
    assert "mean of 2" in out and " NEW " in out


CODE = """
from pathlib import Path
Path({marker!r}).write_text("ran")
from transformers import BertConfig, BertModel
class OwnConfig(BertConfig):
    model_type = "own_code"
class OwnModel(BertModel):
    config_class = OwnConfig
"""


def test_python_code_of_a_model_runs_only_with_the_option(run, tiny_model, tmp_path, monkeypatch):
    """Without the option the code does not run, even if standard input answers "y" to every question."""
    folder, marker = tmp_path / "own", tmp_path / "marker"
    shutil.copytree(tiny_model, folder)
    (folder / "code.py").write_text(CODE.format(marker=str(marker)))
    config = json.loads((folder / "config.json").read_text())
    own = {"model_type": "own_code", "auto_map": {"AutoConfig": "code.OwnConfig", "AutoModel": "code.OwnModel"}}
    (folder / "config.json").write_text(json.dumps({**config, **own}))
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))
    monkeypatch.setattr("builtins.input", lambda *args: "y")
    code, _, err = run("--tasks", "sts-b", model=folder)
    assert code == 2 and "give --trust-remote-code" in err and not marker.exists()
    code, out, _ = run("--tasks", "sts-b", "--trust-remote-code", model=folder)
    assert code == 0 and "STS-B" in out and marker.exists()
