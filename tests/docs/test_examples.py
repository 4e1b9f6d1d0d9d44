"""Every Python and shell block of the README and of docs/ runs, on small files with the names that it uses."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import una_fast
import una_fast_cli.__main__

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```\n(\n<!-- not run: .+? -->)?", re.MULTILINE | re.DOTALL)
WRITTEN = re.compile(r"^```\w+\n(# (\w+\.(?:py|yaml))\n.*?)^```", re.MULTILINE | re.DOTALL)  # files shown in pages
NOT_RUN = {  # commands that a test cannot run: the reason
    "make": "its targets take minutes",
    "pip": "it changes the environment",
    "hf": "it needs a network",
    "mteb": "it needs a network",
    "torchrun": "it needs several machines",
    "python -m train.download": "it needs a network",
    "python -m bench": "it takes minutes; bench has tests of its own",
}
QUICK = ("README.md", "tutorial.md")  # pages whose examples are no slow tests: on one rank, in this process
FEW_STEPS = ["--max-steps", "2", "--batch-size", "4", "--device", "cpu"]
SENTENCES = [
    "She plays the violin in a small orchestra.",
    "The old orchestra plays in the hall near the river.",
    "A violin is a small instrument with four strings.",
    "Trains leave the station every ten minutes in the morning.",
    "He reads old books about ships and distant islands.",
    "The river was frozen for most of the winter.",
    "Nobody knew the name of the small island.",
    "Ten ships left the harbour before the storm.",
    "The library keeps letters that were written long ago.",
    "Their garden is full of apple trees and old roses.",
    "A storm closed the harbour for most of the week.",
    "The letters describe the winter on a distant island.",
]


def commands(code: str) -> list[str]:
    """Return the commands of a shell block that can run, with continued lines joined and without comments."""
    lines = [" ".join(shlex.split(line, comments=True)) for line in code.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line and not line.startswith(tuple(NOT_RUN))]


def examples(language: str, split: Callable[[str], list[str]]) -> list[Any]:
    """Return (page, code) of every example that must run; all but those of README and tutorial are slow tests."""
    found = []
    for page in PAGES:
        marks = [] if page.name in QUICK else [pytest.mark.slow]
        for kind, code, is_left_out in BLOCK.findall(page.read_text(encoding="utf-8")):
            if kind == language and not is_left_out:
                found += [pytest.param(page.name, example, marks=marks) for example in split(code)]
    return found


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, tiny_model) -> Path:
    """A folder with the examples' files: sentences.txt, an index, an encoder, scored pairs, a finished run."""
    folder = tmp_path_factory.mktemp("examples")
    text = "".join(f"{sentence}\n" for sentence in SENTENCES)
    for name in ("sentences.txt", "paraphrases.txt", "mine.txt", "today.txt"):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "names.txt").write_text("violin\nX-200\n", encoding="utf-8")
    for page in PAGES:
        for code, name in WRITTEN.findall(page.read_text(encoding="utf-8")):
            (folder / name).write_text(code, encoding="utf-8")
    (folder / "bert-base-uncased").symlink_to(tiny_model)
    dev = folder / "data/senteval/downstream/STS/STSBenchmark/sts-dev.csv"
    dev.parent.mkdir(parents=True)
    pairs = [f"x\tx\tx\t{i}\t{i % 6}\t{SENTENCES[i]}\t{SENTENCES[i - 1]}\n" for i in range(len(SENTENCES))]
    for name in ("sts-dev.csv", "sts-test.csv"):
        dev.with_name(name).write_text("".join(pairs), encoding="utf-8")
    labelled = [f"{one}\t{SENTENCES[i - 1]}\t{i % 2}\n" for i, one in enumerate(SENTENCES)]
    (folder / "pairs.tsv").write_text("".join(["sentence1\tsentence2\tlabel\n", *labelled]), encoding="utf-8")
    (folder / "data/near_miss").mkdir()
    entry = dict(zip(("caption", "caption2", "negative_caption", "filename"), SENTENCES, strict=False))
    for name in ("replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att"):
        (folder / f"data/near_miss/{name}.json").write_text(json.dumps([entry]), encoding="utf-8")
    una_fast.build_index(folder / "sentences.txt").save(folder / "index")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", [*sys.path])  # undoes changes that examples make
        run_here("python -m train.ddp --corpus sentences.txt --model bert-base-uncased --output runs/una", folder)
    return folder


@pytest.fixture
def folder(prepared, tmp_path) -> Path:
    """A copy of the folder `prepared` for one example, so that no example depends on another."""
    return Path(shutil.copytree(prepared, tmp_path / "examples", symlinks=True))


def as_typed(command: str, folder: Path, nproc: int) -> list[str]:
    """Split a command into words; limit a training to two steps and `nproc` ranks, and give it a new output folder."""
    words = shlex.split(command)
    assert words[0] in ("python", "una-fast"), command
    if "train.ddp" in words and "--resume" not in words:
        output = words[words.index("--output") + 1]
        if (folder / output / "run.json").exists():
            words[words.index(output)] = f"{output}-{len(list(folder.glob('runs/*')))}"
        if "--nproc" in words:
            words[words.index("--nproc") + 1] = str(nproc)
        words += FEW_STEPS
    if "bench.paper" in words:
        words += FEW_STEPS
    return words


def run_here(command: str, folder: Path, nproc: int = 1) -> None:
    """Run a command of the docs in this process, which has already imported torch, by calling its `main`."""
    words = as_typed(command, folder, nproc)
    if words[0] == "python":
        assert words[1] == "-m", command
        name, arguments = words[2], words[3:]
        is_package = find_spec(name).submodule_search_locations
        main = import_module(f"{name}.__main__" if is_package else name).main
    else:
        main, arguments = una_fast_cli.__main__.main, words[1:]
    assert main(arguments) in (0, None), command


@pytest.mark.parametrize(("page", "code"), examples("python", lambda code: [code]))
def test_python_examples_run(page, code, folder, monkeypatch):
    if "import mteb" in code:
        pytest.skip("mteb fetches its tasks from a hub")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    exec(compile(code, page, "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize(("page", "command"), examples("bash", commands))
def test_commands_run(page, command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    run_here(command, folder, nproc=1 if page in QUICK else 2)


def test_the_installed_script_runs(folder):
    words = [str(Path(sys.executable).with_name("una-fast")), "explain", "--index", "index", "She plays the violin"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run(words, cwd=folder, env=environment, capture_output=True, timeout=300, check=True)


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150 and max(map(len, lines)) <= 120


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="Python's manual differs between versions")
def test_the_readme_shows_what_its_first_example_prints(capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code, output = (re.search(rf"^```{kind}\n(.*?)^```", text, re.M | re.S)[1] for kind in ("python", "text"))
    exec(code, {})
    assert capsys.readouterr().out == output
