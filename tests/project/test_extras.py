"""Which features work without the packages of the extras, and the messages of the others."""

import os
import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

from una_fast.imports import EXTRA_OF, missing_package

ROOT = Path(__file__).parents[2]
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
negatives = Negatives(una)
print(len(una.negatives([0, 1, 2])), len(una.explain("the cat").words), *negatives({"text": ["the cat"]}))
works = [lambda: una_fast.Augmenter(una.index, tokenizer="bert-base-uncased"), negatives.callback]
works += [lambda name=name: importlib.import_module(f"una_fast.integrations.{name}")
          for name in ("transformers", "sentence_transformers")]
for work in works:
    try:
        work()
    except una_fast.InputError as error:
        print(error)
"""
COMMAND = """
from una_fast_cli.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
CALLS = {
    "train": ["--corpus", "README.md", "--model", "m", "--output", "o"],
    "evaluate": ["--model", "m", "--data", "."],
    "download": ["--to", "o", "--only", "wiki"],
}


def blocked(code: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BLOCK + code, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_negatives_as_text_need_no_extra_and_the_rest_names_its_own() -> None:
    ran = blocked(LIBRARY)
    assert ran.returncode == 0, ran.stderr
    made, *answers = ran.stdout.splitlines()
    assert made == "3 2 anchor positive negative" and len(answers) == 4
    for answer, extra in zip(answers, ("tokens", *["integrations"] * 3), strict=True):
        assert re.fullmatch(rf"the package \w+ is not installed: run `pip install 'una_fast\[{extra}\]'`", answer)


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_a_command_names_the_extra_that_it_needs(name: str, tmp_path: Path) -> None:
    (tmp_path / "senteval" / "downstream").mkdir(parents=True)
    ran = blocked(COMMAND, name, *CALLS[name], cwd=tmp_path)
    extra = {"evaluate": "evaluate"}.get(name, "train")
    assert ran.returncode == 2, ran.stderr
    assert re.fullmatch(
        rf"error: the package \w+ is not installed: run `pip install 'una_fast\[{extra}\]'`\n", ran.stderr
    )


def test_every_package_is_brought_by_its_extra() -> None:
    declared = "".join(requires("una_fast") or []) + (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    names = {"sklearn": "scikit-learn", "yaml": "pyyaml"}
    for package, extra in EXTRA_OF.items():
        block = re.search(rf"^{extra} = \[(.*?)\]$", declared, re.MULTILINE | re.DOTALL)
        assert block and names.get(package, package.replace("_", "-")) in block[1].replace("_", "-"), (package, extra)


def test_a_mistake_of_ours_is_no_missing_package() -> None:
    assert missing_package(ModuleNotFoundError("No module named 'train.nothing'", name="train.nothing")) is None
