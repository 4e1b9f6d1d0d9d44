"""`una-fast`: its commands, bad input, closed pipes, and a folder with a user's train.py."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

import una_fast
from support.small_runs import options, write_corpus
from support.staged import Killed, kill
from una_fast.errors import InputError
from una_fast.imports import import_object
from una_fast.index.staged import build as staged_build
from una_fast.index.staged.work import work_folder
from una_fast.storage.folder import publish
from una_fast_cli.main import COMMANDS, main
from una_fast_cli.writers import write

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from una_fast_cli.main import main
if __name__ == "__main__":
    sys.exit(main())
"""  # the script that pip writes for an entry point
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
    """Runs a stand-in of the installed script in the folder of a user who has a train.py."""
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "train.py").write_text(USERS)
    path = tmp_path / "bin" / "una-fast"
    path.parent.mkdir()
    path.write_text(SCRIPT)

    def run(*arguments, **environment):
        return subprocess.run(
            [sys.executable, str(path), *map(str, arguments)],
            cwd=tmp_path / "user",
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def refusal(capsys, *arguments):
    assert main(list(map(str, arguments))) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line.removeprefix("error: ")


def test_every_command_is_listed_and_there(capsys):
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    for name, (path, _) in COMMANDS.items():
        assert f"\n  {name} " in listed and callable(import_object(path)), name
    assert main([]) == 2
    assert main(["--version"]) == 0 and una_fast.__version__ in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_the_command_as_it_was_called(capsys, name):
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: una-fast {name} ")


def test_an_index_is_that_of_the_library(corpus, folder, capsys):
    assert una_fast.load_index(folder).fingerprint == una_fast.build_index(corpus).fingerprint
    assert "exists already" in refusal(capsys, "index", corpus, "--output", folder)


def test_an_index_is_built_in_the_folder_of_the_command(corpus, tmp_path, capsys, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(["index", str(corpus), "--output", "."]) == 0
    assert len(una_fast.load_index(tmp_path / "here")) == len(una_fast.build_index(corpus))
    capsys.readouterr()
    assert "/: holds " in refusal(capsys, "index", corpus, "--output", "/")


def test_an_index_in_the_folder_of_its_corpus_is_no_text(tmp_path, capsys):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("the cat sat\na dog")
    for name in ("one", "two"):
        assert main(["index", str(tmp_path / "texts"), "--output", str(tmp_path / "texts" / name)]) == 0
    capsys.readouterr()
    assert list(una_fast.load_index(tmp_path / "texts" / "two", tmp_path / "texts")) == ["the cat sat", "a dog"]


def test_a_build_that_was_killed_after_its_last_write_is_complete(corpus, tmp_path, capsys, monkeypatch):
    """The same command gives the same index, and deletes what the build left; any other one is refused."""
    folder = tmp_path / "index"
    command = ["index", corpus, "--output", folder]
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(staged_build, "publish", lambda *arguments: (publish(*arguments), kill()))
        main(list(map(str, command)))
    capsys.readouterr()
    assert work_folder(folder).is_dir()
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    (tmp_path / "other.txt").write_text("another text")
    assert "was made from" in refusal(capsys, "index", tmp_path / "other.txt", "--output", folder)
    assert "exists already" in refusal(capsys, *command, "--no-lowercase")
    assert work_folder(folder).is_dir()
    assert main(list(map(str, command))) == 0
    assert not work_folder(folder).exists()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == whole
    capsys.readouterr()
    assert "exists already" in refusal(capsys, *command)


def test_negatives_of_the_rows_are_those_of_the_library(folder, tmp_path, capsys):
    index = una_fast.load_index(folder)
    una = una_fast.Augmenter(index, radius=3, beta=0.4, seed=7)
    expected = una.negatives(range(len(index)), epoch=2)
    draws = ["--radius", "3", "--beta", "0.4", "--seed", "7", "--epoch", "2"]
    for kind in ("jsonl", "parquet", "txt"):
        assert main(["negatives", "--index", str(folder), "--output", str(tmp_path / f"n.{kind}"), *draws]) == 0
    assert (tmp_path / "n.txt").read_text().splitlines() == expected
    lines = [json.loads(line) for line in (tmp_path / "n.jsonl").read_text().splitlines()]
    assert [line["negative"] for line in lines] == expected
    assert [line["row"] for line in lines] == list(range(len(index)))
    assert [line["text"] for line in lines] == list(index)
    assert pyarrow.parquet.read_table(tmp_path / "n.parquet").to_pylist() == lines
    capsys.readouterr()
    assert main(["negatives", "--index", str(folder), *draws]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == lines


def test_negatives_of_a_file_are_those_of_its_text(folder, tmp_path):
    texts = ["A river beside a castle", "", "nobody saw the zeppelin"]
    (tmp_path / "text.txt").write_text("\n".join(texts) + "\n")
    output = tmp_path / "n.txt"
    arguments = ["--corpus", str(tmp_path / "text.txt"), "--output", str(output), "--radius", "3"]
    assert main(["negatives", "--index", str(folder), *arguments]) == 0
    una = una_fast.Augmenter(una_fast.load_index(folder), radius=3)
    assert output.read_text().splitlines() == una.augment(texts)


def test_several_negatives_of_the_first_rows(folder, tmp_path, tiny_model, corpus):
    from transformers import AutoTokenizer

    una = una_fast.Augmenter(una_fast.load_index(folder), radius=3, tokenizer=AutoTokenizer.from_pretrained(tiny_model))
    of_rows = [una.negatives(range(2), epoch=1, draw_set=number) for number in range(3)]
    of_texts = [una.augment(una.index[:2], epoch=1, draw_set=number) for number in range(3)]
    of_ids = [una.negative_ids(range(2), epoch=1, max_length=9, draw_set=number) for number in range(3)]
    common = ["negatives", "--index", str(folder), "--radius", "3", "--epoch", "1", "--n", "3", "--rows", "2"]
    for name, more, expected in [("a", [], of_rows), ("b", ["--corpus", str(corpus)], of_texts)]:
        assert main([*common, *more, "--output", str(tmp_path / f"{name}.jsonl")]) == 0
        records = [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        assert [record["text"] for record in records] == una.index[:2]
        assert [[record[f"negative_{n + 1}"] for record in records] for n in range(3)] == expected
        assert main([*common, *more, "--output", str(tmp_path / f"{name}.txt")]) == 0
        lines = [negative for row in zip(*expected, strict=True) for negative in row]
        assert (tmp_path / f"{name}.txt").read_text().splitlines() == lines
    assert (
        main([*common, "--tokenizer", str(tiny_model), "--max-length", "9", "--output", str(tmp_path / "i.jsonl")]) == 0
    )
    records = [json.loads(line) for line in (tmp_path / "i.jsonl").read_text().splitlines()]
    for number in range(3):
        ids = [record[f"negative_{number + 1}_input_ids"] for record in records]
        assert ids == of_ids[number]["input_ids"].tolist()


def test_ids_are_those_of_the_negatives(folder, tmp_path, tiny_model, corpus):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    common = ["negatives", "--index", str(folder), "--radius", "3"]
    ids = [*common, "--tokenizer", str(tiny_model), "--max-length", "9"]
    for name, arguments in {"text": common, "ids": ids}.items():
        assert main([*arguments, "--output", str(tmp_path / f"{name}.jsonl")]) == 0
    given = ["--corpus", str(corpus), "--output", str(tmp_path / "given.parquet")]
    assert main([*ids, *given]) == 0
    texts, rows = (
        [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()] for name in ("text", "ids")
    )
    expected = tokenizer([line["negative"] for line in texts], truncation=True, padding="max_length", max_length=9)
    assert [row["input_ids"] for row in rows] == expected["input_ids"]
    assert [row["attention_mask"] for row in rows] == expected["attention_mask"]
    una = una_fast.Augmenter(una_fast.load_index(folder), radius=3)
    negatives = una.augment(list(una.index))
    expected = tokenizer(negatives, truncation=True, padding="max_length", max_length=9)
    assert pyarrow.parquet.read_table(tmp_path / "given.parquet")["input_ids"].to_pylist() == expected["input_ids"]


def test_explain_prints_a_table_or_json(folder, capsys):
    una = una_fast.Augmenter(una_fast.load_index(folder), radius=3)
    arguments = ["explain", "--index", str(folder), "--radius", "3", "the river castle"]
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"{una.explain('the river castle')}\n\n"
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(una.explain("the river castle").to_dict()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["idnex"], "unknown command 'idnex': did you mean index?"),
        (["xyz"], "unknown command 'xyz': choose from train, evaluate"),
        (["negatives"], "--index is missing"),
        (["negatives", "--index", "I", "--betta", "1"], "unknown option --betta: did you mean --beta?"),
        (["negatives", "--index", "I", "--beta", "2"], "--beta is 2.0: it must be at most 1"),
        (
            ["negatives", "--index", "I", "--output", "x.csv"],
            "unknown kind of file: choose from .jsonl, .parquet, .txt",
        ),
        (["negatives", "--index", "I", "--output", "x.txt", "--tokenizer", "T"], "a .txt takes text"),
        (["negatives", "--index", "I", "--window", "score"], "--radius=None: a distance in score must be finite"),
        (["negatives", "--index", "nowhere"], "nowhere"),
        (["explain", "--index", "I"], "SENTENCE is missing: give the sentences to explain"),
        (["index", "nothing.txt", "--output", "I"], "nothing.txt: no such file"),
        (["train", "--lr", "1"], "did you mean --learning-rate?"),
        (["index", "nothing.txt", "--output", "memory://i"], "--output memory://i: is an address"),
        (["train", "--demo", "--output", "s3://bucket/run"], "--output s3://bucket/run: is an address"),
        (["report", "run", "--output", "file:///r.html"], "--output file:///r.html: is an address"),
    ],
)
def test_bad_input_gets_one_sentence(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in refusal(capsys, *arguments)
    assert not list(tmp_path.iterdir())


def test_a_name_that_is_too_long_for_a_folder(corpus, tmp_path, capsys):
    assert "(File name too long)" in refusal(capsys, "index", corpus, "--output", tmp_path / ("I" * 255))


def test_a_file_that_is_there_is_kept(folder, tmp_path, capsys):
    (tmp_path / "n.txt").write_text("mine")
    assert "exists already" in refusal(capsys, "negatives", "--index", folder, "--output", tmp_path / "n.txt")
    assert (tmp_path / "n.txt").read_text() == "mine"


@pytest.mark.parametrize("kind", ["jsonl", "txt", "parquet"])
def test_of_two_commands_with_one_output_the_later_one_is_refused(tmp_path, kind):
    path, alone = tmp_path / f"neg.{kind}", tmp_path / f"alone.{kind}"

    def batches(name, meanwhile=lambda: None):
        for row in range(3):
            yield {"row": [row], "text": [name], "negative": [name * 1_000]}
            if row == 1:
                meanwhile()

    write(batches("b"), str(alone), None)
    with pytest.raises(InputError, match="exists"):
        write(batches("a", lambda: write(batches("b"), str(path), None)), str(path), None)
    assert path.read_bytes() == alone.read_bytes()
    assert sorted(tmp_path.iterdir()) == [alone, path]


def test_a_users_file_with_a_name_of_ours_stays(folder, tmp_path):
    (tmp_path / "precious.txt").write_text("mine")
    (tmp_path / ".neg.jsonl.partial").symlink_to(tmp_path / "precious.txt")
    assert main(["negatives", "--index", str(folder), "--output", str(tmp_path / "neg.jsonl")]) == 0
    assert (tmp_path / ".neg.jsonl.partial").read_text() == "mine"


def test_bad_input_in_the_midst_leaves_no_file(folder, tmp_path, capsys):
    (tmp_path / "bad.txt").write_bytes(b"good\n\xff\n")
    arguments = ("--corpus", tmp_path / "bad.txt", "--output", tmp_path / "n.jsonl")
    assert "line 2" in refusal(capsys, "negatives", "--index", folder, *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.txt"]


def test_a_closed_pipe_is_quiet(folder, tmp_path):
    many = tmp_path / "many.txt"
    many.write_text("a river beside the castle\n" * 20_000)
    line = f"{sys.executable} -m una_fast_cli negatives --index {folder} --corpus {many} --radius 3 | head -1"
    ran = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["row"] == 0
    (said,) = ran.stderr.splitlines()  # the only line: a warning, because the corpus has few words
    assert said.startswith("warning: radius=3: a window holds up to 7 of the")


@pytest.mark.slow
def test_a_users_train_py_is_neither_run_nor_in_the_way(script, tmp_path, tiny_model):
    """With two ranks: the script, the fork server and the ranks must all find our package."""
    values = options(tmp_path, tiny_model, nproc=2, epochs=1, max_steps=2, seed=0)
    arguments = [word for name, value in values.items() for word in (f"--{name.replace('_', '-')}", *listed(value))]
    ran = script("train", *arguments)
    assert ran.returncode == 0, ran.stderr
    assert "finished after 2 steps" in ran.stderr
    assert [path.name for path in (tmp_path / "user").iterdir()] == ["train.py"]


def listed(value):
    return [str(item) for item in value] if isinstance(value, tuple) else [str(value)]


def test_a_module_that_hides_ours_is_named_and_not_run(script, tmp_path):
    both = f"{tmp_path / 'user'}{os.pathsep}{ROOT}"
    ran = script("train", "--help", PYTHONPATH=both)
    assert ran.returncode == 2 and ran.stdout == ""
    assert f"{tmp_path / 'user' / 'train.py'} hides the package 'train' of una_fast: rename it" in ran.stderr
    assert not (tmp_path / "user" / "was_run").exists()
