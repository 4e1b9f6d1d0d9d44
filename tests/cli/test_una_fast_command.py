"""`una-fast`: its commands, bad input, closed pipes, and a folder with a user's train.py."""

import io
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

import una_fast
from support.small_runs import command, options, write_corpus
from una_fast.index.index import warn_of_few_terms
from una_fast_cli.__main__ import main

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from una_fast_cli.__main__ import main
if __name__ == "__main__":
    sys.exit(main())
"""  # what pip writes for an entry point
USERS = "import pathlib\npathlib.Path('was_run').touch()\n"  # a user's own train.py


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus") / "corpus.txt")


@pytest.fixture(scope="module")
def folder(corpus):
    path = corpus.with_name("index")
    assert main(["index", str(corpus), "--output", str(path)]) == 0
    return path


@pytest.fixture
def script(tmp_path):
    """Return a function that runs a stand-in for the installed script in a folder with a user's train.py."""
    user, path = tmp_path / "user", tmp_path / "una-fast"
    user.mkdir()
    (user / "train.py").write_text(USERS)
    path.write_text(SCRIPT)

    def run(*words, python_path=str(ROOT)):
        environment = {**os.environ, "PYTHONPATH": python_path}
        command = [sys.executable, str(path), *words]
        return subprocess.run(command, cwd=user, env=environment, capture_output=True, text=True, check=False)

    return run


def test_a_small_index_gives_a_warning(corpus, tmp_path, recwarn):
    assert main(["index", str(corpus), "--output", str(tmp_path / "index")]) == 0
    assert "with fewer than 7,000, words have few replacements" in str(recwarn.pop(una_fast.InputWarning).message)
    warn_of_few_terms(SimpleNamespace(n_terms=7000))
    assert not [one for one in recwarn if one.category is una_fast.InputWarning]


def refusal(capsys, *arguments):
    assert main(list(map(str, arguments))) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line.removeprefix("error: ")


def test_the_version_is_printed_and_a_missing_command_is_refused(capsys):
    assert main(["--version"]) == 0 and una_fast.__version__ in capsys.readouterr().out
    assert refusal(capsys).startswith("the command is missing: choose from train, ")


def test_the_command_builds_the_same_index_as_the_library(corpus, folder, tmp_path, capsys, monkeypatch):
    assert una_fast.load_index(folder).fingerprint == una_fast.build_index(corpus).fingerprint
    assert "exists already" in refusal(capsys, "index", corpus, "--output", folder)
    monkeypatch.chdir(tmp_path)
    assert main(["index", str(corpus), "--output", "."]) == 0
    assert una_fast.load_index(tmp_path).fingerprint == una_fast.load_index(folder).fingerprint
    capsys.readouterr()
    assert "/: contains " in refusal(capsys, "index", corpus, "--output", "/")


DRAWS = ["--radius", "3", "--beta", "0.4", "--seed", "7", "--epoch", "2"]


def written(folder, path, *words):
    """Return the records that `una-fast negatives` writes."""
    assert main([*map(str, ["negatives", "--index", folder, "--output", path, *DRAWS, *words])]) == 0
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("of_file", [False, True])
def test_the_command_draws_the_same_negatives_as_the_library(folder, corpus, tmp_path, capsys, of_file):
    index, names = una_fast.load_index(folder), tmp_path / "names.txt"
    names.write_text("River\n")
    una = una_fast.Augmenter(index, radius=3, beta=0.4, seed=7, keep_words=["river"])

    def negatives(n, **sample):
        return una.augment(index[:n], epoch=2, **sample) if of_file else una.texts(range(n), epoch=2, **sample)

    words = ["--keep-words", str(names), *(["--corpus", str(corpus)] if of_file else [])]
    lines = written(folder, tmp_path / "n.jsonl", *words)
    expected = enumerate(zip(index, negatives(len(index)), strict=True))
    assert lines == [{"row": row, "text": text, "negative": negative} for row, (text, negative) in expected]
    capsys.readouterr()
    assert main(["negatives", "--index", str(folder), *DRAWS, *words]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == lines
    several = written(folder, tmp_path / "several.jsonl", *words, "--n", 3, "--rows", 2)
    for number in range(3):
        assert [line[f"negative_{number + 1}"] for line in several] == negatives(2, sample_index=number)


def test_explain_prints_a_table_or_json(folder, capsys):
    una = una_fast.Augmenter(una_fast.load_index(folder), radius=3)
    arguments = ["explain", "--index", str(folder), "--radius", "3", "the river castle"]
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"{una.explain('the river castle')}\n\n"
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(asdict(una.explain("the river castle"))))


def test_near_misses_can_be_seen_before_training(folder, tmp_path, capsys):
    options = ["--augment", "near-misses", "--edits", "swap,word:2"]
    near_misses = una_fast.NearMisses(una_fast.load_index(folder), edits={"swap": 1, "word": 2}, seed=7)
    lines = written(folder, tmp_path / "n.jsonl", *options)
    assert [line["negative"] for line in lines] == near_misses.texts(range(len(lines)), epoch=2)
    capsys.readouterr()
    assert main(["explain", "--index", str(folder), *options, "--seed", "7", "the river and a castle"]) == 0
    assert capsys.readouterr().out == f"{near_misses.explain('the river and a castle')}\n\n"


def test_explain_writes_utf_8_in_any_locale(folder, monkeypatch):
    shown = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr("sys.stdout", shown)
    assert main(["explain", "--index", str(folder), "--radius", "3", "彼女 river"]) == 0
    assert "彼女" in shown.buffer.getvalue().decode()


def test_an_existing_file_is_kept_and_bad_input_leaves_no_file(folder, tmp_path, capsys):
    (tmp_path / "bad.txt").write_bytes(b"good\n\xff\n")
    command = ("negatives", "--index", folder, "--corpus", tmp_path / "bad.txt", "--output")
    (tmp_path / "kept.jsonl").touch()
    assert "exists: choose another name" in refusal(capsys, *command, tmp_path / "kept.jsonl")
    assert "line 2" in refusal(capsys, *command, tmp_path / "n.jsonl")
    (tmp_path / "bad.txt").write_bytes(b"")
    assert "bad.txt: contains no sentence" in refusal(capsys, *command, tmp_path / "n.jsonl")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["bad.txt", "kept.jsonl"]


def test_a_closed_pipe_gives_no_error(folder, tmp_path):
    many = tmp_path / "many.txt"
    many.write_text("a river beside the castle\n" * 20_000)
    line = f"{sys.executable} -m una_fast_cli negatives --index {folder} --corpus {many} --radius 3 | head -1"
    ran = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["row"] == 0
    (said,) = ran.stderr.splitlines()  # the only line: a warning, because the corpus has few words
    assert said.startswith("warning: radius=3: a window has up to 7 of the")


@pytest.mark.slow
def test_a_users_train_py_is_not_run_and_does_not_hide_our_package(script, tmp_path, tiny_model):
    """With two ranks: the script and the ranks must find our package."""
    ran = script("train", *command(options(tmp_path, tiny_model, nproc=2, epochs=1, max_steps=2, seed=0))[3:])
    assert ran.returncode == 0, ran.stderr
    assert "finished after 2 steps" in ran.stderr
    assert [path.name for path in (tmp_path / "user").iterdir()] == ["train.py"]


def test_a_module_that_hides_ours_is_named_and_not_run(script, tmp_path):
    both = f"{tmp_path / 'user'}{os.pathsep}{ROOT}"
    ran = script("train", "--help", python_path=both)
    assert ran.returncode == 2 and ran.stdout == ""
    assert f"{tmp_path / 'user' / 'train.py'} hides the package 'train' of una_fast: rename it" in ran.stderr
    assert not (tmp_path / "user" / "was_run").exists()
