"""Version numbers, constraints, the demo, compiled kernels, and a wheel that is used outside the source tree."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import time
import zipfile
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import una_fast
from train.demo import write_corpus

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
PAIRS = ROOT / "train" / "demo_pairs.tsv"
USE = """
import pathlib, tempfile
import train.demo, una_fast
folder = pathlib.Path(tempfile.mkdtemp())
index = una_fast.build_index(["the cat sat", "a dog ran far", "the cat ran"])
index.save(folder / "index")
una = una_fast.Augmenter(una_fast.load_index(folder / "index"), tokenizer=None)
print(una_fast.__file__, len(una.texts([0, 1, 2])), train.demo.PAIRS.is_file())
"""


def pinned() -> dict[str, Requirement]:
    """Read constraints.txt: requirements by normalised name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {normalised(requirement.name): requirement for requirement in found}


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_all_files_have_the_same_version():
    number = una_fast.__version__
    assert number == version("una_fast")
    lines = {"pyproject.toml": 'version = "{}"', "CITATION.cff": "version: {}", "CHANGELOG.md": "## {}"}
    for name, line in lines.items():
        assert line.format(number) in (ROOT / name).read_text(encoding="utf-8").splitlines(), name


def test_constraints_pin_every_requirement_to_a_version_that_it_allows():
    pins = pinned()
    assert pins["torch"].marker is None
    assert all(re.fullmatch(r"==[^*]+", str(pin.specifier)) for pin in pins.values())
    for required in map(Requirement, requires("una_fast") or []):
        if required.name != "una_fast":
            pin = pins[normalised(required.name)]
            assert required.specifier.contains(str(pin.specifier).removeprefix("==")), required


def test_pre_commit_has_the_versions_of_the_constraints():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    found = [Requirement(pin) for pin in re.findall(r"[\w-]+==[\d.]+", hooks)]
    assert {pin.name for pin in found} == {"ruff", "cython-lint", "codespell"}
    assert all(pin.specifier == pinned()[pin.name].specifier for pin in found)


def test_actions_are_pinned_by_commit():
    used = [use for path in WORKFLOWS.glob("*.yml") for use in re.findall(r"uses: (.+)", path.read_text("utf-8"))]
    assert len(used) > 20
    for use in used:
        assert use.startswith("./") or re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use), use


def test_pages_ci_and_metadata_name_the_same_versions_of_python():
    project, ci = ((ROOT / name).read_text("utf-8") for name in ("pyproject.toml", ".github/workflows/ci.yml"))
    minors = [*map(int, re.findall(r'"Programming Language :: Python :: 3\.(\d+)"', project))]
    assert f'requires-python = ">=3.{minors[0]}"' in project and minors == [*range(minors[0], minors[-1] + 1)]
    for name in ("README.md", "Makefile", "docs/tutorial.md", "docs/versions.md"):
        assert f"Python 3.{minors[0]} to 3.{minors[-1]}" in (ROOT / name).read_text(encoding="utf-8"), name
    assert f'build = "{" ".join(f"cp3{minor}-*" for minor in minors)}"' in project
    assert all(f'python: "3.{minor}"' in ci for minor in minors)


@pytest.mark.slow
def test_a_release_has_absolute_links(tmp_path):
    (tmp_path / "una_fast/_kernels").mkdir(parents=True)
    for name in ("setup.py", "pyproject.toml", "LICENSE", "una_fast/version.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    text = '![a](docs/a.svg) [b](docs/b.md#c) [d](#e) [f](https://x.y/z)\n<img src="docs/g.png">\n'
    (tmp_path / "README.md").write_text(text)
    environment = {**os.environ, "UNA_FAST_REPOSITORY": "https://host/owner/name/", "UNA_FAST_KERNELS": "0"}
    command = [sys.executable, "setup.py", "--quiet", "egg_info"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    made = (tmp_path / "una_fast.egg-info/PKG-INFO").read_text(encoding="utf-8")
    blob, raw = (f"https://host/owner/name/{kind}/v{una_fast.__version__}" for kind in ("blob", "raw"))
    linked = f'![a]({raw}/docs/a.svg) [b]({blob}/docs/b.md#c) [d](#e) [f](https://x.y/z)\n<img src="{raw}/docs/g.png">'
    assert linked in made
    assert f"Project-URL: Changelog, {blob}/CHANGELOG.md" in made


def test_demo_corpus_is_sentences(tmp_path):
    lines = write_corpus(tmp_path).read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(set(lines)) > 1_000
    for line in lines:
        assert 4 <= len(line.split()) <= 60 and line[-1] in ".!?"
        assert not re.search(r"::|>>>|\|", line), line


@pytest.mark.slow
def test_the_demo_shows_its_negatives_and_report(tmp_path):
    command = [sys.executable, "-m", "train.ddp", "--demo", "--output", str(tmp_path / "run"), "--max-steps", "2"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    shown = ran.stdout + ran.stderr
    assert re.search(r"dev Spearman 0\.8\d\d\d", shown)
    assert len(re.findall(r"^sentence  (.+)\nnegative  (?!\1)", shown, re.MULTILINE)) == 3
    assert f"{tmp_path / 'run/report.html'}: " in shown and (tmp_path / "run/report.html").is_file()


def test_each_kernel_has_its_stub():
    """`python tools/stubs.py` writes missing stubs."""
    made = runpy.run_path(str(ROOT / "tools" / "stubs.py"))["stubs"]()
    written = {path: path.read_text(encoding="utf-8") for path in (ROOT / "una_fast" / "_kernels").rglob("*.pyi")}
    assert len(made) > 10 and made == written


def test_kernels_contain_no_debug_symbols():
    """Debug symbols would be four fifths of a kernel's size."""
    sources = (ROOT / "una_fast" / "_kernels").rglob("*.pyx")
    kernels = [kernel for source in sources for kernel in source.parent.glob(f"{source.stem}.*.so")]
    assert kernels and not [kernel.name for kernel in kernels if b".debug_info" in kernel.read_bytes()]
    assert sum(kernel.stat().st_size for kernel in kernels) < 8_000_000


@pytest.mark.slow
def test_the_wheel_works_outside_the_source_tree(tmp_path):
    library = tmp_path / "lib"  # not build/lib, which may contain deleted modules
    folder = ROOT / "una_fast" / "_kernels"
    sources = {path.with_suffix("").relative_to(ROOT) for path in [*folder.rglob("*.pyx"), folder / "memoryviews.c"]}
    later = time.time() + 3600  # newer than sources and settings, so that setup.py does not compile for minutes
    for compiled in folder.rglob("*.so"):
        place = compiled.relative_to(ROOT)
        if place.with_name(place.name.split(".")[0]) in sources:
            (library / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(compiled, library / place)
            os.utime(library / place, times=(later, later))
    build = ["build", "--build-lib", library]
    wheel_of = ["bdist_wheel", "--bdist-dir", tmp_path / "bdist", "--dist-dir", tmp_path]
    subprocess.run([sys.executable, "setup.py", *build, *wheel_of], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert {"una_fast/py.typed", "train/py.typed", "train/demo_pairs.tsv", "una_fast/foreign.tsv"} <= set(names)
    compiled_names = [Path(name) for name in names if name.endswith((".so", ".pyd"))]
    in_wheel = {path.with_name(path.name.split(".")[0]) for path in compiled_names}
    assert in_wheel == sources
    environment, use = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}, [sys.executable, "-c", USE]
    used = subprocess.run(use, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    assert used.stdout.split() == [str(tmp_path / "site" / "una_fast" / "__init__.py"), "3", "True"]
