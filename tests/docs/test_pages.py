"""The pages: install commands, the glossary, docstrings of public names, and negatives in five languages."""

import inspect
import re
import runpy
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

import una_fast
from una_fast.corpus.word_tokenizers import SEGMENTERS
from una_fast.imports import EXTRA_OF
from una_fast.text_table import aligned

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "examples").glob("*.*"))
CODE = [path for folder in ("una_fast", "train", "una_fast_cli", "bench") for path in (ROOT / folder).rglob("*.py")]
INSTALL = re.compile(r"pip install (?:-\S+ )*'?(\.|una_fast)\[([^]'{]+)\]")


def extras() -> set[str]:
    """Return the names of the extras in pyproject.toml."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = project.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    return set(re.findall(r"^(\w+) = \[", block, re.MULTILINE))


@pytest.mark.parametrize("files", [PAGES, CODE], ids=["pages", "messages"])
def test_install_commands_name_extras_that_exist(files):
    """Only the README names what a package index will have; pages and messages install a clone."""
    assert set(EXTRA_OF.values()) <= extras()
    installs = [(path, *match) for path in files for match in INSTALL.findall(path.read_text(encoding="utf-8"))]
    assert len(installs) >= 4
    for path, target, names in installs:
        assert target == "." or path.name == "README.md", f"{path}: {target}[{names}]"
        assert names == "EXTRA" or set(names.split(",")) <= extras(), f"{path}: no extra {names}"


def test_the_glossary_defines_each_word_once():
    words = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").partition("## Where code is")[0]
    defined = [re.sub(r" \(.+\)", "", word) for word in re.findall(r"^\| ([^|]+) \|", words, re.MULTILINE)]
    assert len(defined) >= 30 and len(defined[1:]) == len(set(defined[1:]))  # the first is the heading


def public_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield each public function and method of una_fast, with its name."""
    objects = [una_fast.integrations.Negatives, *(getattr(una_fast, name) for name in una_fast.__all__)]
    for name in ("losses", "integrations.transformers", "integrations.sentence_transformers"):
        module = import_module(f"una_fast.{name}")
        objects += [one for one in vars(module).values() if getattr(one, "__module__", "") == module.__name__]
    for one in objects:
        for function in vars(one).values() if inspect.isclass(one) else [one]:
            if inspect.isfunction(function) and not function.__name__.startswith("_"):
                yield function.__qualname__, function


def test_docstrings_of_public_functions_list_every_argument_and_the_result():
    for name, function in public_functions():
        about, signature = inspect.getdoc(function) or "", inspect.signature(function)
        arguments = about.partition("\nArgs:\n")[2]
        missing = [argument for argument in signature.parameters if f"    {argument}: " not in arguments]
        assert not {*missing} - {"self", "cls", "options"}, (name, missing)
        if signature.return_annotation != "None":
            assert about.startswith("Return") or "\nReturns:\n" in about, name


EXAMPLE = runpy.run_path(str(ROOT / "examples" / "languages.py"))
LANGUAGES = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
WORDS = {  # a word of the language's first sentence, which an English word tokenizer may not separate
    "German": "bibliothekarin", "Japanese": "手紙", "Chinese": "管理员", "Thai": "จดหมาย", "Arabic": "الظهر",
}  # fmt: skip


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.filterwarnings("ignore::una_fast.errors.InputWarning")
def test_the_page_shows_the_negatives_of_each_language(language):
    options, between, parts = EXAMPLE["LANGUAGES"][language]
    if options["word_tokenizer"] in SEGMENTERS:
        pytest.importorskip(options["word_tokenizer"])
    index = una_fast.build_index([between.join(part) for part in zip(*parts, strict=False)], **options)
    assert WORDS[language] in index.terms
    negatives = EXAMPLE["negatives"](language)
    assert len(negatives) == 3
    for sentence, negative in negatives:
        assert sentence != negative
        assert negative.count(" ") == sentence.count(" ")
        assert f"{sentence}\n  {negative}\n" in LANGUAGES


def test_text_tables_are_aligned_by_display_width():
    assert aligned([["辞書", "1"], ["ab", "22"], ["ริมแม่", "3"]], left=[0]) == ["辞書   1", "ab    22", "ริมแม่   3"]


LISTS = {"German": "treebank", "Japanese": "fugashi", "Chinese": "rjieba"}


@pytest.mark.parametrize("language", LISTS)
@pytest.mark.filterwarnings("ignore::una_fast.errors.InputWarning")
def test_the_page_shows_the_near_misses_of_each_language(language, tmp_path):
    if LISTS[language] != "treebank":
        pytest.importorskip(LISTS[language])
    start = f"```text\n# {language.lower()}.txt\n"
    lists, _, shown = LANGUAGES.partition(start)[2].partition("```\n\n```text\n")
    (tmp_path / "lists.txt").write_text(lists, encoding="utf-8")
    assert lists.count(", ") == 10
    lines = shown.partition("```")[0].splitlines()
    index = una_fast.build_index(lines[::2] * 5, word_tokenizer=LISTS[language])
    near = una_fast.NearMisses(index, word_lists=tmp_path / "lists.txt")
    assert [f"  {text}" for text in near.texts(range(len(lines) // 2))] == lines[1::2] and near.fits([0]).all()
