"""Every command prints --help and refuses a wrong call without importing torch, and names the extra that it needs."""

import importlib
import json
import os
import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

import una_fast
from una_fast.imports import EXTRA_OF, missing_package
from una_fast_cli.__main__ import COMMANDS, main

ROOT = Path(__file__).parents[2]
NAMES = {"api.md": [*una_fast.__all__, "losses", "integrations"], "commands.md": [*COMMANDS]}
RUN = """
import json, runpy, sys
for module, *arguments in json.loads(sys.argv[1]):
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as left:
        print("code", left.code)
print("heavy", *({"scipy", "sklearn", "torch", "transformers"} & sys.modules.keys()))
"""
REFUSED = {
    "train.ddp": (["--corpus", "c", "--model", "m", "--output", "o", "--bach-size", "8"], "--batch-size?"),
    "train.evaluate": (["--model", "m", "--tasks", "STS17"], "STS16?"),
    "train.generate": (["paraphrase", "--beans", "4"], "--beams?"),
    "train.report": (["nowhere"], "nowhere: "),
    "train.download": (["--to", "x", "--only", "all"], "--only is 'all'"),
}
TO_TEXT, COMPARED, NEGATIVES = "--corpus c.txt --output o.txt", "--model m --corpus c", "negatives --index I"
MISTAKES = {  # module: {arguments of a wrong call: what its message names}
    "train.evaluate": {"": "--model", "--model m more": "more"},
    "train.report.__main__": {"--output": "--output"},
    "train.compare": {COMPARED: "--output", f"{COMPARED} --output o --seed 3": "--seeds?"},
    "train.generate": {
        "": "KIND", "parafrase": "paraphrase, back-translation", f"paraphrase {TO_TEXT}": "--model",
        "paraphrase --model t5": "--corpus", "paraphrase --model t5 --corpus c.txt --output o.tsv": ".txt",
        f"paraphrase {TO_TEXT} --beams 101": "--beams is 101", f"paraphrase {TO_TEXT} --model a b": "--model a b",
        f"back-translation {TO_TEXT} --model t5": "--model t5",
    },
    "una_fast_cli.__main__": {
        "idnex": "index?", "xyz": "'xyz'", "probe --model m": "--corpus or --pairs",
        "probe --model m --corpus c.txt --edits numbr": "number?", "probe --model a b c --pairs p.tsv": "--model",
        "negatives": "--index", f"{NEGATIVES} --betta 1": "--beta?", f"{NEGATIVES} --output x.csv": "--output x.csv",
        NEGATIVES: "I: ", "index c.txt": "--output", "index --output f": "FILE", "index c.txt --output f": "c.txt",
        "index c.txt --output f --max-sentence-bytes -1": "--max-sentence-bytes is -1",
        "index c.txt --output memory://i": "--output memory://i",
        "train --demo --output s3://bucket/run": "--output s3://bucket/run",
        "report run --output file:///r.html": "--output file:///r.html",
    },
}  # fmt: skip


def python(code: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a program in a new process."""
    command, environment = [sys.executable, "-c", code, *arguments], {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


def test_help_and_wrong_calls_do_not_import_torch():
    calls = [[module, *arguments] for module in REFUSED for arguments in (["--help"], REFUSED[module][0])]
    ran = python(RUN, json.dumps(calls))
    *_, heavy = lines = ran.stdout.splitlines()
    assert [line for line in lines if line.startswith("code ")] == ["code 0", "code 2"] * len(REFUSED), ran.stderr
    assert ran.stdout.count("usage: python -m train.") == len(REFUSED) and heavy == "heavy"
    assert all(message in ran.stderr for _, message in REFUSED.values())


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS)], ids=" ".join)
def test_help_names_the_command_and_its_page(words, capsys):
    try:
        main([*words, "--help"])
    except SystemExit as ended:
        assert ended.code == 0
    shown = capsys.readouterr().out
    page = re.search(r"(docs/[\w-]+\.md)\.\n$", shown)
    assert page and (ROOT / page[1]).is_file()
    assert shown.startswith(" ".join(["usage: una-fast", *words, ""]))
    assert words or all(f"\n  {name} " in shown for name in COMMANDS)


@pytest.mark.parametrize(("module", "words"), [(module, words) for module, said in MISTAKES.items() for words in said])
def test_a_wrong_call_gives_one_line_and_exit_code_2_and_writes_nothing(module, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = importlib.import_module(module).main(words.split())
    said = capsys.readouterr()
    assert code == 2 and not said.out and said.err.count("\n") == 1 and not list(tmp_path.iterdir())
    assert said.err.startswith("error: ") and MISTAKES[module][words] in said.err


def test_public_names_are_imported_at_first_use():
    assert set(una_fast.__all__) == set(una_fast._HOMES)
    assert dir(una_fast) == sorted([*una_fast.__all__, "__version__", "integrations", "losses"])
    assert all(getattr(una_fast, name).__name__ == name for name in una_fast.__all__)
    assert una_fast.__getattr__("losses").pairs.__name__ == "pairs"  # what the first use calls
    ran = python("import sys, una_fast; print(una_fast.integrations, 'torch' in sys.modules)").stdout
    assert ran.startswith("<module 'una_fast.integrations'") and ran.endswith(" False\n")
    with pytest.raises(AttributeError, match="module 'una_fast' has no attribute 'nothing'"):
        una_fast.nothing  # noqa: B018


@pytest.mark.parametrize("page", NAMES)
def test_each_page_has_a_row_for_every_name(page):
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    rows = " ".join(line.split("|")[1] for line in lines if line.startswith("| `"))
    assert not [name for name in NAMES[page] if not re.search(rf"`{name}\b", rows)]


BLOCK = f"""
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {sorted(EXTRA_OF)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
"""
LIBRARY = """
import importlib, pathlib, tempfile, una_fast
from una_fast.integrations import Negatives
folder = pathlib.Path(tempfile.mkdtemp()) / "index"
una_fast.build_index(["the cat sat", "a dog ran far", "the cat ran"]).save(folder)
una = una_fast.Augmenter(una_fast.load_index(folder), radius=2)
print(len(una.texts([0, 1, 2])), len(una.explain("the cat").words))
works = [lambda: una_fast.Augmenter(una.index, tokenizer="bert-base-uncased"), lambda: Negatives(una)]
works += [lambda name=name: importlib.import_module(f"una_fast.integrations.{name}")
          for name in ("transformers", "sentence_transformers")]
for work in works:
    try:
        work()
    except una_fast.InputError as error:
        print(f"error: {error}")
"""
COMMAND = "from una_fast_cli.__main__ import main; sys.exit(main(sys.argv[1:]))"
CALLS = {  # the extra that a call needs
    "train --corpus README.md --model m --output o": "train",
    "evaluate --model m --data .": "evaluate",
    "download --to o --only wiki": "train",
}


def assert_names_extra(said: str, extra: str) -> None:
    install = rf"run `pip install '\.\[{extra}\]'` in your clone .*"
    assert re.fullmatch(rf"error: the package \w+ is not installed: {install}", said), said


def test_negatives_as_text_need_no_extra_and_other_features_name_theirs():
    ran = python(BLOCK + LIBRARY)
    assert ran.returncode == 0, ran.stderr
    made, *answers = ran.stdout.splitlines()
    assert made == "3 2"
    for answer, extra in zip(answers, ("tokens", *["integrations"] * 3), strict=True):
        assert_names_extra(answer, extra)


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_a_command_names_the_extra_that_it_needs(call, tmp_path):
    (tmp_path / "senteval" / "downstream").mkdir(parents=True)
    ran = python(BLOCK + COMMAND, *call.split(), cwd=tmp_path)
    assert ran.returncode == 2, ran.stderr
    assert_names_extra(ran.stderr.removesuffix("\n"), CALLS[call])


def test_every_optional_package_is_in_its_extra():
    declared = "".join(requires("una_fast") or []) + (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    names = {"sklearn": "scikit-learn", "yaml": "pyyaml"}
    for package, extra in EXTRA_OF.items():
        block = re.search(rf"^{extra} = \[(.*?)\]$", declared, re.MULTILINE | re.DOTALL)
        assert block and names.get(package, package.replace("_", "-")) in block[1].replace("_", "-"), (package, extra)
    assert missing_package(ModuleNotFoundError("No module named 'train.nothing'", name="train.nothing")) is None
