"""What the pages say by themselves: how to install, and each word of the glossary once."""

import re
from pathlib import Path

import pytest

from una_fast.imports import EXTRA_OF

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "examples").glob("*.*"))
CODE = sorted(
    path for folder in ("una_fast", "train", "una_fast_cli", "bench") for path in (ROOT / folder).rglob("*.py")
)
INSTALL = re.compile(r"pip install (?:-\S+ )*'?(\.|una_fast)\[([^]'{]+)\]")


def extras() -> set[str]:
    """The extras of pyproject.toml."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = project.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    return set(re.findall(r"^(\w+) = \[", block, re.MULTILINE))


@pytest.mark.parametrize(("files", "name"), [(PAGES, "."), (CODE, "una_fast")], ids=["pages", "messages"])
def test_installs_name_extras_that_exist(files: list[Path], name: str) -> None:
    """No package index has una_fast, so a page installs a clone.

    A message comes from an installed una_fast, to which ``pip install 'una_fast[EXTRA]'`` adds packages, in any folder.
    """
    assert set(EXTRA_OF.values()) <= extras()
    installs = [(path, *match) for path in files for match in INSTALL.findall(path.read_text(encoding="utf-8"))]
    assert len(installs) >= 5
    for path, target, names in installs:
        assert target == name, f"{path}: {target}[{names}]"
        assert names == "EXTRA" or set(names.split(",")) <= extras(), f"{path}: no extra {names}"


def test_the_glossary_defines_each_word_once() -> None:
    words = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").partition("## Where code lies")[0]
    defined = [re.sub(r" \(.+\)", "", word) for word in re.findall(r"^\| ([^|]+) \|", words, re.MULTILINE)]
    assert len(defined) > 30 and len(defined[1:]) == len(set(defined[1:]))  # the first is the heading
